"""From a worker's dirty file to labels on the tokens of the reference.

The reference knows the tokens and sentences; what came back has tokens cut, merged, glued with
labels, left out or put in, and sentences cut elsewhere. `align` says for every line of the answer
which token it begins in and what is wrong with it; `place` decides which labels count.

The rules follow what the makers of ner_mturk did: their file of whole sentences keeps a sentence
if the tokens of the answer, empty ones and glued labels aside, are those of the reference; in
their file of all sentences a cut token has the label of its first part that is not outside.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from goldspan.crowd.alignment.faults import FaultFinder
from goldspan.crowd.alignment.glue import Glue
from goldspan.crowd.alignment.kinds import FAULT_KINDS, Alignment, AnswerToken, Fault, Kind
from goldspan.crowd.alignment.letters import Trace, trace
from goldspan.crowd.alignment.place import FATES, Fate, Placed, place, speakers

__all__ = [
    "FATES",
    "FAULT_KINDS",
    "Alignment",
    "AnswerToken",
    "Fate",
    "Fault",
    "Kind",
    "Placed",
    "align",
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
        outside: Label of a token outside all spans.

    Returns:
        Per reference token the line whose label stands for it; per line its token and kind.

    >>> lines = [("Africa", "B-LOC"), ("ns", "O"), ("", "B-LOC"), ("won/LOC", "O")]
    >>> answer = [AnswerToken(token, label, n, 0) for n, (token, label) in enumerate(lines, 1)]
    >>> found = align([["Africans", "won"]], answer)
    >>> found.source.tolist(), found.altered.tolist()
    ([0, 3], [True, False])
    >>> [fault.kind for fault in found.faults]
    ['cut-token', 'cut-token', 'empty-token', 'glued-suffix']
    """
    tokens = [token for sentence in reference for token in sentence]
    shown = [line.token for line in answer]
    labels = [line.label for line in answer]
    if tokens == shown:
        found = _identical(len(tokens))
    else:
        found = trace(tokens, shown, Glue.learn(tokens, shown, {*labels} - {outside}, types))
    finder = FaultFinder(reference, answer, found)
    return Alignment(
        source=speakers(found.target, labels, len(tokens), outside),
        altered=found.altered | finder.left_out(),
        target=found.target,
        kind=found.kind,
        faults=finder.faults(),
    )


def _identical(n_tokens: int) -> Trace:
    """Give the trace of an answer that has just the tokens of the reference."""
    return Trace(
        target=np.arange(n_tokens, dtype=np.int32),
        kind=np.full(n_tokens, Kind.EXACT, np.int8),
        touched=np.ones(n_tokens, np.bool_),
        altered=np.zeros(n_tokens, np.bool_),
    )
