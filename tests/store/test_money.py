"""The money: whole millionths, charges once, and a cap that the database itself keeps."""

from __future__ import annotations

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from goldspan.errors import InputError
from goldspan.store.schema import campaign, slots


def test_a_charge_is_paid_once_per_name(ledger):
    assert ledger.charge("fee", 900, 1)
    assert ledger.charge("fee", 900, 2)
    assert ledger.totals().spent == 900
    with pytest.raises(InputError, match="the charge 'fee' was paid with 900 millionths"):
        ledger.charge("fee", 901, 3)


@pytest.mark.parametrize("amount", [-1, 0.5, True, 2**63, "5"])
def test_an_amount_must_be_whole_and_in_range(ledger, amount):
    with pytest.raises(InputError, match="must be whole millionths"):
        ledger.charge("fee", amount, 1)
    with pytest.raises(InputError, match="must be whole millionths"):
        ledger.set_cap(amount, 1)


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (campaign, {"spent": 1001}),
        (campaign, {"reserved": -1}),
        (slots, {"filled": 2}),
        (slots, {"leased": -1}),
        (slots, {"batch": 7}),
    ],
)
def test_the_database_itself_refuses_what_may_not_be(ledger, table, values):
    ledger.open_batch("b", ["i0"], k=1, now=1)
    with pytest.raises(IntegrityError), ledger.database.engine.begin() as connection:
        connection.execute(update(table).values(**values))


def test_the_database_itself_refuses_two_answers_that_count(ledger):
    ledger.open_batch("b", ["i0"], k=2, now=1)
    ledger.submit("a", "w", "i0", ["yes"], 2)
    row = {"number": 2, "key": "b", "item": 1, "worker": 1, "labels": "", "status": "late"}
    row |= {"reason": "", "counts": 1, "started": 0, "submitted": 0, "cost": 0}
    from goldspan.store.schema import answers

    with pytest.raises(IntegrityError), ledger.database.engine.begin() as connection:
        connection.execute(answers.insert(), row)
    with pytest.raises(IntegrityError), ledger.database.engine.begin() as connection:
        connection.execute(answers.insert(), {**row, "counts": 0, "key": "a"})
