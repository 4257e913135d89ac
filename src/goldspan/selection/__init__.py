"""Which items to label (active learning): coverage, uncertainty, committees, density, random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goldspan._lazy import lazy
from goldspan.plugins import plugins
from goldspan.selection.registry import DEFAULT, SELECTORS

if TYPE_CHECKING:
    from goldspan.selection.base import Cost as Cost
    from goldspan.selection.base import Selection
    from goldspan.selection.base import Selector as Selector
    from goldspan.selection.features import Features as Features
    from goldspan.selection.pool import Pool as Pool
    from goldspan.selection.schedule import Schedule as Schedule

__getattr__, __dir__, __all__ = lazy(__name__, also=("selectors", "select_items"))


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
            costs, features, random_state.

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
