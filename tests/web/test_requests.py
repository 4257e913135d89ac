"""How many statements a request takes in the store."""

from __future__ import annotations

import math
import threading

import pytest
from sqlalchemy import event

from goldspan.web import people
from goldspan.web.service import open_service
from web.serving import KEYS, Clock, key, open_round, plan_file


@pytest.fixture
def service(tmp_path, new_place):
    service = open_service(
        plan_file(tmp_path, page={"training": 0}), tmp_path / "out", KEYS, new_place(),
        clock=Clock(),
    )  # fmt: skip
    with service.ledger:
        open_round(service)
        yield service


@pytest.fixture
def statements(service):
    """Every statement of this thread from here on, but for the beginning of transactions."""
    said, here = [], threading.get_ident()  # what the server does meanwhile is no request

    @event.listens_for(service.ledger.database.engine, "before_cursor_execute")
    def hear(_connection, _cursor, statement, *_):
        if threading.get_ident() == here and not statement.startswith("BEGIN"):
            said.append(statement)

    return said


def test_requests_of_workers_take_few_statements(service, statements, monkeypatch):
    """So many that a change which adds one is seen: 37 at a first request were slow."""
    monkeypatch.setattr(people, "FRESH", math.inf)  # a slow machine would look once more
    work = service.work
    work.next("warm")  # what is read once in a process

    def taken(act):
        statements.clear()
        found = act()
        return found, len(statements)

    for n in range(3):
        who = f"w{n}"
        told, first = taken(lambda: work.next(who))  # noqa: B023
        _, held = taken(lambda: work.next(who))  # noqa: B023
        task = told["task"]["id"]
        said, answer = taken(lambda: work.submit(who, task, key(), "rain"))  # noqa: B023
        _, later = taken(lambda: work.next(who))  # noqa: B023
        assert said["status"] == "accepted"
        # The tests of a new worker are among them: two statements that choose gold questions.
        assert (first <= 22, held <= 5, answer <= 14, later <= 17) == (True,) * 4, (
            first, held, answer, later,
        )  # fmt: skip
