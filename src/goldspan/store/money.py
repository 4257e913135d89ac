"""The money of a campaign: reserved with a lease, settled with the answer, else given back.

All amounts are whole millionths of the currency unit, so that sums are exact. What does not fit
is refused before it is tried; that `reserved + spent <= cap` is a constraint of the database too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from goldspan.errors import InputError
from goldspan.store.schema import charges

if TYPE_CHECKING:
    from goldspan.store.journal import Entry

MOST = 10**18
"""The largest amount in millionths: sums of several still fit into 64 bits."""


@dataclass
class Purse:
    """What there is, what is set aside and what is paid, in millionths.

    >>> purse = Purse(cap=10)
    >>> purse.reserve(4); purse.settle(4)
    >>> purse.left, purse.spent
    (6, 4)
    """

    cap: int
    reserved: int = 0
    spent: int = 0

    @property
    def left(self) -> int:
        """What can still be reserved."""
        return self.cap - self.reserved - self.spent

    def reserve(self, amount: int) -> None:
        """Set aside."""
        self.reserved += amount

    def free(self, amount: int) -> None:
        """Give back what was set aside."""
        self.reserved -= amount

    def settle(self, amount: int) -> None:
        """Pay what was set aside."""
        self.reserved -= amount
        self.spent += amount

    def pay(self, amount: int) -> None:
        """Pay what was not set aside."""
        self.spent += amount


def check_amount(amount: int, what: str) -> int:
    """Check that an amount is whole, not negative and not too large, and give it.

    Raises:
        InputError: It is not.
    """
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= MOST:
        raise InputError(f"{what} must be whole millionths from 0 to {MOST:,}, not {amount!r}")
    return amount


def set_cap(entry: Entry, cap: int) -> None:
    """Change what may be spent.

    Raises:
        InputError: More is reserved or spent already.
    """
    used = entry.purse.reserved + entry.purse.spent
    if check_amount(cap, "the cap") < used:
        raise InputError(f"the cap cannot be {cap}: {used} millionths are reserved or spent")
    if cap != entry.purse.cap:
        entry.log("cap", {"cap": cap})


def put_cap(entry: Entry, body: Mapping[str, Any]) -> None:
    """Change the cap."""
    entry.purse.cap = body["cap"]


def charge(entry: Entry, name: str, amount: int) -> bool:
    """Pay something other than an answer, once per name; False if the money is short.

    Raises:
        InputError: Another amount was paid under this name.
    """
    check_amount(amount, f"the charge {name!r}")
    query = select(charges.c.amount).where(charges.c.name == name)
    paid = entry.connection.execute(query).scalar_one_or_none()
    if paid is not None and paid != amount:
        raise InputError(f"the charge {name!r} was paid with {paid} millionths, not {amount}")
    if paid is None and amount <= entry.purse.left:
        last = entry.connection.execute(select(func.max(charges.c.number))).scalar_one()
        entry.log("charge", {"number": (last or 0) + 1, "name": name, "amount": amount})
        return True
    return paid is not None


def put_charge(entry: Entry, body: Mapping[str, Any]) -> None:
    """Keep and pay a charge."""
    entry.connection.execute(charges.insert(), {**body, "time": entry.clock})
    entry.purse.pay(body["amount"])
