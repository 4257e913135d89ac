"""The numbers on top: what there is, what it cost, how good it is, what stopped it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from goldspan.aggregate import Consensus
from goldspan.report.campaign.numbers import Numbers, interval, measure_of, with_unit
from goldspan.report.sections import Fact
from goldspan.report.wording import count, percent, plural
from goldspan.spans import Score


@dataclass(frozen=True)
class Status:
    """How far the campaign is.

    Attributes:
        word: In a word.
        why: In a sentence.
        is_over: Whether it has stopped.
    """

    word: str
    why: str
    is_over: bool


def status(record: Numbers) -> Status:
    """Say how far a campaign is."""
    done = plural(len(record.rounds), "round")
    if record.stop is not None:
        return Status("stopped", f"after {done}: {record.stop['why']}", is_over=True)
    awaited = record.counts["awaited"]
    now = f"in round {len(record.rounds) + 1}"
    if awaited:
        return Status("open", f"{now}, {plural(awaited, 'answer')} awaited", is_over=False)
    return Status("open", now, is_over=False)


def lead(record: Numbers) -> str:
    """Say in a sentence what was done."""
    counts, money = record.counts, record.money
    who = "simulated workers" if record.plan["crowd"]["source"] == "simulated" else "workers"
    n = sum(1 for one in record.workers.values() if one["answers"])
    own = counts["answers"] - counts["control_answers"]
    price = "" if money is None else f" for {with_unit(record, money['spent'])}"
    text = (
        f"{count(n)} {who} gave {plural(counts['answers'], 'answer')}{price}: {count(own)} of them "
        f"label {count(counts['items'])} of the {plural(counts['pool'], 'item')} of the pool"
    )
    if not counts["control_answers"]:
        return f"{text}."
    asked = plural(counts["control_items"], "control question")
    return f"{text}, and {count(counts['control_answers'])} are to {asked}."


def facts(
    record: Numbers, result: Consensus | None, score: Score | None, against: str
) -> list[Fact]:
    """Collect the numbers."""
    return [*_quality(record, result, score, against), *_work(record)]


def _quality(
    record: Numbers, result: Consensus | None, score: Score | None, against: str
) -> Iterator[Fact]:
    name = measure_of(record)
    if score is not None:
        value = score.accuracy if name == "accuracy" else score.f1
        bounds = "" if score.interval is None else _bounds(score.interval)
        yield Fact(f"{name} of the labels", percent(value), f"against {against}{bounds}")
    elif result is not None and len(_confidence(result)):
        mean = float(np.mean(_confidence(result), dtype=np.float64))
        what = "labels" if name == "accuracy" else "spans"
        yield Fact("confidence", percent(mean), f"mean of the {what}")
    last = next((one for one in reversed(record.rounds) if one["score"] is not None), None)
    if last is not None:
        measured = last["score"]
        words = f"as measured: {interval(measured)} on {plural(measured['n'], 'item')}"
        yield Fact(f"{name} of the model", percent(measured["value"]), words)


def _bounds(found: tuple[float, float]) -> str:
    return f": {interval({'low': found[0], 'high': found[1]})}"


def _confidence(result: Consensus) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    if result.tagset.rules.is_plain:
        return result.token_confidence[result.codes >= 0]
    return result.span_confidence


def _work(record: Numbers) -> Iterator[Fact]:
    counts, money = record.counts, record.money
    whole = f"of {count(counts['pool'])} in the pool"
    yield Fact("items labelled", count(counts["items"]), whole, counts["items"] / counts["pool"])
    regular = counts["answers"] - counts["control_answers"]
    each = f"{regular / counts['items']:.1f} per item" if counts["items"] else ""
    control = f"{count(counts['control_answers'])} to control questions"
    more = control if counts["control_answers"] else ""
    detail = "; ".join(part for part in (each, more) if part)
    name = "answers" if money is None else "answers bought"
    yield Fact(name, count(counts["answers"]), detail)
    if money is None:
        return
    share = money["spent"] / money["cap"] if money["cap"] else None
    of = f"of {with_unit(record, money['cap'])}" + (f", {percent(share)}" if share else "")
    yield Fact("spent", with_unit(record, money["spent"]), of, share)
    if money["fixed"]:
        k = record.plan["redundancy"]["max"]
        fixed, all_ = (with_unit(record, money[key]) for key in ("fixed", "everything"))
        words = f"of {fixed} for these items with {plural(k, 'answer')} each; everything: {all_}"
        yield Fact("saved", f"{100 * money['saving']:.0f}\u00a0%", words)
