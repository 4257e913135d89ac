"""The faults of an aligned answer, each with its place in the answer and in the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.alignment.kinds import AnswerToken, Fault, Kind
from goldspan.crowd.alignment.letters import Trace


class FaultFinder:
    """Knows where tokens and lines stand, and lists what is not as in the reference.

    Attributes:
        reference: Tokens of every sentence.
        answer: Lines of the answer.
        found: Where the lines belong.
        starts: int64 [n_sentences + 1], first token of every sentence.
        sentence: int64 [n_tokens], sentence of every token.
        placed: int64 [n_placed], lines that belong to a token; their tokens never fall.
    """

    def __init__(
        self, reference: Sequence[Sequence[str]], answer: Sequence[AnswerToken], found: Trace
    ) -> None:
        lengths = np.array([len(tokens) for tokens in reference], np.int64)
        self.reference, self.answer, self.found = reference, answer, found
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        self.sentence = np.repeat(np.arange(len(lengths)), lengths)
        self.placed = np.flatnonzero(found.target >= 0)
        answered = np.zeros(len(lengths), np.bool_)
        answered[self.sentence[found.touched]] = True
        self._answered = answered

    def left_out(self) -> NDArray[np.bool_]:
        """Mark the tokens that the answer lacks in sentences that it has, bool [n_tokens]."""
        return ~self.found.touched & self._answered[self.sentence]

    def faults(self) -> tuple[Fault, ...]:
        """List all faults by line, then by place in the reference."""
        faults = [
            *self._strange_lines(),
            *self._missing_tokens(),
            *self._missing_sentences(),
            *self._sentence_ends(),
        ]
        return tuple(sorted(faults, key=lambda fault: fault[1:4]))

    def _place(self, token: int) -> tuple[int, int]:
        """Give the sentence of a token and its position there."""
        sentence = int(self.sentence[token])
        return sentence, token - int(self.starts[sentence])

    def _at(self, kind: str, line: int, token: int) -> Fault:
        """Make the fault of a line that belongs to a token."""
        sentence, position = self._place(token)
        stood = self.reference[sentence][position]
        shown = self.answer[line]
        return Fault(kind, shown.line, sentence, position, shown.token, shown.label, stood)

    def _strange_lines(self) -> Iterator[Fault]:
        """Yield one fault for every line that is not, letter by letter, a reference token."""
        words = {int(kind): kind.word for kind in Kind}
        strange = np.flatnonzero(self.found.kind != Kind.EXACT)
        kinds = self.found.kind[strange].tolist()
        targets = self.found.target[strange].tolist()
        for n, kind, target in zip(strange.tolist(), kinds, targets, strict=True):
            if target >= 0:
                yield self._at(words[kind], n, target)
            else:
                line = self.answer[n]
                yield Fault(words[kind], line.line, *self._near(n), line.token, line.label, "")

    def _near(self, line: int) -> tuple[int, int]:
        """Give a line without a token the place of the token that it follows in its sentence.

        At the start of a sentence it is the next token's sentence, position -1.
        """
        after = int(np.searchsorted(self.placed, line))
        before = int(self.placed[after - 1]) if after else -1
        follows = before >= 0 and self.answer[before].sentence == self.answer[line].sentence
        if after < len(self.placed) and not follows:
            return self._place(int(self.found.target[self.placed[after]]))[0], -1
        return self._place(int(self.found.target[before])) if before >= 0 else (-1, -1)

    def _line_before(self, token: int) -> int:
        """Give the line in the file that a missing token should follow, 0 the top."""
        before = int(np.searchsorted(self.found.target[self.placed], token))
        return self.answer[int(self.placed[before - 1])].line if before else 0

    def _missing_tokens(self) -> Iterator[Fault]:
        """Yield the tokens that the answer lacks in sentences that it has."""
        for token in np.flatnonzero(self.left_out()).tolist():
            sentence, position = self._place(token)
            stood = self.reference[sentence][position]
            line = self._line_before(token)
            yield Fault("missing-token", line, sentence, position, "", "", stood)

    def _missing_sentences(self) -> Iterator[Fault]:
        """Yield the sentences of which the answer has nothing."""
        for sentence in np.flatnonzero(~self._answered & (np.diff(self.starts) > 0)).tolist():
            line = self._line_before(int(self.starts[sentence]))
            text = " ".join(self.reference[sentence])
            yield Fault("missing-sentence", line, sentence, -1, "", "", text)

    def _sentence_ends(self) -> Iterator[Fault]:
        """Yield the places where only one side starts a sentence."""
        known = np.diff(self.sentence[self.found.target[self.placed]]) != 0
        sentences = [line.sentence for line in self.answer]
        theirs = np.array(sentences, np.object_)[self.placed]
        shown = (theirs[1:] != theirs[:-1]).astype(np.bool_)
        for n in np.flatnonzero(known != shown).tolist():
            line = int(self.placed[n + 1])
            kind = "sentence-cut" if shown[n] else "sentence-join"
            yield self._at(kind, line, int(self.found.target[line]))
