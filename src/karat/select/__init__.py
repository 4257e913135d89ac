"""Which items to label: coverage, uncertainty, committees, density, random (paper 003; MATH 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat._lazy import lazy
from karat.plugins import plugins
from karat.select.registry import DEFAULT, SELECTORS

if TYPE_CHECKING:
    from karat.select.base import Selector
    from karat.select.budget import Budget, Cost
    from karat.select.features import Features
    from karat.select.incidence import Incidence
    from karat.select.parsing import get_selector, read_selector
    from karat.select.pool import Pool
    from karat.select.schedule import Schedule
    from karat.select.selection import Selection
    from karat.select.stream import StreamingCoverage

__all__ = [
    "Budget",
    "Cost",
    "Features",
    "Incidence",
    "Pool",
    "Schedule",
    "Selection",
    "Selector",
    "StreamingCoverage",
    "get_selector",
    "read_selector",
    "select_items",
    "selectors",
]

_HOME = {
    "Budget": "karat.select.budget",
    "Cost": "karat.select.budget",
    "Features": "karat.select.features",
    "Incidence": "karat.select.incidence",
    "Pool": "karat.select.pool",
    "Schedule": "karat.select.schedule",
    "Selection": "karat.select.selection",
    "Selector": "karat.select.base",
    "StreamingCoverage": "karat.select.stream",
    "get_selector": "karat.select.parsing",
    "read_selector": "karat.select.parsing",
}

__getattr__ = lazy(__name__, _HOME)


def selectors() -> dict[str, str]:
    """Give the rules by name with one line about each."""
    known = {name: summary for name, (_, summary) in SELECTORS.items()}
    return {**plugins("karat.selectors"), **known}


def select_items(pool: Any, by: Any = DEFAULT, **given: Any) -> Selection:
    """Choose items to label.

    Args:
        pool: A `Crowd`, a list of texts or of lists of words, a DataFrame of attributes, a matrix.
        by: A rule or a schedule: "coverage", "mnlp(top=3)", "coverage, then mnlp, 10% random".
        given: What else is known, as for `Selector.select`: labelled, errors, model, budget, n,
            costs, features, runner, random_state.

    Returns:
        The items in the order of picking, with gains, costs and reasons.

    Raises:
        UnknownNameError: There is no such rule.
        InputError: Something makes no sense.

    >>> texts = ["Rome is old .", "Rome is very old .", "It rains ."]
    >>> select_items(texts, "coverage-paper", n=2).item.tolist()
    [1, 2]
    """
    from karat.select.parsing import read_selector

    return read_selector(by).select(pool, **given)
