"""Keys of answers: what makes sending one again change nothing."""

from __future__ import annotations

import json
from hashlib import blake2b


def key_of(item: str, worker: str, attempt: int = 0) -> str:
    """Give the key of a worker's answer to an item; names may be long and hold any sign.

    Under a key an answer that did not count never does: to send it again takes another attempt.

    >>> key_of("d:1", "ann") == key_of("d", "1:ann")
    False
    """
    words = [item, worker, attempt] if attempt else [item, worker]
    return blake2b(json.dumps(words).encode(), digest_size=16).hexdigest()
