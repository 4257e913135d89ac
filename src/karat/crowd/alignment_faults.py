"""The faults of an aligned answer, each with its place in the answer and in the reference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from karat.crowd.alignment_kinds import AnswerToken, Fault, Kind

NOWHERE = (-1, -1)


class Place:
    """Sentences and positions of the reference's flat tokens.

    Attributes:
        reference: Tokens of every sentence.
        starts: int64 [n_sentences + 1], first token of every sentence.
        sentence: int64 [n_tokens], sentence of every token.
    """

    def __init__(self, reference: Sequence[Sequence[str]]) -> None:
        lengths = np.array([len(tokens) for tokens in reference], np.int64)
        self.reference = reference
        self.starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        self.sentence = np.repeat(np.arange(len(lengths)), lengths)

    def of(self, token: int) -> tuple[int, int]:
        """Give the sentence of a token and its position there."""
        sentence = int(self.sentence[token])
        return sentence, token - int(self.starts[sentence])

    def text(self, token: int) -> str:
        """Give the token itself."""
        sentence, position = self.of(token)
        return self.reference[sentence][position]

    def left_out(self, touched: set[int]) -> list[int]:
        """List the tokens that an answer lacks in sentences that it has."""
        has = np.zeros(len(self.sentence), np.bool_)
        has[sorted(touched)] = True
        answered = np.zeros(len(self.reference), np.bool_)
        answered[self.sentence[has]] = True
        return [int(i) for i in np.flatnonzero(~has & answered[self.sentence])]


def list_faults(
    place: Place,
    answer: Sequence[AnswerToken],
    target: Sequence[int],
    kind: Sequence[Kind],
    touched: set[int],
) -> tuple[Fault, ...]:
    """List everything that is not as in the reference, by line.

    Args:
        place: Of the reference's tokens.
        answer: Lines of the answer.
        target: Reference token of every line, -1 none.
        kind: Kind of every line.
        touched: Reference tokens of which the answer shows something.
    """
    placed = [n for n, token in enumerate(target) if token >= 0]
    faults = [
        *_strange_lines(place, answer, target, kind),
        *_missing(place, answer, [(target[n], n) for n in placed], touched),
        *_sentence_ends(place, answer, target, placed),
    ]
    return tuple(sorted(faults, key=lambda fault: fault[1:4]))


def _strange_lines(
    place: Place, answer: Sequence[AnswerToken], target: Sequence[int], kind: Sequence[Kind]
) -> Iterator[Fault]:
    """Yield one fault for every line that is not a token of the reference, letter by letter."""
    strange = [n for n, code in enumerate(kind) if code != Kind.EXACT]
    near = _neighbours(place, answer, target) if any(target[n] < 0 for n in strange) else []
    for n in strange:
        where = place.of(target[n]) if target[n] >= 0 else near[n]
        stood = place.text(target[n]) if target[n] >= 0 else ""
        line = answer[n]
        yield Fault(kind[n].word, line.line, *where, line.token, line.label, stood)


def _neighbours(
    place: Place, answer: Sequence[AnswerToken], target: Sequence[int]
) -> list[tuple[int, int]]:
    """Give every line without a token the place of the token that it follows in its sentence.

    At the start of a sentence it is the next token's sentence, position -1.
    """
    near = [NOWHERE] * len(target)
    after = NOWHERE
    for n in reversed(range(len(target))):
        after = (place.of(target[n])[0], -1) if target[n] >= 0 else after
        near[n] = after
    before, sentence = NOWHERE, None
    for n, line in enumerate(answer):
        if target[n] >= 0:
            before, sentence = place.of(target[n]), line.sentence
        elif before != NOWHERE and (sentence == line.sentence or near[n] == NOWHERE):
            near[n] = before
    return near


def _missing(
    place: Place,
    answer: Sequence[AnswerToken],
    placed: Sequence[tuple[int, int]],
    touched: set[int],
) -> Iterator[Fault]:
    """Yield the tokens and the sentences that the answer lacks, with the line they should follow.

    Args:
        place: Of the reference's tokens.
        answer: Lines of the answer.
        placed: Token and line of the lines that belong to a token, rising.
        touched: Reference tokens of which the answer shows something.
    """
    for sentence, tokens in enumerate(place.reference):
        start = int(place.starts[sentence])
        absent = [i for i in range(len(tokens)) if start + i not in touched]
        if not absent:
            continue
        before = bisect_left(placed, (start + absent[0], -1))
        if len(absent) == len(tokens):
            line = answer[placed[before - 1][1]].line if before else 0
            yield Fault("missing-sentence", line, sentence, -1, "", "", " ".join(tokens))
            continue
        for i in absent:
            before = bisect_left(placed, (start + i, -1))
            line = answer[placed[before - 1][1]].line if before else 0
            yield Fault("missing-token", line, sentence, i, "", "", tokens[i])


def _sentence_ends(
    place: Place, answer: Sequence[AnswerToken], target: Sequence[int], placed: Sequence[int]
) -> Iterator[Fault]:
    """Yield the places where only one side starts a sentence."""
    tokens: NDArray[np.int64] = np.array([target[n] for n in placed], np.int64)
    theirs = np.array([answer[n].sentence for n in placed])
    known_starts = np.diff(place.sentence[tokens]) != 0
    shown_starts = theirs[1:] != theirs[:-1]
    for n in np.flatnonzero(known_starts != shown_starts).tolist():
        line, token = answer[placed[n + 1]], target[placed[n + 1]]
        kind = "sentence-cut" if shown_starts[n] else "sentence-join"
        yield Fault(kind, line.line, *place.of(token), line.token, line.label, place.text(token))
