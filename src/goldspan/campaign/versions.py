"""The versions that a campaign began with: goldspan's, and those of what its numbers depend on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def versions() -> dict[str, str]:
    """Give versions by name; what is not installed is left out.

    >>> versions()["goldspan"] == __import__("goldspan").__version__
    True
    """
    from goldspan import __version__

    found = {"goldspan": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
