"""What the report takes of a campaign – its numbers, in plain values – and how it writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from goldspan.money import MICRO, from_micro


class Numbers(Protocol):
    """A campaign's record; `goldspan.campaign.CampaignRecord` is one, and explains it."""

    @property
    def id(self) -> str:
        """The campaign's id."""
        ...

    @property
    def plan(self) -> Mapping[str, Any]:
        """The plan in force, by section."""
        ...

    @property
    def changes(self) -> Sequence[str]:
        """What changed in the plan, a line per key."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions by name."""
        ...

    @property
    def rounds(self) -> Sequence[Mapping[str, Any]]:
        """The facts of every round."""
        ...

    @property
    def picks(self) -> Mapping[str, Mapping[str, int]]:
        """Per round how many items every rule picked."""
        ...

    @property
    def workers(self) -> Mapping[str, Mapping[str, Any]]:
        """The workers with their last verdict."""
        ...

    @property
    def forecasts(self) -> Mapping[str, Mapping[str, Any]]:
        """Per round where the learning curve leads."""
        ...

    @property
    def curve(self) -> Mapping[str, Any] | None:
        """The learning curve with its band."""
        ...

    @property
    def spending(self) -> Sequence[Mapping[str, Any]]:
        """The course of the money."""
        ...

    @property
    def redundancy(self) -> Sequence[int]:
        """Items with 0, 1, … answers, gold questions aside."""
        ...

    @property
    def coverage(self) -> Mapping[str, Any] | None:
        """Of the pool after every round."""
        ...

    @property
    def stop(self) -> Mapping[str, Any] | None:
        """What stopped it."""
        ...

    @property
    def money(self) -> Mapping[str, Any] | None:
        """cap, reserved, spent, fixed, saving, everything, currency; None for unpaid work."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """Items and answers."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Signs that the labels have run away from the answers."""
        ...

    @property
    def kinds(self) -> Mapping[str, Mapping[str, Any]]:
        """All workers of a kind together: workers, answers, cost, and what they `brought`."""
        ...

    @property
    def probes(self) -> Sequence[Mapping[str, Any]]:
        """Models that labelled silently: probe, kind, model, items, cost."""
        ...

    @property
    def limits(self) -> Sequence[Mapping[str, str]]:
        """The rules of `[stop]`: `rule`, `limit` and `now`."""
        ...

    @property
    def suggestions(self) -> Sequence[Mapping[str, Any]]:
        """What suggestions did, a row per suggester."""
        ...


def measure_of(record: Numbers) -> str:
    """Name the score of models and labels."""
    return "accuracy" if record.plan["task"]["labels"] else "F1"


def amount(micro: int) -> str:
    """Write millionths with two decimals, less than a hundredth with as many as it needs.

    >>> amount(1_234_567_890), amount(2_500)
    ('1,234.57', '0.0025')
    """
    return from_micro(micro) if 0 < micro < MICRO / 100 else f"{micro / MICRO:,.2f}"


def with_unit(record: Numbers, micro: int) -> str:
    """Write an amount with its currency."""
    currency = currency_of(record)
    return amount(micro) + (f"\u00a0{currency}" if currency else "")


def currency_of(record: Numbers) -> str:
    """Return the name of the currency; "" for none."""
    return "" if record.money is None else str(record.money["currency"])


def interval(measured: Mapping[str, Any]) -> str:
    """Write an interval of shares in per cent."""
    return f"{100 * measured['low']:.1f}\u2013{100 * measured['high']:.1f}"


def bare_percent(value: float | None) -> str:
    """Write a share in per cent without the sign, a dash for None."""
    return "\u2013" if value is None else f"{100 * value:.1f}"
