"""The server's secret: made at the first start, kept beside the store, never a default.

Every use has a key of its own, derived from the secret by BLAKE2b, so that what was signed for one
purpose says nothing for another.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from goldspan.errors import InputError
from goldspan.old_name import variable

FILE = "server.key"
VARIABLE = "GOLDSPAN_SECRET_FILE"
LEAST_BYTES = 32
LEAST_KINDS = 8
"""Of different bytes: a file of zeros is no secret."""


@dataclass(frozen=True)
class Keys:
    """The keys that are derived from a secret.

    Attributes:
        root: The key of keys, 32 bytes; never shown.
    """

    root: bytes = field(repr=False)

    @classmethod
    def new(cls) -> Keys:
        """Give keys that nobody has, for tests and for a server that forgets."""
        return cls(secrets.token_bytes(32))

    def of(self, purpose: str) -> bytes:
        """Give the key of one purpose, 32 bytes.

        >>> keys = Keys(bytes(range(32)))
        >>> keys.of("links") == keys.of("links"), keys.of("links") == keys.of("csrf")
        (True, False)
        """
        return blake2b(purpose.encode(), key=self.root, digest_size=32).digest()


def load_keys(folder: str | Path) -> Keys:
    """Read the secret, and make it at the first start.

    Args:
        folder: Where `server.key` lies; the file that the variable GOLDSPAN_SECRET_FILE names goes
            before it, and is never made.

    Raises:
        InputError: The file cannot be read or written, others may read it, or it is no secret.
    """
    named = variable(VARIABLE)
    path = Path(named) if named else Path(folder) / FILE
    try:
        if not named:
            _make(path)
            _check_owner(path)
        words = path.read_bytes().strip()
    except OSError as error:
        raise InputError(f"the server's secret {path}: {error.strerror}") from None
    if len(words) < LEAST_BYTES or len(set(words)) < LEAST_KINDS:
        raise InputError(
            f"the server's secret {path} must hold {LEAST_BYTES} random bytes or more, for example "
            "what `openssl rand -hex 32` writes"
        )
    # Part of the scheme, seen by nobody: another value would end all links and sessions, and give
    # all workers other pseudonyms.
    return Keys(blake2b(words, digest_size=32, person=b"karat root").digest())


def _make(path: Path) -> None:
    """Write a new secret where there is none; of two servers that do so, one wins."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        made.unlink()


def _check_owner(path: Path) -> None:
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InputError(
            f"others may read the server's secret {path}: run `chmod 600 {path}`; if somebody may "
            "have read it, delete it instead, and all links and sessions end"
        )
