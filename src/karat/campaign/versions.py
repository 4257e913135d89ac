"""The versions that a campaign began with: karat's, and those of what its numbers depend on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def versions() -> dict[str, str]:
    """Give versions by name; what is not installed is left out.

    >>> versions()["karat"] == __import__("karat").__version__
    True
    """
    from karat import __version__

    found = {"karat": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
