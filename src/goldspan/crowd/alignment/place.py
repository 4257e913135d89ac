"""Which labels of an aligned answer count, and what became of all the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.alignment.kinds import SPOILING, Alignment, Kind
from goldspan.crowd.options import ALTERED, Altered
from goldspan.errors import InputError, UnknownNameError


class Fate(IntEnum):
    """What became of a line's label; the code of `Placed.fate`."""

    PLACED = 0
    UNLABELLED = 1
    EMPTY_TOKEN = 2
    LABEL_AS_TOKEN = 3
    INSERTED_TOKEN = 4
    ALTERED_TOKEN = 5
    DROPPED_SENTENCE = 6
    OTHER_PART = 7
    OVERRULED_PART = 8


FATES: Mapping[Fate, str] = MappingProxyType(
    {
        Fate.PLACED: "placed on its token",
        Fate.UNLABELLED: "the line has no label",
        Fate.EMPTY_TOKEN: "the line has a label and no token",
        Fate.LABEL_AS_TOKEN: "a label stands in the place of the token",
        Fate.INSERTED_TOKEN: "the reference has no such token",
        Fate.ALTERED_TOKEN: "the token is cut or altered",
        Fate.DROPPED_SENTENCE: "something in the sentence is altered",
        Fate.OTHER_PART: "another part of the token has the same label, or this one is outside",
        Fate.OVERRULED_PART: "an earlier part of the token has another label",
    }
)
"""Every fate in words; all but `PLACED` are reasons for an import report."""

_STRAYS = {
    Kind.EMPTY_TOKEN: Fate.EMPTY_TOKEN,
    Kind.LABEL_AS_TOKEN: Fate.LABEL_AS_TOKEN,
    Kind.INSERTED_TOKEN: Fate.INSERTED_TOKEN,
}


@dataclass(frozen=True, eq=False)
class Placed:
    """Which label counts for every token, and what became of every line.

    Attributes:
        source: int32 [n_tokens], index of the line whose label counts, -1 missing.
        fate: int8 [n_lines], a code of `Fate`; as many lines are placed as tokens have a source.
    """

    source: NDArray[np.int32]
    fate: NDArray[np.int8]

    def reasons(self) -> dict[str, int]:
        """Count the labels that are not placed, by reason; with those placed, all lines."""
        counts = Counter(self.fate.tolist())
        return {FATES[fate]: counts[fate] for fate in Fate if fate and counts[fate]}


def place(
    alignment: Alignment,
    reference_offsets: NDArray[np.int64],
    answer_labels: Sequence[str],
    altered: Altered = "missing",
    *,
    outside: str = "O",
) -> Placed:
    """Decide which labels of an aligned answer count.

    A label on a token with a label glued onto it, the token otherwise whole, counts under every
    rule: it was given to this token alone, and the makers of ner_mturk kept it. A line with an
    empty token belongs to no token; it does not spoil its sentence.

    Args:
        alignment: What `align` found.
        reference_offsets: int64 [n_sentences + 1], where sentences start among the tokens.
        answer_labels: Label of every line, "" none.
        altered: What becomes of labels on cut, merged and changed tokens. "missing": they do not
            count. "keep": that of the first part that is not outside counts for the whole token;
            of merged tokens the first has the label. "drop-sentence": no label counts in a
            sentence where a token is altered, left out or put in.
        outside: Label of a token outside all spans.

    Raises:
        UnknownNameError: There is no such rule.
        InputError: The offsets or the labels do not fit the alignment.

    >>> from goldspan.crowd.alignment import AnswerToken, align
    >>> answer = [AnswerToken("Africa", "B-LOC", 1, 0), AnswerToken("ns", "O", 2, 0)]
    >>> placed = place(align([["Africans"]], answer), np.array([0, 1]), ["B-LOC", "O"], "keep")
    >>> placed.source.tolist(), [Fate(code).name for code in placed.fate]
    ([0], ['PLACED', 'OTHER_PART'])
    """
    if altered not in ALTERED:
        raise UnknownNameError("rule for altered tokens", altered, ALTERED)
    _check_sizes(alignment, reference_offsets, answer_labels)
    target = alignment.target
    source = speakers(target, answer_labels, len(alignment.source), outside)
    unlabelled = np.array([not label for label in answer_labels], np.bool_)
    fate = np.full(len(target), Fate.OTHER_PART, np.int8)
    for kind, reason in _STRAYS.items():
        fate[alignment.kind == kind] = reason
    lost, reason = _lost_tokens(alignment, reference_offsets, altered)
    lines = np.flatnonzero(target >= 0)
    fate[lines[lost[target[lines]]]] = reason
    fate[lines[unlabelled[lines]]] = Fate.UNLABELLED
    source[lost] = -1
    given = np.flatnonzero(source >= 0)
    source[given[unlabelled[source[given]]]] = -1
    fate[source[source >= 0]] = Fate.PLACED
    for line in np.flatnonzero(fate == Fate.OTHER_PART).tolist():
        if answer_labels[line] not in {outside, answer_labels[source[target[line]]]}:
            fate[line] = Fate.OVERRULED_PART
    return Placed(source, fate)


def _lost_tokens(
    alignment: Alignment, offsets: NDArray[np.int64], altered: str
) -> tuple[NDArray[np.bool_], Fate]:
    """Mark the tokens whose labels a rule gives up, bool [n_tokens], and say why."""
    if altered == "missing":
        return alignment.altered, Fate.ALTERED_TOKEN
    lengths = np.diff(offsets)
    spoilt = np.zeros(len(lengths), np.bool_)
    if altered == "drop-sentence":
        spoilt[np.repeat(np.arange(len(lengths)), lengths)[alignment.altered]] = True
        strange = [f.sentence for f in alignment.faults if f.kind in SPOILING and f.sentence >= 0]
        spoilt[strange] = True
    return np.repeat(spoilt, lengths), Fate.DROPPED_SENTENCE


def _check_sizes(alignment: Alignment, offsets: NDArray[np.int64], labels: Sequence[str]) -> None:
    """Refuse offsets and labels that are not those of the alignment."""
    n_tokens, n_lines = len(alignment.source), len(alignment.target)
    if (
        len(offsets) == 0
        or offsets[0] != 0
        or offsets[-1] != n_tokens
        or np.any(np.diff(offsets) < 0)
    ):
        raise InputError(
            f"reference_offsets must rise from 0 to the {n_tokens} tokens of the alignment"
        )
    if len(labels) != n_lines:
        raise InputError(f"{len(labels)} labels for an alignment of {n_lines} lines")


def speakers(
    target: NDArray[np.int32], labels: Sequence[str], n_tokens: int, outside: str
) -> NDArray[np.int32]:
    """Choose for every token the line that stands for it, int32 [n_tokens], -1 none.

    It is the first part with a label other than `outside`, else the first with a label, else the
    first. This reproduces all 1,942 cut tokens of crowd_6056; the first part alone reproduces
    1,708, the longest 1,685, the last label that is not outside 1,835.
    """
    placed = np.flatnonzero(target >= 0)
    source = np.full(n_tokens, -1, np.int32)
    source[target[placed]] = placed
    if np.all(np.diff(target[placed]) > 0):  # no token has two lines
        return source
    rank = np.array([2 if not label else int(label == outside) for label in labels], np.int8)
    # Written last wins: the best rank last, and within a rank the first line last.
    for worse in (2, 1, 0):
        lines = np.flatnonzero((target >= 0) & (rank == worse))[::-1]
        source[target[lines]] = lines
    return source
