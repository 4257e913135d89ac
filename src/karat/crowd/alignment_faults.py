"""The faults of an aligned answer, each with its place in the answer and in the reference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from karat.crowd.alignment_kinds import AnswerToken, Fault, Kind
from karat.crowd.alignment_letters import Trace


class Places:
    """Looks up where tokens and lines stand.

    Attributes:
        reference: Tokens of every sentence.
        answer: Lines of the answer.
        found: Where the lines belong.
        starts: int64 [n_sentences + 1], first token of every sentence.
        sentence: int64 [n_tokens], sentence of every token.
        placed: int64 [n_placed], lines that belong to a token.
    """

    def __init__(
        self, reference: Sequence[Sequence[str]], answer: Sequence[AnswerToken], found: Trace
    ) -> None:
        self.reference, self.answer, self.found = reference, answer, found
        lengths = [len(tokens) for tokens in reference]
        self.starts = np.array([0, *accumulate(lengths)], np.int64)
        self.sentence = np.repeat(np.arange(len(lengths)), lengths)
        self.target: NDArray[np.int64] = np.array(found.target, np.int64)
        self.placed = np.flatnonzero(self.target >= 0)

    def left_out(self) -> list[int]:
        """List the tokens that the answer lacks in sentences that it has."""
        has = np.zeros(len(self.sentence), np.bool_)
        has[sorted(self.found.touched)] = True
        has[self.target[self.placed]] = True
        answered = np.zeros(len(self.reference), np.bool_)
        answered[self.sentence[has]] = True
        return [int(i) for i in np.flatnonzero(~has & answered[self.sentence])]

    def faults(self) -> list[Fault]:
        """List all faults by line, then by place in the reference."""
        faults = [
            *self._strange_lines(), *self._missing_tokens(), *self._missing_sentences(),
            *self._sentence_ends(),
        ]
        return sorted(faults, key=lambda fault: fault[1:4])
