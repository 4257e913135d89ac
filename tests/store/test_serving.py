"""A campaign has one server at a time; its loop and other campaigns are not kept out."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from goldspan.store import StoreError, create_ledger
from goldspan.store import roles as serving
from goldspan.store.roles import serving as hold
from store.conftest import TAGS

ADDRESS = "http://127.0.0.1:8080"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(serving, "PATIENCE", 0)


def test_a_second_server_of_a_campaign_is_refused_and_told_who_serves_it(new_ledger, new_place):
    place = new_place()
    one, two = new_ledger(place=place), new_ledger(place=place)
    with hold(one.database, ADDRESS):
        told = f"served already, by process {os.getpid()} at {ADDRESS}: use that"
        with pytest.raises(StoreError, match=told), hold(two.database, "http://other"):
            pass
    with hold(two.database, ADDRESS):
        pass


def test_the_loop_and_other_campaigns_are_not_kept_out(new_ledger):
    one, two = new_ledger(), new_ledger()
    with hold(one.database, ADDRESS), one.alone(), hold(two.database, ADDRESS):
        pass


def test_a_lock_that_cannot_be_written_says_where(tmp_path):
    (tmp_path / "c.db.serve.lock").mkdir()
    ledger = create_ledger(
        tmp_path / "c.db", name="c", cap=0, currency="EUR", tagset=TAGS, now=0
    )  # fmt: skip
    told = r"c\.db\.serve\.lock: Is a directory"
    with closing(ledger), pytest.raises(StoreError, match=told), hold(ledger.database, ADDRESS):
        pass
