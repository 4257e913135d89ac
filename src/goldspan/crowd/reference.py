"""The tokens of documents without a reference, voted from the files that the workers altered.

Three votes: characters, ends of tokens, sentences. Plain counting gets the second one wrong,
because workers cut the same tokens: three of five mark the `Russia` in `Russian`. But who cuts a
token does it to label a part of it, so that the label changes there. So a place at issue is of one
of two classes, an end in the text or a cut, and how the files show a cut is learned from all
documents together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.alignment import AnswerToken, LabelRepair, between, match

_OPENING = {"B", "S", "U", "W"}
"""Prefixes of tags that begin a span, in any encoding."""
_CANDIDATES = 8
"""How many different texts of one document may be the one that the others are compared with."""
_RUN = 4
"""So many equal tokens are paired as a whole; fewer may be pairs of a token and a part of a cut."""


class _Place(IntEnum):
    """How a file shows the place between two characters."""

    JOINED = 0
    ENDED = 1
    RELABELLED = 2


def vote_tokens(
    documents: Sequence[Sequence[Sequence[AnswerToken]]], types: Collection[str]
) -> list[list[list[str]]]:
    """Vote the tokens of documents by what the files of each show.

    Where all files of a document show the same tokens, these are the result.
    """
    repair = LabelRepair.learn([], [], [], types)
    found: list[list[list[str]]] = []
    disputed: dict[int, _Document] = {}
    for n, every in enumerate(documents):
        files = [[line for line in lines if line.token] for lines in every]
        files = [lines for lines in files if lines]
        shown = [[[line.token for line in one] for one in sentences_of(lines)] for lines in files]
        found.append(shown[0] if shown else [])
        if any(other != shown[0] for other in shown):
            disputed[n] = _Document.of([_File.of(lines, repair) for lines in files])
    is_end = _text_ends([one.counts for one in disputed.values()])
    for (n, document), ends in zip(disputed.items(), is_end, strict=True):
        found[n] = document.sentences(ends)
    return found


def sentences_of(lines: Sequence[AnswerToken]) -> list[list[AnswerToken]]:
    """Cut lines where their sentences end."""
    return [list(one) for _, one in groupby(lines, key=lambda line: line.sentence)]


# --------------------------------------------------------------------------------------------------
# Files as characters, and which characters a document has.


@dataclass(frozen=True, eq=False)
class _File:
    """One file as characters."""

    tokens: list[str]  # Its tokens without glued labels
    text: str
    places: NDArray[np.int8]  # [n_chars + 1], a `_Place` before every character and one at the end
    sentence: NDArray[np.int64]  # [n_chars], sentence of every character
    # Tokens that have labels glued on, by their first and last character
    glued: dict[tuple[int, int], str]

    @classmethod
    def of(cls, lines: Sequence[AnswerToken], repair: LabelRepair) -> _File:
        tokens = [repair.strip(line.token) for line in lines]
        lengths = np.array([*map(len, tokens)], np.int64)
        ends = np.cumsum(lengths)
        places = np.full(int(ends[-1]) + 1, _Place.JOINED, np.int8)
        places[ends[:-1]] = [
            _Place.ENDED if _goes_on(one.label, other.label) else _Place.RELABELLED
            for one, other in pairwise(lines)
        ]
        glued = {
            (end - len(token), end - 1): line.token
            for line, token, end in zip(lines, tokens, ends.tolist(), strict=True)
            if line.token != token
        }
        sentence = np.repeat(np.array([line.sentence for line in lines], np.int64), lengths)
        return cls(tokens, "".join(tokens), places, sentence, glued)


def _goes_on(label: str, following: str) -> bool:
    """Return whether the next token has the same label, or the span goes on."""
    outside = label in {"", "O"}, following in {"", "O"}
    if any(outside):
        return all(outside)
    (_, hyphen, kind), (prefix, _, other) = label.partition("-"), following.partition("-")
    return kind == other and prefix not in _OPENING if hyphen else label == following


def _chars_in(draft: _File, file: _File) -> NDArray[np.int64]:
    """Find the characters of a draft in a file, int64 [n_chars], -1 for those that it lacks."""
    if draft.text == file.text:
        return np.arange(len(draft.text))
    found = np.full(len(draft.text), -1, np.int64)
    mine, theirs = ([0, *np.cumsum([*map(len, f.tokens)]).tolist()] for f in (draft, file))
    runs = [block for block in match(draft.tokens, file.tokens) if block.size >= _RUN]
    for run in runs:
        a, b, end = mine[run.i], theirs[run.j], theirs[run.j + run.size]
        found[a : a + end - b] = np.arange(b, end)
    for gap in between(runs, len(draft.tokens), len(file.tokens)):
        a, b = mine[gap.i], theirs[gap.j]
        for i, j, size in match(draft.text[a : mine[gap.i_end]], file.text[b : theirs[gap.j_end]]):
            found[a + i : a + i + size] = np.arange(b + j, b + j + size)
    return found


def _draft(files: Sequence[_File]) -> _File:
    """Return the file that shares most tokens with all; of equals the longest, then first."""
    counts = Counter(file.text for file in files)
    first = {file.text: file for file in reversed(files)}
    words = {text: Counter(file.tokens) for text, file in first.items()}

    def shared(text: str) -> tuple[int, int]:
        return sum(n * (words[text] & words[t]).total() for t, n in counts.items()), len(text)

    return first[max([text for text, _ in counts.most_common(_CANDIDATES)], key=shared)]


def _vote_text(files: Sequence[_File]) -> tuple[str, NDArray[np.int64]]:
    """Vote the characters: in parts between those that all files show, by the files' versions."""
    # Who has nothing of a sentence of the first draft has no say there: unfinished files, mostly
    draft = _draft(files)
    at = np.stack([_chars_in(draft, file) for file in files])
    if all(file.text == draft.text for file in files):
        return draft.text, at
    number = np.unique(draft.sentence, return_inverse=True)[1]
    has = at >= 0
    in_sentence = np.stack([np.bincount(number, row)[number] > 0 for row in has])
    solid = np.flatnonzero((has | ~in_sentence).all(axis=0))
    edges = [-1, *solid.tolist(), len(draft.text)]
    # Where these are in every file, -2 where the file lacks the sentence.
    ends = np.array([[-1, *row, len(f.text)] for row, f in zip(at[:, solid], files, strict=True)])
    ends[:, 1:-1][~has[:, solid]] = -2
    parts: list[str] = []
    found: list[list[int]] = [[] for _ in files]
    for k, (a, b) in enumerate(pairwise(edges)):
        spans = [(first + 1, stop) for first, stop in ends[:, k : k + 2].tolist()]
        shown = [
            file.text[first:stop] if first >= 0 and stop >= 0 else None
            for file, (first, stop) in zip(files, spans, strict=True)
        ]
        part = draft.text[a + 1 : b]
        votes = Counter(version for version in shown if version is not None)
        if votes and votes[part] < max(votes.values()):
            part = votes.most_common(1)[0][0]
        parts += [part, draft.text[b : b + 1]]
        for mine, version, (first, stop) in zip(found, shown, spans, strict=True):
            mine.extend(range(first, stop) if version == part else [-1] * len(part))
            if b < len(draft.text):
                mine.append(max(stop, -1))
    return "".join(parts), np.array(found, np.int64)


# --------------------------------------------------------------------------------------------------
# Where tokens and sentences end.


@dataclass(frozen=True, eq=False)
class _Document:
    """A document whose files differ."""

    text: str  # Its characters, as voted
    ends: NDArray[np.int64]  # [n_places]
    counts: NDArray[np.int64]  # [n_places, 3]
    breaks: NDArray[np.bool_]  # [n_places], whether a sentence ends where a token does
    # Tokens onto which all files have glued the same, as they are shown
    glued: dict[tuple[int, int], str]

    @classmethod
    def of(cls, files: Sequence[_File]) -> _Document:
        text, places = _vote_text(files)
        counts = np.zeros((len(text) + 1, 3), np.int64)
        breaks = np.zeros(len(text) + 1, np.int64)
        glued: Counter[tuple[tuple[int, int], str]] = Counter()
        for file, at in zip(files, places, strict=True):
            inner = 1 + np.flatnonzero((at[:-1] >= 0) & (np.diff(at) == 1))
            counts[inner, file.places[at[inner]]] += 1
            breaks[inner] += file.sentence[at[inner]] != file.sentence[at[inner] - 1]
            back = np.full(len(file.text), -1, np.int64)
            back[at[at >= 0]] = np.flatnonzero(at >= 0)
            for (first, last), token in file.glued.items():
                glued[(int(back[first]), int(back[last])), token] += 1
        shown = counts[:, _Place.ENDED] + counts[:, _Place.RELABELLED]
        ends = np.flatnonzero(shown)
        everywhere = dict(key for key, n in glued.items() if n == len(files))
        return cls(text, ends, counts[ends], (2 * breaks >= shown)[ends], everywhere)

    def sentences(self, is_end: NDArray[np.bool_]) -> list[list[str]]:
        """Cut the text where tokens and sentences end."""
        # is_end bool [n_places]
        found: list[list[str]] = [[]]
        edges = [0, *self.ends[is_end].tolist(), len(self.text)]
        for (a, b), new in zip(
            pairwise(edges), [*self.breaks[is_end].tolist(), False], strict=True
        ):
            found[-1].append(self.glued.get((a, b - 1), self.text[a:b]))
            if new:
                found.append([])
        return found


_MAX_ROUNDS = 100


def _text_ends(documents: Sequence[NDArray[np.int64]]) -> list[NDArray[np.bool_]]:
    """Say which places are ends of tokens in the text, bool [n_places] for every document."""
    # Where nobody goes on, the text ends a token; where most go on, it does not
    # documents int64 [n_places, 3]
    if not documents:
        return []
    counts = np.concatenate(documents)
    contested = counts[:, _Place.JOINED] > 0
    known = counts[~contested].sum(axis=0)
    changed = (known[_Place.RELABELLED] + 1) / (known.sum() + 2)
    patterns, which, n = np.unique(
        counts[contested], axis=0, return_inverse=True, return_counts=True
    )
    joined, ended, relabelled = patterns.T
    most = (np.sign(ended + relabelled - joined) + 1) / 2
    is_end = most
    for _ in range(_MAX_ROUNDS):
        score = np.zeros((len(patterns), 2))
        for k, share in enumerate((n * (1 - is_end), n * is_end)):
            on, at, new = share @ joined, share @ ended, share @ relabelled
            cut = (at + new + 1) / (on + at + new + 2)
            change = changed if k else (new + 1) / (at + new + 2)
            rates = np.log([1 - cut, cut * (1 - change), cut * change])
            score[:, k] = np.log((share.sum() + 1) / (n.sum() + 2)) + patterns @ rates
        before, is_end = is_end, 1 / (1 + np.exp(np.clip(score[:, 0] - score[:, 1], -700, 700)))
        is_end[most == 0] = 0
        if np.allclose(before, is_end, atol=1e-9):
            break
    found = np.ones(len(counts), np.bool_)
    found[contested] = (is_end > 0.5)[which.reshape(-1)]
    stops = np.cumsum([len(one) for one in documents])
    return np.split(found, stops[:-1])
