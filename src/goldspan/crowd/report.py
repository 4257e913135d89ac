"""What an import found, and its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from goldspan.errors import Fault

# --------------------------------------------------------------------------------------------------
# How far a reader is, told to whoever asked, at most about a hundred times.


T = TypeVar("T")
Tell = Callable[[int, int], Any]

_TIMES = 100


class Progress:
    """Tells (done, total) when another hundredth is done.

    >>> progress = Progress(lambda done, total: print(f"{done} of {total}"), 2)
    >>> progress.at(2)
    2 of 2
    """

    def __init__(self, tell: Tell | None, total: int) -> None:
        self._tell, self._total, self._last = tell, total, 0
        self._step = max(1, total // _TIMES)

    def at(self, done: int) -> None:
        """Say how much is done; more than the total counts as the total."""
        done = min(done, self._total)
        new = done - self._last
        if self._tell and (new >= self._step or (new and done == self._total)):
            self._last = done
            self._tell(done, self._total)


def counted(things: Collection[T], tell: Tell | None) -> Iterator[T]:
    """Yield things one by one, and tell how many of them are dealt with."""
    progress = Progress(tell, len(things))
    for n, thing in enumerate(things, start=1):
        yield thing
        progress.at(n)


# --------------------------------------------------------------------------------------------------
# What a reader found: the import report, which always adds up.


MAX_SHOWN = 240
"""Characters of a fault in the printed report."""
AS_NAMED = "workers left out, because others were named"
"""What is said, after their number, of workers that the caller did not name."""


@dataclass(frozen=True)
class ImportReport:
    """What was read, what was decided, and what could not be used."""

    source: str = ""  # Name of the file or folder
    format: str = ""
    n_labels: int = 0  # Labels that workers gave, in all files
    n_placed: int = 0  # Labels that are in the crowd
    # Why the other labels are not, with counts; with `n_placed` they add up to `n_labels`
    reasons: Mapping[str, int] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()  # Every fault with its place
    notes: tuple[str, ...] = ()  # Decisions of the reader in sentences

    @property
    def adds_up(self) -> bool:
        """Whether every label is either placed or accounted for."""
        return self.n_placed + sum(self.reasons.values()) == self.n_labels

    @property
    def kinds(self) -> dict[str, int]:
        """Number of faults of every kind, the most frequent first."""
        return dict(Counter(fault.kind for fault in self.faults).most_common())

    @property
    def remarks(self) -> list[str]:
        """What was decided and what could not be used, a sentence each; empty if all was read."""
        lines = [*self.notes, *(f"{n} not placed: {reason}" for reason, n in self.reasons.items())]
        for kind, count in self.kinds.items():
            first = str(next(fault for fault in self.faults if fault.kind == kind))
            shown = first if len(first) <= MAX_SHOWN else f"{first[: MAX_SHOWN - 1]}…"
            lines.append(f"{count} faults of kind {kind}, the first: {shown}")
        return lines

    @property
    def unasked(self) -> list[str]:
        """The remarks without what the caller asked for."""
        return [remark for remark in self.remarks if not remark.endswith(AS_NAMED)]

    def to_dict(self, max_faults: int | None = None) -> dict[str, Any]:
        """Return plain dictionaries and lists, for JSON."""
        return {
            "source": self.source,
            "format": self.format,
            "labels": self.n_labels,
            "placed": self.n_placed,
            "not_placed": dict(self.reasons),
            "adds_up": self.adds_up,
            "fault_kinds": self.kinds,
            "faults": [str(fault) for fault in self.faults[:max_faults]],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """Print the report in a few lines; of every kind of fault the number and the first."""
        head = f"{self.source or 'crowd'}: read as format {self.format or 'unknown'}"
        remarks, n_notes = self.remarks, len(self.notes)
        placed = "all" if self.n_placed == self.n_labels else self.n_placed
        counts = f"{self.n_labels} labels, {placed} of them placed on tokens"
        return "\n  ".join([head, *remarks[:n_notes], counts, *remarks[n_notes:]])
