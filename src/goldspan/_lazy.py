"""Public names that are imported at first use (PEP 562), for the packages of goldspan."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

from goldspan.errors import MissingExtraError, UnavailableError


def lazy(
    package: str,
    home: Mapping[str, str],  # The module that each public name lives in
    *,
    extra: str = "",  # The extra of goldspan that the names need, if they need one
    needs: Collection[str] = (),  # Names of the modules that this extra installs
    purpose: str = "",  # What is not available without it, for the message
) -> Callable[[str], Any]:
    """Make a module `__getattr__`.

    Where an optional package is missing, `from package import name` raises `MissingExtraError`,
    and access as an attribute an AttributeError with the same message, so that `hasattr` is False.

    >>> get = lazy("goldspan", {"Span": "goldspan.spans"})
    >>> get("Span").__name__
    'Span'
    """

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(home[name]), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name not in needs:
                raise
            missing = MissingExtraError(error.name, extra, purpose)
        except MissingExtraError as error:
            missing = error
        else:
            setattr(sys.modules[package], name, value)
            return value
        if _is_from_import():
            raise missing from None
        raise UnavailableError(str(missing)) from missing

    return get


def _is_from_import() -> bool:
    """Whether a module's `__getattr__` was called by `from … import …`.

    Python replaces an AttributeError there by one of its own, and the message would be lost.
    """
    frame = sys._getframe(2)  # noqa: SLF001 - of the caller of `get`
    return frame.f_code.co_name == "_handle_fromlist"
