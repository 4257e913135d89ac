"""Which items to label (active learning): coverage, uncertainty, committees, density, random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goldspan._lazy import lazy
from goldspan.plugins import plugins
from goldspan.selection.registry import DEFAULT, SELECTORS

if TYPE_CHECKING:
    from goldspan.selection.base import Cost, Selection, Selector
    from goldspan.selection.coverage import StreamingCoverage
    from goldspan.selection.features import Features
    from goldspan.selection.pool import Pool
    from goldspan.selection.schedule import Schedule

__all__ = [
    "Cost",
    "Features",
    "Pool",
    "Schedule",
    "Selector",
    "StreamingCoverage",
    "select_items",
    "selectors",
]

_HOME = {
    "Cost": "goldspan.selection.base",
    "Features": "goldspan.selection.features",
    "Pool": "goldspan.selection.pool",
    "Schedule": "goldspan.selection.schedule",
    "Selector": "goldspan.selection.base",
    "StreamingCoverage": "goldspan.selection.coverage",
}

__getattr__ = lazy(__name__, _HOME)


def selectors() -> dict[str, str]:
    """Return the rules by name with one line about each."""
    known = {name: summary for name, (_, summary) in SELECTORS.items()}
    return {**plugins("goldspan.selectors"), **known}


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
    from goldspan.selection.schedule import read_selector

    return read_selector(by).select(pool, **given)
