"""What a ledger says of itself, and a connection that breaks."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from goldspan.store import StoreError, open_ledger


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
