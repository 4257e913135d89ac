"""Secrets: from the environment or a file that it names, never from a plan."""

from __future__ import annotations

import os
from pathlib import Path

from goldspan.errors import InputError


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
