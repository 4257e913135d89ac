"""From a worker's dirty file to labels on the tokens of the reference.

The reference knows the tokens and sentences; what came back has tokens cut, merged, glued with
labels, left out or put in, and sentences cut elsewhere. `align` says for every line of the answer
which token it begins in and what is wrong with it; `place` decides which labels count.

The rules follow what the makers of ner_mturk did: their file of whole sentences keeps a sentence
if the tokens of the answer, empty ones and glued labels aside, are those of the reference; in
their file of all sentences a cut token has the label of its first part that is not outside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from karat.crowd.alignment_glue import Glue
from karat.crowd.alignment_kinds import FAULT_KINDS, Alignment, AnswerToken, Fault, Kind
from karat.crowd.alignment_letters import Trace, trace
from karat.crowd.options import ALTERED, Altered
from karat.errors import InputError, UnknownNameError

__all__ = [
    "FATES", "FAULT_KINDS", "Alignment", "AnswerToken", "Fate", "Fault", "Kind", "Placed", "align",
    "place",
]


def align(
    reference: Sequence[Sequence[str]],
    answer: Sequence[AnswerToken],
    *,
    types: Collection[str] = (),
    outside: str = "O",
) -> Alignment:
    """Find for every line of an answer the reference token that it belongs to.

    Linear where the characters agree; no input raises.

    Args:
        reference: Tokens of every sentence, as known.
        answer: Lines of the answer in the order of the file, blank ones left out.
        types: Types that may be glued onto tokens (`PER`), beside those that show themselves.
        outside: Label of a token outside all spans; a part of a token with another label
            stands for the whole token.

    Returns:
        Per reference token the line whose label stands for it; per line its token and kind.

    >>> lines = [("Africa", "B-LOC"), ("ns", "O"), ("", "B-LOC"), ("won/LOC", "O")]
    >>> answer = [AnswerToken(token, label, n, 0) for n, (token, label) in enumerate(lines, 1)]
    >>> found = align([["Africans", "won"]], answer, types=["LOC"])
    >>> found.source.tolist(), found.altered.tolist()
    ([0, 3], [True, False])
    >>> [fault.kind for fault in found.faults]
    ['cut-token', 'cut-token', 'empty-token', 'glued-suffix']
    """
    tokens = [token for sentence in reference for token in sentence]
    shown = [line.token for line in answer]
    if tokens == shown:
        found = Trace([*range(len(tokens))], [Kind.EXACT] * len(tokens), set(), set())
        missing: list[int] = []
    else:
        glue = Glue.learn(tokens, shown, {line.label for line in answer} - {outside}, types)
        found = trace(tokens, shown, glue)
        missing = [i for i in range(len(tokens)) if i not in found.touched]
    places = _Places.of(reference, answer, found, missing)
    altered = np.zeros(len(tokens), np.bool_)
    altered[sorted(found.altered.union(places.left_out))] = True
    return Alignment(
        source=_speakers(found.target, [line.label for line in answer], len(tokens), outside),
        altered=altered,
        target=np.array(found.target, np.int32),
        kind=np.array(found.kind, np.int8),
        faults=tuple(sorted(places.faults(), key=lambda fault: fault[1:4])),
    )


def _speakers(
    target: Sequence[int], labels: Sequence[str], n_tokens: int, outside: str
) -> NDArray[np.int32]:
    """Choose for every token the line that stands for it, int32 [n_tokens].

    The first part that is not outside, else the first with a label, else the first.
    """
    source = np.full(n_tokens, -1, np.int32)
    # Later rules overwrite earlier ones; within a rule the first line wins, coming last.
    for silent in ({*labels}, {""}, {"", outside}):
        ...
    return source
