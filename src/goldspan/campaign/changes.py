"""What of a plan and its pool may change while a campaign runs."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.campaign.clock import WallTimes
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.plan import Plan
from goldspan.crowd import Crowd
from goldspan.errors import FaultsError, InputError
from goldspan.money import from_micro

if TYPE_CHECKING:
    from goldspan.store import SqlLedger

# --------------------------------------------------------------------------------------------------
# The versions that a campaign began with: goldspan's, and those of what its numbers depend on.


PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def versions() -> dict[str, str]:
    """Return versions by name; what is not installed is left out."""
    from goldspan import __version__

    found = {"goldspan": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


# --------------------------------------------------------------------------------------------------
# Beginning a campaign, or taking it up again with a plan that may have changed in its limits.


CHANGE = "change"
"""Kind of the records of changes, under a number each."""
FREE = (
    "budget",
    "stop",
    "page",
    "provider",
    "crowd.annotators",
    "aggregate.families",
    "redundancy.per_family",
    "prices.per_check",
    "prices.hour",
    "value",
)
"""Sections, and keys of some, that may change."""
LABELS = ("task.labels", "task.types")
"""Keys whose lists may grow."""
_WHY = {
    "task": "the answers are of this task",
    **dict.fromkeys(
        LABELS,
        "the answers are of this task: labels can be added, not removed, renamed or reordered: put "
        "them back as they were; the guideline may tell annotators not to use a label, and labels "
        "can be renamed when the export is read (`--label OLD=NEW`)",
    ),
    "pool": "the items were taken from it",
    "prices": "answers were paid at these prices",
    "seed": "all random draws depend on it",
}


def begin(inputs: CampaignInputs, ledger: SqlLedger, now: int) -> list[str]:
    """Put plan, pool and guideline in force, and return what is to be told of it, a line each."""
    # Everything is checked before anything is kept
    plan, cap = inputs.plan.model_dump(mode="json"), inputs.plan.cap
    has_begun = _has_begun(ledger)
    changed = _changed(inputs, ledger) if has_begun else []
    guideline = describe_guideline(inputs.plan, inputs.guideline)
    if has_begun:
        _check_items(inputs, ledger)
        _refuse(changed)
        _check_cap(cap, ledger)
    lines, n_items = [_line(*one) for one in changed], len(inputs.ids)
    added, notes = _add_pool(inputs, ledger, now, is_new=not has_begun)
    if not has_begun:
        facts = {
            "id": inputs.key, "plan": plan, "versions": versions(),
            "method": inputs.plan.method,
        }  # fmt: skip
        ledger.record("plan", "plan", {**facts, "items": n_items}, now)
    else:  # a kill may have come after they were added
        added = max(
            added, n_items - int({**ledger.records("plan")["plan"], **_last(ledger)}["items"])
        )
        lines += [f"{added} items were added to the pool"] if added else []
    # Before the plan, which says which labels there were: a kill may come between the two.
    told = _begin_version(guideline, inputs, ledger, now)
    if lines:
        _keep(plan, lines, n_items, ledger, now)
    if ledger.totals().cap != cap:
        ledger.set_cap(cap, now)
    return [*(f"changed: {line}" for line in lines), *told, *(f"pool: {note}" for note in notes)]


# --------------------------------------------------------------------------------------------------
# Versions of the label set and the guideline: every answer is of the one in force when it came.


VERSION = "version"
"""Kind of the records of versions, under the numbers 1, 2, …"""


def describe_guideline(plan: Plan, text: str) -> dict[str, Any]:
    """Return the label set and guideline of a plan, with a hash of both."""
    found = {"labels": list(plan.task.labels or plan.task.types), "text": text}
    if plan.task.layers:
        every = [(one.name, name) for one in plan.task.layers for name in one.types or one.labels]
        found["labels"] = [f"{layer}: {name}" for layer, name in every]
    words = json.dumps(found, sort_keys=True, ensure_ascii=False)
    return {**found, "hash": sha256(words.encode()).hexdigest()}


def _begin_version(
    now_valid: dict[str, Any], inputs: CampaignInputs, ledger: SqlLedger, now: int
) -> list[str]:
    """Begin a version if labels or guideline changed; return a line about it."""
    before = list(ledger.records(VERSION).values())
    if not before:
        ledger.begin_version(now_valid, inputs.plan.tagset, now)
        before = [now_valid]
    if before[-1]["hash"] == now_valid["hash"]:
        return []
    number = ledger.begin_version(now_valid, inputs.plan.tagset, now)
    return [f"guideline: version {number} from now on: {_what_changed(before[-1], now_valid)}"]


def _what_changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the difference of two versions in words."""
    added = [label for label in new["labels"] if label not in old["labels"]]
    found = [f"labels added: {', '.join(added)}"] if added else []
    if old["text"] != new["text"]:
        found.append("the instructions changed")
    return "; ".join(found)


def guideline_versions(ledger: SqlLedger, crowd: Crowd) -> list[dict[str, Any]]:
    """Return the versions of label set and guideline, the first one first."""
    wall, given = WallTimes(ledger), crowd.latest.guideline
    rows = list(ledger.records(VERSION).values())
    counts = np.zeros(len(rows) + 1, int)
    if given is not None:
        counts = np.bincount(given[given > 0], minlength=len(rows) + 1)
    return [
        {
            "version": n, "labels": row["labels"], "hash": row["hash"], "time": wall(row["time"]),
            "answers": int(counts[n]),
        }
        for n, row in enumerate(rows, start=1)
    ]  # fmt: skip


# --------------------------------------------------------------------------------------------------
# What changed, what may change, and how it is kept.


def _add_pool(
    inputs: CampaignInputs, ledger: SqlLedger, now: int, *, is_new: bool
) -> tuple[int, list[str]]:
    """Add the items of the pool that the ledger lacks; return how many, and what is to be told."""
    try:
        added = ledger.add_items(inputs.items(), now)
    except FaultsError as error:
        if is_new or not any(fault.kind == "duplicate-item" for fault in error.faults):
            raise
        raise FaultsError(error.faults, _unlike(inputs)) from None
    return added, list(inputs.notes) if is_new else []


def _unlike(inputs: CampaignInputs) -> str:
    file = inputs.plan.pool.file
    if not inputs.numbered:
        return f"{file}: items are not what they were when the campaign took them"
    return (
        f"{file}: items are not what they were when the campaign took them. They have no ids, and "
        "are known by their number in the file: add new ones at its end, and change, move and "
        "remove none"
    )


def pending(inputs: CampaignInputs, ledger: SqlLedger) -> list[str]:
    """Return what of the plan file comes in force at the next start, a line each."""
    # What may not change is left out: it is refused then, or an option was given in its place
    if not _has_begun(ledger):
        return []
    lines = [_line(*one) for one in _changed(inputs, ledger) if _may_change(*one)]
    known = list(ledger.records(VERSION).values())
    found = describe_guideline(inputs.plan, inputs.guideline)
    if known and known[-1]["hash"] != found["hash"]:
        lines.append(f"guideline, version {len(known) + 1}: {_what_changed(known[-1], found)}")
    return lines


def _changed(inputs: CampaignInputs, ledger: SqlLedger) -> list[tuple[str, Any, Any]]:
    """Return the keys in which the plan differs from the one in force, with both values."""
    kept = plan_in_force(ledger)
    plan, in_force = inputs.plan.model_dump(mode="json"), _completed(kept)
    if "annotators" not in kept.get(
        "crowd", {}
    ):  # a store that can forget people keeps no names of them
        plan["crowd"].pop("annotators")
        in_force.get("crowd", {}).pop("annotators", None)
    found = _differences(in_force, plan)
    return [one for one in found if not _is_the_same(*one, inputs)]


def _has_begun(ledger: SqlLedger) -> bool:
    return "plan" in ledger.records("plan")


def plan_in_force(ledger: SqlLedger) -> dict[str, Any]:
    """Return the plan that a campaign began with, with all that changed since."""
    return {**ledger.records("plan")["plan"]["plan"], **_last(ledger).get("sections", {})}


def changes(ledger: SqlLedger) -> list[str]:
    """Return what changed in the plan since the campaign began, a line each, in order."""
    return [line for one in ledger.records(CHANGE).values() for line in one["changed"]]


def reopened(ledger: SqlLedger) -> dict[str, int]:
    """Return the rounds that had stopped the campaign before a change, and its number."""
    return {
        body["stopped"]: int(number)
        for number, body in ledger.records(CHANGE).items()
        if body["stopped"]
    }


def _keep(
    plan: Mapping[str, Any], lines: list[str], n_items: int, ledger: SqlLedger, now: int
) -> None:
    """Keep what changed; a stopped campaign decides again whether to stop."""
    stops = list(ledger.records("stop").items())
    stopped = stops[-1][0].partition(".")[0] if stops and stops[-1][1]["stop"] else ""
    free = {key.partition(".")[0] for key in (*FREE, *LABELS)}
    sections = {name: plan[name] for name in plan if name in free}
    if "value" in plan_in_force(ledger):
        sections.setdefault("value", {})  # it is left out where it is not set
    body = {
        "sections": sections,
        "changed": lines,
        "items": n_items,
        "stopped": stopped,
    }
    ledger.record(CHANGE, f"{len(ledger.records(CHANGE)) + 1}", body, now)


def _check_cap(cap: int, ledger: SqlLedger) -> None:
    """Reject a cap below what is used, before anything is kept."""
    totals = ledger.totals()
    used = totals.spent + totals.reserved
    if cap < used:
        raise InputError(
            f"budget.money: {from_micro(cap)} are less than the {from_micro(used)} that are spent "
            "or reserved already; nothing was changed"
        )


def _check_items(inputs: CampaignInputs, ledger: SqlLedger) -> None:
    """Reject a pool from which items are gone that were asked about."""
    there = set(inputs.ids)
    gone = [item for item in ledger.slots()["item"].to_pylist() if item not in there]
    if gone:
        raise InputError(
            f"pool.file: {len(gone)} items that were asked about are gone from "
            f"{inputs.plan.pool.file}: {', '.join(gone[:5])}: give them back; nothing was changed"
        )


def _is_the_same(key: str, old: Any, new: Any, inputs: CampaignInputs) -> bool:
    """Return whether a key may only say what held without it: the store compares the items."""
    if key == "task.tokens":
        return {old, new} <= {None, "fine", "given"}
    if key == "pool.format":
        return {old, new} == {None, "text"} and inputs.plan.pool.file.lower().endswith(".txt")
    return key in {"pool.text", "pool.id", "pool.document"}


def _refuse(changed: list[tuple[str, Any, Any]]) -> None:
    wrong = [one for one in changed if not _may_change(*one)]
    if not wrong:
        return
    told = "; ".join(f"{_line(*one)} ({_why(one[0])})" for one in wrong)
    raise InputError(
        f"the store holds this campaign with another plan: {told}: only "
        f"{', '.join(FREE)} may change once it has begun, and labels of a single question may be "
        "added; run it with the plan that it began with, or choose another store"
    )


def _may_change(key: str, old: Any, new: Any) -> bool:
    if key in LABELS:
        return set(old) < set(new)
    return any(key == free or key.startswith(f"{free}.") for free in FREE)


def _why(key: str) -> str:
    return _WHY.get(key) or _WHY.get(key.partition(".")[0], "what was decided rests on it")


def _completed(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan with the keys that goldspan has learned since it was kept."""
    try:
        return Plan.model_validate_json(json.dumps(plan)).model_dump(mode="json")
    except ValueError:  # of an older goldspan; what differs is told
        return dict(plan)


def _last(ledger: SqlLedger) -> dict[str, Any]:
    changes = list(ledger.records(CHANGE).values())
    return changes[-1] if changes else {}


def _differences(
    old: Mapping[str, Any], new: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for key in {**old, **new}:
        before, now, path = old.get(key), new.get(key), f"{above}{key}"
        if path == "task.layers":
            before, now = _by_name(before), _by_name(now)
        if path == "value":
            before, now = before or {}, now or {}
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from _differences(before, now, f"{path}.")
        elif before != now:
            yield path, before, now


def _by_name(layers: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return layers by their names, with their order, so that it is told what of which changed."""
    rows = {one["name"]: one for one in layers or ()}
    return {**rows, "(order)": [*rows]}


def _line(key: str, old: Any, new: Any) -> str:
    return f"{key} was {_shown(old)} and is {_shown(new)}"


def _shown(value: Any) -> str:
    return "not set" if value is None else repr(value)
