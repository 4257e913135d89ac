"""People and models side by side in the report: what each brought, and what the next money buys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goldspan.money import MICRO
from goldspan.report.wording import (
    amount,
    count,
    currency_of,
    interval,
    measure_of,
    percent,
    plural,
    with_unit,
)

if TYPE_CHECKING:
    from goldspan.campaign import CampaignRecord

MAX_ROWS = 60
"""Workers of the table; the kinds have all of them."""
CALLED = {
    "people": "people",
    "llm": "language models",
    "python": "functions",
    "tagger": "taggers",
    "simulated": "simulated workers",
    "replay": "recorded workers",
}
"""What workers of a kind are called together."""
LEAST = 0.05
"""Fewer labels set right are none."""
NOT_KNOWN = "\u2013"


@dataclass(frozen=True)
class WorkforceRow:
    """A worker, or all of a kind, as a row of the table."""

    name: str  # The id, or what they are called together
    about: str  # Kind and family of a worker; how many they are of a kind
    is_kind: bool  # Whether it is a kind
    right: str  # How often right, or how well in agreement, in per cent; a dash if never judged
    bounds: str  # Its 95 % interval; "" if never judged
    answers: str
    marked: str  # Spans or labels expected to be right, of those given
    cost: str  # What they were paid
    each: str  # What a span, or label, cost that is expected to be right
    lost: str  # Points of F1, or accuracy, that the labels are expected to lose without
    more: str  # Labels that one more answer is expected to set right
    buys: str  # The same of what a unit of money pays for


@dataclass(frozen=True)
class Workforce:
    """What is said of people and models."""

    rows: tuple[WorkforceRow, ...]  # Every kind, and after it its workers
    n_left_out: int  # Workers who are not listed
    unit: str  # What is counted: "span" or "label"
    measure: str  # "F1" or "accuracy"
    money: str  # The unit of money, "" where nobody is paid
    buy: str  # What the next money should buy, in a sentence; "" where nothing can be said
    probes: tuple[str, ...]  # What was labelled silently, a sentence each


def workforce(record: CampaignRecord) -> Workforce | None:
    """Put together what every worker and every kind brought; None where that is not known."""
    known = {name: one for name, one in record.kinds.items() if "brought" in one}
    probes = tuple(_probes(record))
    if not known and not probes:
        return None
    rows: list[WorkforceRow] = []
    n_listed = n_all = 0
    for kind, one in sorted(known.items(), key=lambda pair: -pair[1]["brought"]["lost"]):
        own = {w: row for w, row in record.workers.items() if row["kind"] == kind}
        own = {w: row for w, row in own.items() if row["answers"]}
        rows.append(_row(CALLED.get(kind, kind), plural(len(own), "worker"), one, is_kind=True))
        order = sorted(own, key=lambda w: (-own[w]["brought"]["lost"], w))
        n_all += len(order)
        for worker in order[: max(0, MAX_ROWS - n_listed)]:
            n_listed += 1
            about = ", ".join(part for part in (kind, str(own[worker].get("family") or "")) if part)
            rows.append(_row(worker, about, own[worker], is_kind=False))
    return Workforce(
        tuple(rows), n_all - n_listed, "span" if measure_of(record) == "F1" else "label",
        measure_of(record), _unit(record), _buy(record, known), probes,
    )  # fmt: skip


def _row(name: str, about: str, one: Mapping[str, Any], *, is_kind: bool) -> WorkforceRow:
    brought, mean = one["brought"], one.get("mean")
    right, cost = brought["right"], one["cost"]
    share = right / brought["marked"] if brought["marked"] else None
    return WorkforceRow(
        name,
        about,
        is_kind,
        percent(mean) if isinstance(mean, float) else NOT_KNOWN,
        interval(one) if isinstance(mean, float) else "",
        count(one["answers"]),
        NOT_KNOWN if share is None else f"{count(round(right))} of {count(brought['marked'])}",
        amount(cost) if cost else NOT_KNOWN,
        _small(cost / right / MICRO) if cost and right >= 0.5 else NOT_KNOWN,
        f"{100 * brought['lost']:.1f}".replace("-", "\u2212"),
        f"{brought['more']:.3f}",
        NOT_KNOWN if brought["buys"] is None else f"{brought['buys']:.1f}",
    )


def _small(value: float) -> str:
    """Write an amount with two decimals, less than a tenth with two digits that count.

    >>> _small(0.4567), _small(0.001234)
    ('0.46', '0.0012')
    """
    return f"{value:,.2f}" if value >= 0.1 else f"{float(f'{value:.1e}'):.7f}".rstrip("0")


def _unit(record: CampaignRecord) -> str:
    if record.money is None:
        return ""
    return currency_of(record) or "unit of money"


def _buy(record: CampaignRecord, kinds: Mapping[str, Mapping[str, Any]]) -> str:
    """Say whose answers the next money should buy, and what comes after them."""
    rows = [
        (name, one) for name, one in record.workers.items()
        if "brought" in one and one["answers"] and not one["barred"] and one["brought"]["items"]
    ]  # fmt: skip
    if not rows or not kinds:
        return ""
    free = [pair for pair in rows if not pair[1]["cost"]]
    if record.money is None or len(free) == len(rows):
        best = max(rows, key=lambda pair: (pair[1]["brought"]["more"], pair[0]))
        gain = best[1]["brought"]["more"]
        return (
            f"One more answer is expected to bring most if it is one of {best[0]}: {gain:.3f} "
            "labels of tokens set right."
        )
    paid = sorted((pair for pair in rows if pair[1]["cost"]), key=_worth, reverse=True)
    unit = with_unit(record, MICRO)
    said = [
        f"{name} ({one['brought']['buys']:.1f} labels)"
        for name, one in paid[:3]
        if one["brought"]["buys"] >= LEAST
    ]
    if not said:
        return f"The next {unit} is not expected to set a label right, whoever is asked."
    first = f"The next {unit} is expected to set most labels right as answers of {said[0]}"
    rest = f"; after that come {' and '.join(said[1:])}" if said[1:] else ""
    words = f"{first}{rest}."
    if free:
        names = ", ".join(name for name, _ in free[:3])
        open_ = max(one["brought"]["items"] for _, one in free)
        words += f" Before any money: {names} can still answer {plural(open_, 'item')} for nothing."
    return words


def _worth(pair: tuple[str, Mapping[str, Any]]) -> tuple[float, str]:
    return float(pair[1]["brought"]["buys"]), pair[0]


def _probes(record: CampaignRecord) -> Iterator[str]:
    """Say what models labelled silently, and who repeats their mistakes."""
    for one in record.probes:
        price = f" for {with_unit(record, one['cost'])}" if one["cost"] else ""
        model = f", {one['model']}" if one["model"] else ""
        found = [
            f"{worker} {sign['evidence']}"
            for worker, row in record.workers.items()
            for sign in row.get("signs", ())
            if sign.get("other") == one["probe"]
        ]
        said = (
            f"Who repeats its mistakes: {'; '.join(found)}"
            if found
            else "Nobody repeats its mistakes more often than the others' answers explain"
        )
        yield (
            f"{one['probe']} ({one['kind']}{model}) labelled {plural(one['items'], 'item')} "
            f"silently{price}; its answers count for nothing. {said}."
        )
