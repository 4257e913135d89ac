"""Public names that are imported at first use (PEP 562), for the packages of goldspan."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

from goldspan.errors import MissingExtraError, UnavailableError


def lazy(
    package: str,
    *,
    also: Collection[str] = (),  # Public names that the package's own file defines
    extra: str = "",  # The extra of goldspan that the names need, if they need one
    needs: Collection[str] = (),  # Names of the modules that this extra installs
    purpose: str = "",  # What is not available without it, for the message
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make a package's `__getattr__`, `__dir__` and `__all__` from its list of re-exports.

    The list is the one that type checkers read: the lines `from module import name as name` of
    the package's file, most of them under `if TYPE_CHECKING`.

    Where an optional package is missing, `from package import name` raises `MissingExtraError`,
    and attribute access an AttributeError with the same message, so that `hasattr` is False.

    >>> get, names, _ = lazy("goldspan")
    >>> get("Span").__name__, names()[:2]
    ('Span', ['Consensus', 'Crowd'])
    """
    home = _exports(package)
    public = sorted({*home, *also})

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

    return get, lambda: list(public), public


def _exports(package: str) -> dict[str, str]:
    """Return the module of each name that a package's file re-exports by `name as name`."""
    source = sys.modules[package].__spec__.loader.get_source(package)  # type: ignore[union-attr]
    return {
        alias.name: node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if alias.asname == alias.name
    }


def _is_from_import() -> bool:
    """Whether a module's `__getattr__` was called by `from … import …`.

    Python replaces an AttributeError there by one of its own, and the message would be lost.
    """
    frame = sys._getframe(2)  # noqa: SLF001 - of the caller of `get`
    return frame.f_code.co_name == "_handle_fromlist"
