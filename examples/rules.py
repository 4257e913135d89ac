"""A function that labels: `goldspan label FILE --labels NAME -w python:examples.rules:label`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goldspan.protocols import PoolItem

NAME = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][a-z]+(?: (?:& )?[A-Z][a-z]+)*")


def label(items: Sequence[PoolItem]) -> list[list[dict[str, object]]]:
    """Mark words with a capital letter that do not begin a sentence."""
    return [
        [
            {"start": m.start(), "end": m.end(), "label": "NAME"}
            for m in NAME.finditer(item.text or "")
        ]
        for item in items
    ]
