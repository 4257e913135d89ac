"""A file of answers that came back: read as lines of JSON, and refused whole if any is faulty."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goldspan.errors import Fault, FaultsError, InputError
from goldspan.spans import Codec, parse_with_errors

LONGEST = 400
"""Characters of a worker's name."""
_HALF = "; the file ends in this line: is it still being written? Run again when it is whole"


class Arrived:
    """What answers to a campaign must be.

    Args:
        key: The campaign's id.
        codec: Its tags.
        lengths: Items that were asked about, and how many labels an answer to each has.
    """

    def __init__(self, key: str, codec: Codec, lengths: Mapping[str, int]) -> None:
        self.key, self.codec, self.lengths = key, codec, lengths

    def read(self, file: Path, data: bytes) -> list[dict[str, Any]]:
        """Give the answers of a file.

        Raises:
            FaultsError: Lines are faulty; all are listed, with their numbers.
        """
        rows, faults = [], []
        lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = _parsed(line)
                message = self.fault(row)
            except InputError as error:
                # Only the last line has no end.
                row, message = {}, f"{error}{_HALF if number == len(lines) else ''}"
            rows.append(row)
            if message:
                faults.append(Fault(message, str(file), number))
        if faults:
            raise FaultsError(faults, "the answers are refused; nothing of the file was taken")
        return rows

    def fault(self, row: Any) -> str:
        """Say what is wrong with an answer, "" if nothing is."""
        if not isinstance(row, Mapping) or not {"campaign", "worker", "item", "labels"} <= set(row):
            return "an answer has campaign, worker, item and labels"
        if row["campaign"] != self.key:
            return f"of the campaign {row['campaign']!r}, and this is {self.key!r}"
        if not _is_name(row["worker"]):
            return f"a worker is text of 1 to {LONGEST} characters, not {row['worker']!r:.60}"
        item, labels = row["item"], row["labels"]
        if not isinstance(item, str) or item not in self.lengths:
            return f"item {item!r:.60} was not asked about"
        n = self.lengths[item]
        if not isinstance(labels, list) or len(labels) != n:
            return f"item {item}: needs a list of {n} labels, not {labels!r:.60}"
        known = self.codec.index
        wrong = [one for one in labels if not isinstance(one, str | None) or one not in known]
        if wrong:
            return f"item {item}: label {wrong[0]!r:.60} is not in {', '.join(self.codec.tags)}"
        return self._malformed(item, labels)

    def _malformed(self, item: str, labels: Sequence[str | None]) -> str:
        """Say where the tags between skipped tokens are no spans, "" if they are."""
        start = 0
        for end in [*(n for n, label in enumerate(labels) if label is None), len(labels)]:
            part = [str(label) for label in labels[start:end]]
            _, errors = parse_with_errors(part, self.codec.encoding) if part else ([], [])
            for error in errors:
                # What belongs in the place of a skipped token is not known.
                closing = error.kind == "not-closed"
                before, after = error.index == 0 and start > 0, end < len(labels)
                if not ((after and error.next is None) if closing else before):
                    return f"item {item} token {start + error.index}: {error.message}"
            start = end + 1
        return ""


def campaign_in(line: bytes) -> str | None:
    """Give the id of the campaign in a line of tasks or answers, None if there is none."""
    try:
        row = _parsed(line)
    except InputError:
        return None
    found = row.get("campaign") if isinstance(row, Mapping) else None
    return found if isinstance(found, str) else None


def _parsed(line: bytes) -> Any:
    """Read a line.

    Raises:
        InputError: It is no JSON in UTF-8.
    """
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is no JSON: {error}") from None


def _is_name(word: Any) -> bool:
    """Whether any database can keep it: text without NUL and halves of characters."""
    if not isinstance(word, str) or not 0 < len(word) <= LONGEST or "\0" in word:
        return False
    return not any("\ud800" <= char <= "\udfff" for char in word)
