"""Beginning a campaign, or taking it up again with a plan that may have changed in its limits.

Money, hours, stopping rules, what a page says and where workers come from may change while a
campaign runs: what was decided by then stays decided, and a campaign that had stopped is asked
again whether to. All else is what its answers and decisions rest on, and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from goldspan.campaign.plan import Plan
from goldspan.campaign.setting import Setting, begun_tokens
from goldspan.campaign.versions import versions
from goldspan.errors import FaultsError, InputError
from goldspan.money import from_micro
from goldspan.protocols import Ledger

CHANGE = "change"
"""Kind of the records of changes, under a number each."""
TOLD = "told"
"""Kind of the records of what is told once."""
FREE = ("budget", "stop", "page", "provider", "crowd.annotators")
"""Sections, and a key of one, that may change."""
_WHY = {
    "task": "the answers are of this task",
    "pool": "the items were taken from it",
    "prices": "answers were paid at these prices",
    "seed": "all that was drawn goes on from it",
}


def begin(setting: Setting, ledger: Ledger, now: int) -> list[str]:
    """Keep the plan, or what changed in it, and say what did, a line each.

    Raises:
        InputError: It is another plan, items are gone, or the cap is below what is used up.
    """
    plan = setting.plan.model_dump(mode="json")
    there = ledger.records("plan").get("plan")
    if there is None:
        facts = {"id": setting.key, "plan": plan, "versions": versions(), "tokens": setting.tokens}
        ledger.record("plan", "plan", facts, now)
        return []
    _check_tokens(setting, ledger)
    _check_items(setting, ledger)
    changed = [
        one
        for one in _differences(_completed(plan_in_force(ledger)), plan)
        if not _is_the_same(*one, setting)
    ]
    _refuse(changed)
    if changed:
        _check_cap(setting.plan.cap, ledger)
        _keep(plan, changed, ledger, now)
    cap = setting.plan.cap
    if ledger.totals().cap != cap:
        ledger.set_cap(cap, now)
    return [_line(key, old, new) for key, old, new in changed]


def add_pool(setting: Setting, ledger: Ledger, now: int) -> list[str]:
    """Add the items of the pool that the ledger lacks, and return what is to be told of it.

    Items of a campaign that version 0.1 began get their texts, which it did not keep.

    Raises:
        FaultsError: An item is faulty, or is not what it was when the campaign took it.
    """
    # There is no count of the items without reading them: the first pool goes in without a word.
    is_new = not ledger.records("picks")
    try:
        added = ledger.add_items(setting.items(), now)
    except FaultsError as error:
        if is_new or not any(fault.kind == "duplicate-item" for fault in error.faults):
            raise
        raise FaultsError(error.faults, _unlike(setting)) from None
    told = [] if is_new or not added else [f"{added} new items were added"]
    if "tokens" not in ledger.records("plan")["plan"] and not ledger.records(TOLD):
        lost = _without_text(setting, ledger)
        ledger.record(TOLD, "texts", {"lost": lost}, now)
        if lost:
            told.append(
                f"{lost} items were stored without their texts by an older version, and are gone "
                f"from {setting.plan.pool.file}: what is written of them shows their tokens with "
                "blanks between"
            )
    return told


def _unlike(setting: Setting) -> str:
    file = setting.plan.pool.file
    if not setting.numbered:
        return f"{file}: items are not what they were when the campaign took them"
    return (
        f"{file}: items are not what they were when the campaign took them. They have no ids, and "
        "are known by their number in the file: add new ones at its end, and change, move and "
        "remove none"
    )


def _without_text(setting: Setting, ledger: Ledger) -> int:
    if setting.pool.text is None:
        return 0
    return len(set(ledger.crowd("pool").item_ids.to_pylist()) - set(setting.ids))


def plan_in_force(ledger: Ledger) -> dict[str, Any]:
    """Give the plan that a campaign began with, with all that changed since.

    Raises:
        KeyError: None has begun.
    """
    return {**ledger.records("plan")["plan"]["plan"], **_last(ledger).get("sections", {})}


def reopened(ledger: Ledger) -> dict[str, int]:
    """Give the rounds that had stopped the campaign before a change, and its number."""
    return {
        body["stopped"]: int(number)
        for number, body in ledger.records(CHANGE).items()
        if body["stopped"]
    }


def _keep(plan: Mapping[str, Any], changed: list[Any], ledger: Ledger, now: int) -> None:
    stops = list(ledger.records("stop").items())
    stopped = stops[-1][0].partition(".")[0] if stops and stops[-1][1]["stop"] else ""
    body = {
        "sections": {name: plan[name] for name in (one.partition(".")[0] for one in FREE)},
        "changed": [_line(*one) for one in changed],
        "stopped": stopped,
    }
    ledger.record(CHANGE, f"{len(ledger.records(CHANGE)) + 1}", body, now)


def _check_cap(cap: int, ledger: Ledger) -> None:
    """Refuse a cap below what is used, before the change is kept."""
    totals = ledger.totals()
    used = totals.spent + totals.reserved
    if cap < used:
        raise InputError(
            f"budget.money: {from_micro(cap)} are less than the {from_micro(used)} that are spent "
            "or reserved already; nothing was changed"
        )


def _check_tokens(setting: Setting, ledger: Ledger) -> None:
    """Refuse texts that are cut by another rule than the campaign's."""
    rule = begun_tokens(ledger)
    if rule != setting.tokens:
        raise InputError(
            f"this campaign cuts its texts by the rule {rule!r}, and they were read by "
            f"{setting.tokens!r}: open its files with goldspan.campaign.as_begun(setting, ledger)"
        )


def _check_items(setting: Setting, ledger: Ledger) -> None:
    """Refuse a pool from which items are gone that were asked about."""
    there = set(setting.ids)
    gone = [item for item in ledger.slots()["item"].to_pylist() if item not in there]
    if gone:
        raise InputError(
            f"pool.file: {len(gone)} items that were asked about are gone from "
            f"{setting.plan.pool.file}: {', '.join(gone[:5])}: give them back; nothing was changed"
        )


def _is_the_same(key: str, old: Any, new: Any, setting: Setting) -> bool:
    """Return whether a key may only say what held without it: the store compares the items."""
    if key == "task.tokens":
        return setting.tokens == "fine" and {old, new} <= {None, "fine", "given"}
    if key == "pool.format":
        return {old, new} == {None, "text"} and setting.plan.pool.file.lower().endswith(".txt")
    return key in {"pool.text", "pool.id", "pool.document"}


def _refuse(changed: list[tuple[str, Any, Any]]) -> None:
    wrong = [one for one in changed if not {one[0], one[0].partition(".")[0]} & {*FREE}]
    if not wrong:
        return
    told = "; ".join(f"{_line(*one)} ({_why(one[0])})" for one in wrong)
    raise InputError(
        f"the store holds this campaign with another plan: {told}: only "
        f"{', '.join(FREE)} may change once it has begun; run it with the plan that it "
        "began with, or choose another store"
    )


def _why(key: str) -> str:
    return _WHY.get(key.partition(".")[0], "what was decided rests on it")


def _completed(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Give a plan with the keys that goldspan has learned since it was kept."""
    try:
        return Plan.model_validate_json(json.dumps(plan)).model_dump(mode="json")
    except ValueError:  # of an older goldspan; what differs is told
        return dict(plan)


def _last(ledger: Ledger) -> dict[str, Any]:
    changes = list(ledger.records(CHANGE).values())
    return changes[-1] if changes else {}


def _differences(
    old: Mapping[str, Any], new: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for key in {**old, **new}:
        before, now, path = old.get(key), new.get(key), f"{above}{key}"
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from _differences(before, now, f"{path}.")
        elif before != now:
            yield path, before, now


def _line(key: str, old: Any, new: Any) -> str:
    return f"{key} was {_shown(old)} and is {_shown(new)}"


def _shown(value: Any) -> str:
    return "not set" if value is None else repr(value)
