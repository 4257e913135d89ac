"""The server's secret, and what is signed with it."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

from goldspan.errors import InputError

# --------------------------------------------------------------------------------------------------
# The server's secret: created at the first start and kept beside the store


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
        """Return keys that nobody has, for tests and for a server that forgets."""
        return cls(secrets.token_bytes(32))

    def of(self, purpose: str) -> bytes:
        """Return the key of one purpose, 32 bytes.

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
    named = os.environ.get(VARIABLE)
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
    return Keys(blake2b(words, digest_size=32, person=b"goldspan root").digest())


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


# --------------------------------------------------------------------------------------------------
# Signed values: what the server hands out and takes back, unchanged or not at all.


LONGEST = 4_000
"""Characters of a token; longer ones are not looked at."""


class Signer:
    """Signs facts for one purpose (HMAC-SHA-256), and reads what it has signed.

    The facts can be read by whoever has the token: they are signed and not hidden.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, facts: Mapping[str, Any]) -> str:
        """Return the token of facts that JSON can hold."""
        made = self._serializer.dumps(dict(facts))
        return made if isinstance(made, str) else made.decode("ascii")

    def read(self, token: str) -> dict[str, Any] | None:
        """Return the facts of a token; None if this seal has not made it.

        >>> seal = Signer(bytes(32))
        >>> token = seal.sign({"worker": "ann"})
        >>> seal.read(token), seal.read(token[:-1]), Signer(bytes([1])).read(token)
        ({'worker': 'ann'}, None, None)
        """
        if not token.isascii() or len(token) > LONGEST:
            return None
        try:
            facts = self._serializer.loads(token)
        except BadData:
            return None
        return facts if isinstance(facts, dict) else None

    @cached_property
    def _serializer(self) -> URLSafeSerializer:
        how = {"key_derivation": "hmac", "digest_method": sha256}
        # Part of the scheme, seen by nobody: another salt would end all links and sessions.
        return URLSafeSerializer(self._key, salt=b"goldspan", signer_kwargs=how)


def new_id() -> str:
    """Return an id that nobody can guess: 128 random bits."""
    return secrets.token_hex(16)
