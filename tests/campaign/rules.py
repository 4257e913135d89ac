"""Functions that label the items of the tiny campaign."""

from __future__ import annotations

import os
import random
from pathlib import Path

from campaign.tiny import WORDS


def weather(items):
    """Label by the words."""
    return ["rain" if any(word in WORDS["rain"] for word in one.text.split()) else "sun"
            for one in items]  # fmt: skip


def by_layer(items):
    """Answer two questions: what the weather is, and which word says so."""
    return [
        {"sky": sky, "words": [(0, one.text.index(" "), "SIGN")]}
        for sky, one in zip(weather(items), items, strict=True)
    ]


def every_second(items):
    """Label items with even numbers."""
    found = weather(items)
    return [
        label if int(item.id[1:]) % 2 == 0 else None
        for label, item in zip(found, items, strict=True)
    ]


def places(items):
    """Mark the words with a capital letter that do not begin the text."""
    return [
        ["B-LOC" if n and word[0].isupper() else "O" for n, word in enumerate(item.tokens)]
        for item in items
    ]


def drawn(items):
    """Label at random, and note in the file that the environment names what was asked about."""
    with Path(os.environ["DRAWN"]).open("a") as out:
        out.write("".join(f"{item.id}\n" for item in items))
    return [random.choice(["rain", "sun"]) for _ in items]


def by_place(items):
    """Label by the place in the batch."""
    return [["rain", "sun"][n % 2] for n in range(len(items))]
