"""What of the desk's views a caller sees who may not see all: no money, no names, no free texts.

Views are computed whole, and masked last, just before they are sent. The requester's session has
every scope, and gets them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from goldspan.web.desk import models as m
from goldspan.web.security.access import MONEY, PEOPLE, RESULTS, Caller

BLOCKED = "The campaign does not go on. The desk of the requester says why."
OTHER = "Another reason"
"""In place of a reason that is not one of those that the page offers."""
WITH_MONEY = frozenset({"bill.csv", "record.json", "report.html"})
"""Files that hold amounts."""
WITH_NAMES = frozenset({"bill.csv"})
"""Files that name the annotators, whatever was asked for."""


def overview(view: m.Overview, caller: Caller) -> m.Overview:
    """Return the overview without money, and without lines that may hold money or names."""
    changed: dict[str, object] = {}
    if not caller.may(MONEY):
        learning, paid = view.learning, view.money is not None
        forecast = learning.forecast and {
            name: facts and without_money(facts, paid=paid)
            for name, facts in learning.forecast.items()
        }
        changed["money"] = None
        changed["rounds"] = [one.model_copy(update={"spent": None}) for one in view.rounds]
        changed["learning"] = learning.model_copy(update={"forecast": forecast})
    if not caller.may(PEOPLE):
        changed |= {"error": BLOCKED if view.error else "", "advice": "", "warnings": []}
    if not (caller.may(MONEY) and caller.may(PEOPLE)):
        # Changes of the plan are told in words: amounts and names of annotators are among them.
        budget = dict(view.plan.budget)
        if not caller.may(MONEY):
            budget["money"] = None
        told = {"budget": budget, "changes": [], "pending": []}
        changed["plan"] = view.plan.model_copy(update=told)
    return view.model_copy(update=changed) if changed else view


def without_money(facts: Mapping[str, Any], *, paid: bool) -> dict[str, Any]:
    """Return a part of the forecast without amounts; how far the target is, is one if `paid`."""
    end = facts.get("end")
    if end and paid:
        end = {name: value if name == "chance" else None for name, value in end.items()}
    return {**facts, "cost": None, **({"end": end} if "end" in facts else {})}


def agreement(view: m.Agreement, caller: Caller) -> m.Agreement:
    """Return the measures of all annotators together: those of single ones and pairs name them."""
    if view.measures is None or caller.may(PEOPLE):
        return view
    plain = {k: v for k, v in view.measures.items() if v is None or isinstance(v, int | float)}
    return view.model_copy(update={"measures": plain})


def workers(views: Sequence[m.Worker], caller: Caller) -> list[m.Worker]:
    """Return the annotators without what they earned."""
    if caller.may(MONEY):
        return list(views)
    return [one.model_copy(update={"earned": None}) for one in views]


def item(
    view: m.Item, caller: Caller, names: Callable[[str], str], reasons: Collection[str]
) -> m.Item:
    """Return an item without payments, names and what annotators wrote.

    With the scope "results" annotators have the pseudonyms of downloads. Who only reviews sees
    neither these nor times, and no gold question.
    """
    changed: dict[str, object] = {}
    answers = view.answers
    if not caller.may(PEOPLE):
        rows = [row.worker for part in (view.answers, view.skipped, view.flags) for row in part]
        known = {one: f"annotator {n}" for n, one in enumerate(dict.fromkeys(rows), start=1)}
        name = names if caller.may(RESULTS) else known.__getitem__
        answers = [one.model_copy(update={"worker": name(one.worker)}) for one in answers]

        def said(row: m.Skip) -> dict[str, str]:
            reason = row.reason if row.reason in reasons else OTHER
            return {"worker": name(row.worker), "reason": reason}

        changed["skipped"] = [one.model_copy(update=said(one)) for one in view.skipped]
        changed["flags"] = [one.model_copy(update={**said(one), "note": ""}) for one in view.flags]
    if not caller.may(MONEY):
        answers = [one.model_copy(update={"paid": None}) for one in answers]
    if not caller.may(RESULTS):
        unknown = {"submitted": None, "seconds": None}
        answers = [one.model_copy(update=unknown) for one in answers]
    return view.model_copy(update={**changed, "answers": answers})


def files(views: Sequence[m.Export], caller: Caller) -> list[m.Export]:
    """Return the files that the caller may download."""
    return [one for one in views if all(map(caller.may, file_scopes(one.name)))]


def file_scopes(name: str, *, names: bool = False) -> list[str]:
    """Return the scopes that a file needs.

    >>> file_scopes("gold.csv"), file_scopes("bill.csv"), file_scopes("gold.csv", names=True)
    (['results'], ['results', 'people', 'money'], ['results', 'people'])
    """
    found = [RESULTS]
    found += [PEOPLE] if names or name in WITH_NAMES else []
    return found + ([MONEY] if name in WITH_MONEY else [])
