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

from karat.crowd.alignment_faults import Place, list_faults
from karat.crowd.alignment_glue import Glue
from karat.crowd.alignment_kinds import FAULT_KINDS, Alignment, AnswerToken, Fault, Kind
from karat.crowd.alignment_letters import Trace, trace
from karat.crowd.alignment_place import FATES, Fate, Placed, place, speakers

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
        every = range(len(tokens))
        found = Trace([*every], [Kind.EXACT] * len(tokens), {*every}, set())
    else:
        found = trace(tokens, shown, Glue.learn(tokens, shown, {*labels} - {outside}, types))
    where = Place(reference)
    altered = np.zeros(len(tokens), np.bool_)
    altered[sorted(found.altered)] = True
    altered[where.left_out(found.touched)] = True
    return Alignment(
        source=speakers(np.array(found.target, np.int32), labels, len(tokens), outside),
        altered=altered,
        target=np.array(found.target, np.int32),
        kind=np.array(found.kind, np.int8),
        faults=list_faults(where, answer, found.target, found.kind, found.touched),
    )
