"""The face of the store is the face that campaigns speak to."""

from __future__ import annotations

import inspect

import pytest
from sqlalchemy import text

from goldspan.protocols import Ledger
from goldspan.store import SqlLedger, StoreError, open_ledger

METHODS = [name for name, value in vars(Ledger).items() if inspect.isfunction(value)]


@pytest.mark.parametrize("name", [name for name in METHODS if not name.startswith("_")])
def test_every_method_of_the_protocol_is_there_with_its_arguments(name):
    ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (SqlLedger, Ledger))
    assert ours == theirs


def test_a_ledger_says_whose_it_is(ledger):
    assert repr(ledger).startswith("SqlLedger('c', ")


@pytest.mark.parametrize("new_place", ["postgresql"], indirect=True)
def test_a_connection_that_breaks_says_to_send_again_and_the_next_call_works(new_place, new_ledger):
    place = new_place()
    ledger = new_ledger(1, place=place)
    kill = text("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(StoreError, match="do it again under the same names and keys"):
        ledger.database.write(1, lambda entry: entry.connection.execute(kill))
    ledger.pause(2)
    with open_ledger(place) as again:
        assert again.verify() == ledger.verify()
