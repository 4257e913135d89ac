"""The audit of a campaign: what was drawn, what people found in it, and the certificate.

Draws and checks are records of the store. A check is no worker's answer: it makes no label, judges
nobody and is in no export of answers. The certificate is of the labels as they are now, and holds
whenever somebody looks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, takewhile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goldspan._arrays import count_in_rows
from goldspan.aggregation import Consensus
from goldspan.aggregation.consensus import without_answers
from goldspan.aggregation.layered import Joint
from goldspan.auditing import Audit, AuditPlan, audit, draw_audit
from goldspan.auditing.plan import LEAST
from goldspan.campaign.clock import WallTimes
from goldspan.campaign.plan import Plan
from goldspan.campaign.stopping import NEXT, TAIL, Certified, ahead, told_ahead
from goldspan.crowd import Crowd, write_crowd
from goldspan.crowd.gold import attach_gold, split_tokens
from goldspan.crowd.options import ReadOptions
from goldspan.errors import InputError
from goldspan.money import from_micro
from goldspan.spans.parts import cuts_at, cuts_of, fit, places_in

if TYPE_CHECKING:
    from goldspan.store import SqlLedger

DRAW, CHECK = "audit", "audit-check"
"""Kinds of the records: what was drawn, and what a person found in an item of it."""
USUAL = 100
"""Items that are drawn where nobody says how many."""


def labels_now(result: Consensus, control: Collection[str]) -> Crowd:
    """Return the labels of whole items as gold of a crowd; gold questions are left out."""
    whole = count_in_rows(result.codes < 0, result.crowd.offsets) == 0
    asked = pc.is_in(result.crowd.item_ids, value_set=pa.array([*control], pa.string()))
    sure = pa.table({"confidence": result.confidence.astype(np.float64)})
    crowd = replace(result.as_gold(), attributes=sure)
    return crowd.select_items(whole & ~np.asarray(asked, np.bool_))


def draw(
    result: Consensus, control: Collection[str], n: int, seed: int, now: int
) -> dict[str, Any]:
    """Draw items of the labels; return the record."""
    if isinstance(result, Joint):
        raise InputError("an audit is of one question, and the task has several layers")
    # One seed for all draws: what was checked before is drawn again as far as chances allow.
    plan = draw_audit(labels_now(result, control), n, random_state=seed, again=True)
    weights = {item: round(weight, 6) for item, weight in plan.weights.items()}
    return {
        "items": plan.items, "weights": weights, "seed": seed, "labels": plan.labels, "time": now,
    }  # fmt: skip


def last_draw(ledger: SqlLedger) -> dict[str, Any] | None:
    """Return the record of the last draw, None before the first."""
    draws = list(ledger.records(DRAW).values()) if ledger.count(DRAW) else []
    return draws[-1] if draws else None


def is_due(ledger: SqlLedger, result: Consensus, control: Collection[str]) -> bool:
    """Whether items were labelled since the last draw."""
    drawn = last_draw(ledger)
    known = {} if drawn is None else drawn["weights"]
    return any(item not in known for item in labels_now(result, control).item_ids.to_pylist())


def open_items(ledger: SqlLedger, drawn: Mapping[str, Any]) -> list[str]:
    """Return the drawn items that nobody has checked or passed, in their order."""
    closed = {one["item"] for one in ledger.records(CHECK).values()}
    return [item for item in drawn["items"] if item not in closed]


def checks_of(ledger: SqlLedger) -> list[dict[str, Any]]:
    """Return the checks that found something; of a person's of an item the paid or first one."""
    last_first = reversed(ledger.records(CHECK).values())
    found = [one for one in last_first if one["labels"] is not None]
    found.sort(key=lambda one: bool(one.get("cost")))  # of a key the last one holds
    return list({(one["item"], one["by"]): one for one in found}.values())


def times_of(checks: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the milliseconds of the checks that were timed."""
    return [one["time"] - one["started"] for one in checks if one.get("started", -1) >= 0]


def work_of(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the number `n` of checks, what they cost in millionths, and their median `seconds`."""
    took, cost = times_of(checks), sum(one.get("cost", 0) for one in checks)
    return {"n": len(checks), "cost": cost, "seconds": median(took) / 1000 if took else None}


def last_active(ledger: SqlLedger) -> int:
    """Return when somebody last checked, or was given a draw after doing all of one; 0: never."""
    times = [one["time"] for one in ledger.records(CHECK).values()]
    draws = list(ledger.records(DRAW).values())[-2:]
    if len(draws) > 1 and not open_items(ledger, draws[0]):
        times.append(draws[1]["time"])
    return max(times, default=0)


def certificate(
    plan: Plan, ledger: SqlLedger, result: Consensus | None, control: Collection[str]
) -> dict[str, Any] | None:
    """Return how right the labels are, None before the first draw.

    Items count up to the first that is still open; one that was passed, or that two people see
    otherwise, counts as wrong for the lower end and as right for the upper one.

    Returns:
        `measure`, `value`, `low` and `high` (None with too few checks), `level`; `checked` and
        `drawn` items, `items` with labels; `new`: items that were labelled since; `certified`:
        whether the target of the plan is reached, None without one; `missing`: how many checks
        that takes in the median, None where they do not suffice or nobody can say; `end`: their
        95 % interval `low` to `high`, and the chances that all items are too few (`short`) and that
        the money is too little (`unpaid`); `seed`; `text`, `goal`, its `cost` and `notes` in words.
    """
    drawn, goal = last_draw(ledger), plan.stop.certified
    if drawn is None or result is None:
        return None
    labels = labels_now(result, control)
    new = sum(one not in drawn["weights"] for one in labels.item_ids.to_pylist())
    checks, truth, differ = _checks(ledger, drawn)
    labels, truth = _alike(ledger, labels, truth)
    level, notes, found = 0.95 if goal is None else goal.confidence, list[str](), None
    if len(truth) >= LEAST:
        try:
            found = audit(labels, truth, _plan(drawn), level=level, anytime=True)
        except InputError as error:  # a drawn item has lost its labels
            notes.append(str(error))
    if differ:
        notes.append(f"checkers differ on {', '.join(differ)}")
    price = plan.prices.check_micro
    paid = ledger.totals().left // price if price else np.inf
    is_whole = not open_items(ledger, drawn) and len(drawn["items"]) >= labels.n_items - new
    made = {
        "measure": "accuracy" if plan.is_single else "F1",
        **dict.fromkeys(("value", "low", "high")), **(found.estimate._asdict() if found else {}),
        "level": level, "checked": len(truth), "drawn": len(drawn["items"]),
        "items": labels.n_items - new, "new": new, "seed": drawn["seed"],
        "certified": goal and bool(found and not new and found.estimate.low >= goal.target),
        "missing": None, "end": None,
        **({} if goal is None or is_whole else _missing(found, goal, paid)),
        "notes": [*notes, *(found.notes if found else ())],
    }  # fmt: skip
    wall = WallTimes(ledger)
    times = [drawn["time"], *sorted(one["time"] for one in checks)[-1:]]
    days = [f"{datetime.fromtimestamp(wall(time) / 1000, UTC):%Y-%m-%d}" for time in times]
    made["cost"] = _cost(made, plan, result) if goal and not made["certified"] else ""
    return {**made, "text": _text(made), "goal": _goal(made, goal), "design": _design(made, days)}


def _plan(drawn: Mapping[str, Any]) -> AuditPlan:
    return AuditPlan(tuple(drawn["items"]), drawn["weights"], drawn["seed"], drawn["labels"])


def _checks(
    ledger: SqlLedger, drawn: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, list[str]], list[str]]:
    """Return each person's last checks, the labels that they found, items that people differ on."""
    opened = {*open_items(ledger, drawn)}
    counted = {*takewhile(lambda item: item not in opened, drawn["items"])}
    last = {(one["item"], one["by"]): one for one in ledger.records(CHECK).values()}
    checks = [one for one in last.values() if one["item"] in counted]
    given: dict[str, list[list[str]]] = {}
    for one in checks:
        if one["labels"] is not None and one["labels"] not in given.setdefault(one["item"], []):
            given[one["item"]].append(one["labels"])
    truth = {item: found[0] for item, found in given.items() if len(found) == 1}
    return checks, truth, [item for item, found in given.items() if len(found) > 1]


def _alike(
    ledger: SqlLedger, crowd: Crowd, truth: Mapping[str, list[Any]]
) -> tuple[Crowd, dict[str, Any]]:
    """Cut the tokens of a crowd where those who checked did, and fit what they found to them."""
    place = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    sizes = np.diff(crowd.offsets)
    cut = [
        name
        for name, labels in truth.items()
        if name in place and (len(labels) != sizes[place[name]] or cuts_of([labels]))
    ]
    if not cut or crowd.token_start is None:
        return crowd, dict(truth)
    from goldspan.store.crowd import token_starts

    with ledger.database.read() as connection:
        starts = token_starts(connection, cut)
    cuts, points = {}, {}
    for name in cut:
        n = place[name]
        own = crowd.token_start[slice(*crowd.offsets[n : n + 2])].tolist()
        cuts[name] = cuts_at(places_in(starts[name], own))
        before = [0, *accumulate(map(len, crowd.tokens_list[n]))]
        points[n] = set[int]()
        for token, chars in cuts_of([truth[name]]).items():
            cuts[name].setdefault(token, set()).update(chars)
            found = places_in(own, [starts[name][token] + char for char in chars])
            points[n].update(before[at] + char for at, char in found)
    fitted = {name: fit(truth[name], cuts[name], crowd.tagset.encoding) for name in cut}
    return split_tokens(crowd, points), {**truth, **fitted}


def write_audit(folder: Path, ledger: SqlLedger, result: Consensus) -> None:
    """Write what `goldspan audit report --anytime` computes the certificate from."""
    if drawn := last_draw(ledger):
        folder.mkdir()
        result.write(folder / "labels.jsonl")
        _plan(drawn).save(folder / "labels.audit.json")
        bare = replace(without_answers(result.crowd), gold=None)
        bare, found = _alike(ledger, bare, _checks(ledger, drawn)[1])
        truth = attach_gold(bare, found, ReadOptions())
        write_crowd(truth, folder / "checked.jsonl")


def _missing(found: Audit | None, goal: Certified, paid: float) -> dict[str, Any]:
    """Return the median number of checks that it still takes, and their interval `end`."""
    if found is None or found.estimate.value < goal.target:
        return {}
    if found.estimate.low >= goal.target:
        return {"missing": 0}
    left = found.n_items - len(found.checked)
    drawn = found.checks_to(goal.target)
    more, unpaid = np.minimum(drawn, left), float(np.mean(drawn > paid))
    end = {**ahead(more, np.isinf(drawn)), "unpaid": unpaid}
    return {"missing": max(1, int(np.median(more))), "end": end}


def _cost(one: Mapping[str, Any], plan: Plan, result: Consensus) -> str:
    """Say what the missing checks cost, or the next answers; "" where that is not paid."""
    paid, unit, price = result.crowd.latest.cost, plan.prices.currency, plan.prices.check_micro
    if one["end"] and price:
        low, high = (from_micro(price * one["end"][side]) for side in ("low", "high"))
        few = f"; the money is not enough with a chance of {100 * one['end']['unpaid']:.0f}\u00a0%"
        return f" ({f'{low} to {high} {unit}'.strip()}{few * (one['end']['unpaid'] > TAIL)})"
    if one["missing"] is None and one["value"] is not None and paid is not None and paid.any():
        amount = from_micro(int(round(NEXT * float(paid.mean()), -4)))
        return f" (the next {NEXT} about {f'{amount} {unit}'.strip()})"
    return ""


def _text(one: Mapping[str, Any]) -> str:
    if one["value"] is None:
        least = f"; an interval needs {LEAST}" if one["checked"] < LEAST else ""
        return f"{one['checked']:,} of {one['drawn']:,} drawn items checked{least}"
    value, low, high = (f"{100 * one[end]:.1f}" for end in ("value", "low", "high"))
    return f"{one['measure']} {value} %, between {low} and {high}, {one['checked']:,} checked"


def _goal(one: Mapping[str, Any], goal: Certified | None) -> str:
    """Say how far the target of the plan is, "" without one."""
    if goal is None:
        return ""
    what = f"{goal.shown} is"
    if one["certified"]:
        return f"{what} certain"
    if one["missing"]:
        checks = told_ahead(one["end"], lambda x: f"{x:,.0f}", "")
        return f"{what} not certain yet: it takes more checks, not answers: {checks}"
    if one["value"] is None:
        return f"{what} not certain: too few drawn items are checked"
    if one["missing"] == 0:
        return f"{what} not certain: not all labelled items were there at the draw"
    return f"{what} out of reach of checks alone: more answers are needed"


def _design(one: Mapping[str, Any], days: list[str]) -> str:
    until = f", last checked on {days[1]}" if days[1:] else ""
    return (
        f"{100 * one['level']:g} % interval that holds at every look; {one['drawn']:,} of "
        f"{one['items']:,} items drawn on {days[0]}, those of uncertain labels more often, seed "
        f"{one['seed']}{until}"
    )
