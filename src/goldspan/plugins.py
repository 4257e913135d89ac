"""What is loaded by its name: entries of registries, and what other packages add to goldspan."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from typing import Any

from goldspan.old_name import OLD_NAME, OldNameWarning


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
    when a name is not goldspan's own. A package that still uses the group's old name is warned of.

    Args:
        group: "goldspan.formats", "goldspan.methods", "goldspan.selectors", "goldspan.workers" or
            "goldspan.models".

    >>> plugins("goldspan.no-such-group")
    {}
    """
    from importlib.metadata import entry_points

    found = {point.name: point.value for point in entry_points(group=group)}
    old = group.replace("goldspan", OLD_NAME, 1)
    for point in entry_points(group=old):
        if point.name not in found:
            package = point.dist.name if point.dist else point.value
            message = (
                f"{package} adds {point.name!r} under {old}, the old name of {group}: update it"
            )
            warnings.warn(message, OldNameWarning, stacklevel=1)
            found[point.name] = point.value
    return found
