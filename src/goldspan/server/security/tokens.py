"""Signed values: what the server hands out and takes back, unchanged or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

LONGEST = 4_000
"""Characters of a token; longer ones are not looked at."""


class Seal:
    """Signs facts for one purpose (HMAC-SHA-256), and reads what it has signed.

    The facts can be read by whoever has the token: they are signed and not hidden.

    Args:
        key: Of the purpose: `keys.of("worker link")`.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, facts: Mapping[str, Any]) -> str:
        """Give the token of facts that JSON can hold."""
        made = self._serializer.dumps(dict(facts))
        return made if isinstance(made, str) else made.decode("ascii")

    def read(self, token: str) -> dict[str, Any] | None:
        """Give the facts of a token; None if this seal has not made it.

        >>> seal = Seal(bytes(32))
        >>> token = seal.sign({"worker": "ann"})
        >>> seal.read(token), seal.read(token[:-1]), Seal(bytes([1])).read(token)
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
        return URLSafeSerializer(self._key, salt=b"karat", signer_kwargs=how)


def new_id() -> str:
    """Give an id that nobody can guess: 128 random bits."""
    return secrets.token_hex(16)
