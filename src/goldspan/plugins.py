"""What is loaded by its name: entries of registries, and what other packages add to goldspan."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


def load(place: str) -> Any:
    """Import what "module:name" names.

    >>> load("math:sqrt")(4)
    2.0
    """
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@cache
def plugins(group: str) -> dict[str, str]:
    """Return the names and values of an entry-point group.

    Looking through all installed packages takes a fifth of a second, so it is done once, and only
    when a name is not goldspan's own.

    Args:
        group: "goldspan.formats", "goldspan.methods", "goldspan.selectors", "goldspan.workers" or
            "goldspan.models".

    >>> plugins("goldspan.no-such-group")
    {}
    """
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=group)}
