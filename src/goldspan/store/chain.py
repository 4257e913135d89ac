"""The log's chain of hashes: whoever changes an old entry must change all that follow.

hash_n = SHA-256(hash_{n-1} newline canonical JSON of [n, time, kind, body]), in hexadecimal digits;
hash_0 is "". The campaign's row holds the last number and hash, so that a log that was cut off is
seen too.

A log may begin anew (`goldspan.store.erasing`): its first entry is then of kind "begin" and holds
the number and the hash of the last entry before it, onto which it is hashed as any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from goldspan.errors import InputError
from goldspan.protocols import Event
from goldspan.store.engine import StoreError

BEGIN = "begin"
"""Kind of the first entry of a log that took the place of an older one."""


def canonical(value: Any) -> str:
    """Write a value as JSON, always with the same bytes.

    Raises:
        InputError: JSON cannot hold it, or a string holds half a character.

    >>> canonical({"b": 1, "a": ["é"]})
    '{"a":["é"],"b":1}'
    """
    try:
        words = json.dumps(
            value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        words.encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"the store holds what JSON can hold: {error}") from None
    return words


def link(before: str, number: int, time: int, kind: str, body: str) -> str:
    """Hash an entry, its body as canonical JSON, onto the hash before.

    >>> link("", 1, 0, "note", "{}")[:8]
    '29dfb418'
    """
    words = f"{before}\n[{number},{time},{canonical(kind)},{body}]"
    return sha256(words.encode()).hexdigest()


def check_chain(events: Iterable[Event], before: str = "", number: int = 0) -> tuple[int, str]:
    """Check that entries follow each other, and give the last number and hash.

    Args:
        events: The entries, in order.
        before: Hash of the entry before the first.
        number: Its number.

    Raises:
        InputError: An entry is missing or was changed.
    """
    for event in events:
        if not number and event.kind == BEGIN:
            number, before = int(event.body["events"]), str(event.body["head"])
        number += 1
        if event.number != number:
            raise InputError(f"the log is broken: event {number} is missing")
        found = link(before, number, event.time, event.kind, canonical(event.body))
        if found != event.hash:
            raise InputError(f"the log is broken: event {number} was changed")
        before = event.hash
    return number, before


def read_json(words: str) -> Any:
    """Read what `canonical` wrote.

    Raises:
        StoreError: It was damaged since.
    """
    try:
        return json.loads(words)
    except ValueError:
        raise StoreError(
            f"the database is damaged: it holds {words[:40]!r}, which is no JSON: restore a "
            "backup, or import an export; nothing was changed"
        ) from None
