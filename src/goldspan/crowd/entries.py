"""What a builder collects, an item and an answer, and what is wrong with each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from goldspan.errors import Fault

_UNITS = {
    "attempt": "the number of the answer",
    "started": "milliseconds since 1970",
    "submitted": "milliseconds since 1970",
    "cost": "millionths of the currency unit",
    "guideline": "the version of the guideline",
}
_MAX_START = 2**31 - 1


class Item(NamedTuple):
    """One item, as it was given, and where it stands."""

    id: str
    tokens: list[str]
    group: str | None
    text: str | None
    token_start: Sequence[int] | None
    attributes: Mapping[str, Any]
    file: str
    line: int
    token_lines: Sequence[int] | None

    def fault(self, message: str, kind: str, token: int = -1, worker: str = "") -> Fault:
        """Return a fault at this item, or at one of its tokens."""
        line = self.token_lines[token] if self.token_lines and token >= 0 else self.line
        return Fault(message, self.file, line, self.id, token, worker, kind)


class Answer(NamedTuple):
    """One answer but for its tags, as it was given, and where it stands."""

    item: int
    worker: int
    attempt: int | None
    started: int | None
    submitted: int | None
    cost: int | None
    guideline: int | None
    file: str
    line: int
    token_lines: Sequence[int] | None


def item_faults(item: Item) -> list[Fault]:
    """What is wrong with an item by itself, gold aside."""
    faults = []
    if not item.tokens:
        message = "an item without tokens: leave it out, or give it a text"
        faults.append(item.fault(message, "no-tokens"))
    if not all(item.tokens):
        message = "the token is empty: a token has one character at least; leave it out"
        empty = (n for n, token in enumerate(item.tokens) if not token)
        faults += [item.fault(message, "empty-token", n) for n in empty]
    words = {"item id": item.id, "group": item.group, "text": item.text}
    faults += [item.fault(message, kind) for kind, message in string_faults(words)]
    if not _is_whole("".join(item.tokens)):
        for n, token in enumerate(item.tokens):
            wrong = string_faults({"token": token})
            faults += [item.fault(message, kind, n) for kind, message in wrong]
    return faults + _start_faults(item)


def _start_faults(item: Item) -> list[Fault]:
    starts, n_tokens = item.token_start, len(item.tokens)
    if starts is None:
        return []
    if len(starts) != n_tokens:
        message = f"token_start has {len(starts)} numbers for {n_tokens} tokens: give one per token"
        return [item.fault(message, "length")]
    rule = f"token_start must be a number from 0 to {_MAX_START}"
    wrong = (n for n, start in enumerate(starts) if not 0 <= start <= _MAX_START)
    return [item.fault(f"{rule}, not {starts[n]}", "out-of-range", n) for n in wrong]


def number_faults(numbers: Mapping[str, int | None]) -> list[tuple[str, str]]:
    """Kind and message of every number that does not fit in 64 bits."""
    return [
        (
            "out-of-range",
            f"{name} ({_UNITS[name]}) must be a number from {-(2**63)} to {2**63 - 1}, not {value}",
        )
        for name, value in numbers.items()
        if value is not None and not -(2**63) <= value < 2**63
    ]


def string_faults(words: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Kind and message of every string that cannot be written as UTF-8."""
    return [
        ("half-character", f"the {name} {half_character(word)}")
        for name, word in words.items()
        if word is not None and not _is_whole(word)
    ]


def half_character(word: str) -> str:
    """Say that a string cannot be written as UTF-8."""
    return (
        f"{word!r} holds half of a surrogate pair, which no file can hold: it was cut within a "
        "character"
    )


def _is_whole(word: str) -> bool:
    """Whether a string holds whole characters only, no half of a surrogate pair."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
