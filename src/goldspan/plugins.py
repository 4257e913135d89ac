"""What is found by its name: registries, what other packages add to goldspan, and secrets."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from goldspan.errors import InputError


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


def secret_of(name: str) -> str | None:
    """Return a secret: the value of a variable, or the content of the file that NAME_FILE names."""
    value, source = os.environ.get(name), name
    named = os.environ.get(f"{name}_FILE")
    if value is None and named:
        source = f"{name}_FILE"
        try:
            value = Path(named).read_text(encoding="ascii")
        except OSError as error:
            raise InputError(f"{source}: cannot read {named}: {error.strerror}") from None
        except UnicodeDecodeError:
            value = ""
    if value is None:
        return None
    value = value.strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise InputError(f"{source} holds no token: it must be one word of ASCII characters")
    return value
