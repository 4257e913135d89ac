"""Which tag may follow which, as a list and as a mask for a CRF (paper 004, section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.spans.codec import Codec
from goldspan.spans.encoding import Encoding, get_encoding
from goldspan.spans.pairs import FAULTS


class Transition(NamedTuple):
    """Whether one tag may follow another."""

    source: str
    target: str
    legal: bool


def transitions(
    tags: Iterable[str], encoding: str | Encoding, start: str = "<START>", end: str = "<END>"
) -> list[Transition]:
    """List for every two tags, and for the start and the end, whether one may follow the other.

    Nothing may lead to the start or from the end; start to end is the empty sequence, and legal.

    >>> [t.target for t in transitions(["O", "B-X", "I-X"], "BIO") if t.source == "O" and t.legal]
    ['O', 'B-X', '<END>']
    """
    listed = list(tags)
    legal = transition_mask(listed, encoding)
    names = [*listed, start, end]
    return [
        Transition(names[i], names[j], bool(legal[i, j]))
        for i in range(len(names))
        for j in range(len(names))
    ]


def transition_mask(tags: Iterable[str], encoding: str | Encoding) -> NDArray[np.bool_]:
    """Give the legality of transitions as an array, for a CRF.

    Returns:
        bool [V + 2, V + 2], rows the previous tag and columns the current one in the order of
        `tags`; V is the start and V + 1 the end.

    >>> transition_mask(["O", "B-X", "I-X"], "BIO").astype(int)[:3, :3]
    array([[1, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    """
    codec = Codec(tuple(tags), get_encoding(encoding).name)
    n_tags = len(codec.tags)
    legal = (codec.pairs & FAULTS) == 0
    mask = np.zeros((n_tags + 2, n_tags + 2), np.bool_)
    mask[:n_tags, :n_tags] = legal[1:, 1:]
    mask[n_tags, :n_tags] = legal[0, 1:]
    mask[:n_tags, n_tags + 1] = legal[1:, 0]
    mask[n_tags, n_tags + 1] = True
    return mask
