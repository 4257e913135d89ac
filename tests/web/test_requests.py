"""How many statements a request takes in the store, and the rehearsal that compiles them."""

from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import event, select

from goldspan.store.schema import metadata
from goldspan.web.service import open_service
from goldspan.web.work import REHEARSAL
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
    """Every statement from here on, but for the beginning of transactions."""
    said = []

    @event.listens_for(service.ledger.database.engine, "before_cursor_execute")
    def hear(_connection, _cursor, statement, *_):
        if not statement.startswith("BEGIN"):
            said.append(statement)

    return said


def contents(service):
    with service.ledger.database.read() as connection:
        return {
            table.name: connection.execute(select(table)).all() for table in metadata.sorted_tables
        }


def test_requests_of_workers_take_few_statements(service, statements):
    """So many that a change which adds one is seen: 37 at a first request were slow."""
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


def test_a_rehearsal_leaves_nothing(service, statements):
    service.work.next("ann")
    before = contents(service)
    statements.clear()
    service.work.rehearse()
    assert any("INSERT INTO answers" in one for one in statements)
    assert any("INSERT INTO leases" in one for one in statements)
    assert any("INSERT INTO events" in one for one in statements)
    assert contents(service) == before
    assert REHEARSAL not in service.people.all()
    assert service.ledger.verify() == service.ledger.n_events
    assert service.work.next("bob")["state"] == "task"


def test_a_server_rehearses_once_there_is_something_to_label(tmp_path, new_place, monkeypatch):
    place, path, done = new_place(), plan_file(tmp_path), threading.Event()
    service = open_service(path, tmp_path / "out", KEYS, place, clock=Clock())
    rehearse = service.work.rehearse
    monkeypatch.setattr(service.work, "rehearse", lambda: (rehearse(), done.set()))
    try:
        service.start(loop=False)
        time.sleep(0.1)
        assert not done.is_set()
        open_round(service)
        assert done.wait(60)
    finally:
        service.close()


def test_a_rehearsal_that_fails_is_passed_over_and_one_that_waits_ends(tmp_path, monkeypatch):
    service = open_service(plan_file(tmp_path), tmp_path / "out", KEYS, clock=Clock())
    service.start(loop=False)
    service.close()  # it waits for the first round, and ends
    service = open_service(plan_file(tmp_path), tmp_path / "out", KEYS, clock=Clock())
    open_round(service)

    def refuse():
        raise OSError("the disk is gone")

    monkeypatch.setattr(service.work, "rehearse", refuse)
    service.start(loop=False)
    assert service.work.next("ann")["state"] == "task"
    service.close()
