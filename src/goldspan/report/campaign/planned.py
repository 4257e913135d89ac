"""The plan as a table, and the versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from goldspan.report.campaign.numbers import Numbers

ORDER = (
    "task", "pool", "crowd", "redundancy", "control", "judging", "prices", "budget", "select",
    "aggregate", "model", "evaluate", "stop",
)  # fmt: skip
"""Sections as they are read; others follow."""
CHANGED = "changed since"


def plan_rows(record: Numbers) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Give the plan in force by section; what was left open is left out, defaults are told.

    Returns:
        The section, and its keys with lines of values: "campaign" for what stands outside of all,
        and "changed since" for what changed while the campaign ran.
    """
    plain = [(k, _lines(v)) for k, v in record.plan.items() if not isinstance(v, Mapping)]
    found = [("campaign", [*plain, ("id", [record.id])])]
    for name in [*ORDER, *(key for key in record.plan if key not in ORDER)]:
        section = record.plan.get(name)
        if isinstance(section, Mapping) and not (name == "prices" and record.money is None):
            rows = [(key, _lines(value)) for key, value in section.items() if _is_told(value)]
            if rows:
                found.append((name, rows))
    if record.changes:
        found.append((CHANGED, list(_changes(record))))
    return found


def _changes(record: Numbers) -> Iterator[tuple[str, list[str]]]:
    """Give the sections that changed, with a line per change."""
    lines: dict[str, list[str]] = {}
    for line in record.changes:
        path, _, what = line.partition(" ")
        section, _, key = path.partition(".")
        lines.setdefault(section, []).append(f"{key} {what}".strip())
    yield from lines.items()


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
