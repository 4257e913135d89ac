"""The workers of a campaign: how reliable they are, what was decided, what they do."""

from __future__ import annotations

from dataclasses import dataclass

from goldspan.report.campaign.numbers import Numbers, interval
from goldspan.report.wording import count, percent, plural

MAX_WORKERS = 200
ORDER = ("drop", "look at", "test more", "keep", "")


@dataclass(frozen=True)
class Person:
    """A worker as a row of the table.

    Attributes:
        worker: The id.
        answers: How many.
        reliability: Posterior mean in per cent, "–" if never judged.
        bounds: Its 95 % interval, "" if never judged.
        mean: The mean, 0 to 1, or None.
        low: Lower bound, 0 to 1.
        high: Upper bound, 0 to 1.
        judged: Answers that it rests on.
        verdict: What is thought of the worker; in campaigns of before, the last verdict.
        why: What may be said of the worker and what it rests on.
        barred: Why the worker is asked no more, "" if not.
    """

    worker: str
    answers: str
    reliability: str
    bounds: str
    mean: float | None
    low: float
    high: float
    judged: str
    verdict: str
    why: str
    barred: str


def people(record: Numbers) -> list[Person]:
    """List the workers, those who are asked no more first, then the least reliable."""

    def rank(pair: tuple[str, dict[str, object]]) -> tuple[object, ...]:
        name, one = pair
        verdict = ORDER.index(str(one.get("verdict", "")))
        return not one["barred"], verdict, one.get("mean", 1.0), name

    rows = sorted(((name, dict(one)) for name, one in record.workers.items()), key=rank)
    return [_person(name, one) for name, one in rows[:MAX_WORKERS]]


def _person(name: str, one: dict[str, object]) -> Person:
    mean = one.get("mean")
    known = isinstance(mean, float)
    low, high = (float(str(one[side])) if known else 0.0 for side in ("low", "high"))
    return Person(
        worker=name,
        answers=count(int(str(one["answers"]))),
        reliability=percent(mean) if isinstance(mean, float) else "\u2013",
        bounds=interval(one) if known else "",
        mean=mean if isinstance(mean, float) else None,
        low=low,
        high=high,
        judged=f"{float(str(one['judged'])):,.0f}" if known else "\u2013",
        verdict=str(one.get("opinion") or one.get("verdict", "")),
        why=str(one.get("said") or one.get("why", "")),
        barred=str(one["barred"]),
    )


def people_lead(record: Numbers) -> str:
    """Say how many workers there are and how many were dropped."""
    barred = [name for name, one in record.workers.items() if one["barred"]]
    text = f"{plural(len(record.workers), 'worker')}."
    if not barred:
        return f"{text} Nobody was told to stop."
    verb = "is" if len(barred) == 1 else "are"
    return f"{text} {count(len(barred))} of them {verb} asked no more."
