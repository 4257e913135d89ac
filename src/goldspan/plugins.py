"""What other packages add to goldspan: formats and methods under entry-point groups."""

from __future__ import annotations

from functools import cache


@cache
def plugins(group: str) -> dict[str, str]:
    """Give the names and values of an entry-point group.

    Looking through all installed packages takes a fifth of a second, so it is done once, and only
    when a name is not goldspan's own.

    Args:
        group: "goldspan.formats", "goldspan.methods" or "goldspan.workers".

    >>> plugins("goldspan.no-such-group")
    {}
    """
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=group)}
