"""The plan as a table, and the versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.report.campaign.numbers import Numbers

ORDER = (
    "task", "pool", "crowd", "redundancy", "control", "judging", "prices", "budget", "select",
    "aggregate", "model", "evaluate", "stop",
)  # fmt: skip
"""Sections as they are read; others follow."""


def plan_rows(record: Numbers) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Give the plan by section; what was left open is left out, defaults are told.

    Returns:
        The section, "" for what stands outside of all, and its keys with lines of values.
    """
    plain = [(k, _lines(v)) for k, v in record.plan.items() if not isinstance(v, Mapping)]
    found = [("campaign", [*plain, ("id", [record.id])])]
    for name in [*ORDER, *(key for key in record.plan if key not in ORDER)]:
        section = record.plan.get(name)
        if isinstance(section, Mapping):
            rows = [(key, _lines(value)) for key, value in section.items() if _is_told(value)]
            if rows:
                found.append((name, rows))
    return found


def _is_told(value: Any) -> bool:
    return value is not None and value not in ([], {}, (), "")


def _lines(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, Mapping):
        return [f"{key} = {each}" for key, each in value.items()]
    if isinstance(value, list | tuple):
        words = [str(each) for each in value]
        return [", ".join(words)] if max(map(len, words), default=0) < 16 else words
    return [str(value)]
