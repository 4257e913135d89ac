"""Public names that are imported at first use (PEP 562), for the packages of goldspan."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """Make a module `__getattr__`.

    Args:
        package: `__name__` of the package.
        home: The module that each public name lives in.

    >>> get = lazy("goldspan", {"Span": "goldspan.spans"})
    >>> get("Span").__name__
    'Span'
    """

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
