"""Which line of an answer holds which characters of the reference tokens.

However a file was cut, merged and glued, its characters keep their order. Where they are all
there, the characters alone say which line belongs to which token, with nothing to guess. Only
where they differ are tokens compared first, and characters between the equal tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.alignment.glue import Glue
from goldspan.crowd.alignment.kinds import ALTERING, Kind
from goldspan.crowd.alignment.match import Block, match

_REACH = 8
"""How many gaps may be joined, and how many equal tokens between two of them given up."""


@dataclass(frozen=True)
class Trace:
    """Where lines begin, filled in while tracing.

    Attributes:
        target: int32 [n_lines], reference token in which the line begins, -1 none.
        kind: int8 [n_lines], a code of `Kind`.
        touched: bool [n_tokens], whether the answer shows something of the token.
        altered: bool [n_tokens], whether the answer shows the token cut, merged or changed.
    """

    target: NDArray[np.int32]
    kind: NDArray[np.int8]
    touched: NDArray[np.bool_]
    altered: NDArray[np.bool_]

    def note(self, line: int, tokens: Sequence[int], kind: Kind) -> None:
        """Write down which tokens a line shows and how; it belongs to the first of them."""
        self.target[line] = tokens[0] if tokens else -1
        self.kind[line] = kind
        for token in tokens:
            self.touched[token] = True
            self.altered[token] |= kind in ALTERING

    def note_exact(self, lines: NDArray[np.intp], tokens: NDArray[np.int32]) -> None:
        """Write down lines that are tokens of the reference, letter by letter."""
        self.target[lines] = tokens
        self.kind[lines] = Kind.EXACT
        self.touched[tokens] = True


def trace(reference: Sequence[str], answer: Sequence[str], glue: Glue) -> Trace:
    """Find for every line of an answer the reference token in which it begins."""
    n_tokens, n_lines = len(reference), len(answer)
    found = Trace(
        target=np.full(n_lines, -1, np.int32),
        kind=np.full(n_lines, Kind.EMPTY_TOKEN, np.int8),
        touched=np.zeros(n_tokens, np.bool_),
        altered=np.zeros(n_tokens, np.bool_),
    )
    gaps: Iterator[_Gap] = iter([_Gap(0, n_tokens, 0, n_lines)])
    if not _Letters.of(reference, answer, glue).equal:
        keys = [[glue.strip(token) for token in side] for side in (reference, answer)]
        blocks = match(*keys)
        for i, j in ((b.i + n, b.j + n) for b in blocks for n in range(b.size)):
            found.note(j, [i], glue.compare(reference[i], answer[j]))
        gaps = _heal(reference, answer, _between(blocks, n_tokens, n_lines), glue)
    for gap in gaps:
        _trace_gap(reference, answer, gap, glue, found)
    _stand_in(reference, answer, found)
    return found


@dataclass(frozen=True)
class _Gap:
    """Reference tokens i to i_end against lines j to j_end, ends excluded."""

    i: int
    i_end: int
    j: int
    j_end: int


@dataclass(frozen=True)
class _Letters:
    """The characters of some tokens and of some lines, glued labels taken out.

    Attributes:
        tokens: Characters of the tokens, joined.
        lines: Characters of the lines, joined.
        in_token: Number of characters of every token.
        in_line: Number of characters of every line.
    """

    tokens: str
    lines: str
    in_token: Sequence[int]
    in_line: Sequence[int]

    @classmethod
    def of(cls, tokens: Sequence[str], lines: Sequence[str], glue: Glue) -> _Letters:
        """Join the characters, and take out glued labels as far as the two sides need it."""
        letters = cls._join(tokens, lines)
        if letters.equal:
            return letters
        letters = cls._join([*map(glue.strip, tokens)], [*map(glue.strip, lines)])
        if letters.equal:
            return letters
        text, owner = glue.clean("".join(lines), _owners(map(len, lines)))
        in_line = np.bincount(np.array(owner, np.intp), minlength=len(lines)).tolist()
        return cls(letters.tokens, text, letters.in_token, in_line)

    @classmethod
    def _join(cls, tokens: Sequence[str], lines: Sequence[str]) -> _Letters:
        return cls("".join(tokens), "".join(lines), [*map(len, tokens)], [*map(len, lines)])

    @property
    def equal(self) -> bool:
        """Whether both sides have the same characters."""
        return self.tokens == self.lines

    def overlaps(self) -> dict[tuple[int, int], int]:
        """Count the characters that a token and a line share, by (token, line), rising."""
        if self.equal:
            return self._overlaps_of_equal()
        token_of, line_of = _owners(self.in_token), _owners(self.in_line)
        blocks = match([*map(_fold, self.tokens)], [*map(_fold, self.lines)])
        pairs = ((token_of[b.i + n], line_of[b.j + n]) for b in blocks for n in range(b.size))
        shared = sorted(Counter(pairs).items())
        # A letter or two in common is chance: more than half of the shorter one is wanted.
        return {(i, j): n for (i, j), n in shared if 2 * n > min(self.in_token[i], self.in_line[j])}

    def _overlaps_of_equal(self) -> dict[tuple[int, int], int]:
        """Cut the common text at the ends of tokens and of lines: every piece is one overlap."""
        token_ends, line_ends = np.cumsum(self.in_token), np.cumsum(self.in_line)
        ends = np.union1d(token_ends, line_ends).astype(np.int64)
        ends = ends[ends > 0]
        starts = np.concatenate([np.zeros(1, np.int64), ends])[: len(ends)]
        token = np.searchsorted(token_ends, starts, side="right").tolist()
        line = np.searchsorted(line_ends, starts, side="right").tolist()
        return dict(zip(zip(token, line, strict=True), (ends - starts).tolist(), strict=True))


def _owners(sizes: Iterable[int]) -> list[int]:
    """Say for every character which of the tokens of these sizes it is of."""
    lengths = [*sizes]
    owners: list[int] = np.repeat(np.arange(len(lengths)), np.array(lengths, np.intp)).tolist()
    return owners


def _fold(letter: str) -> str:
    """Forget the case of a letter, unless that makes several letters of it."""
    lower = letter.lower()
    return lower if len(lower) == 1 else letter


def _between(blocks: Sequence[Block], n_tokens: int, n_lines: int) -> list[_Gap]:
    """List what lies between blocks, empty gaps left out."""
    ends = [(0, 0), *((b.i + b.size, b.j + b.size) for b in blocks)]
    starts = [*((b.i, b.j) for b in blocks), (n_tokens, n_lines)]
    gaps = [_Gap(i, i_end, j, j_end) for (i, j), (i_end, j_end) in zip(ends, starts, strict=True)]
    return [gap for gap in gaps if gap.i < gap.i_end or gap.j < gap.j_end]


def _heal(
    reference: Sequence[str], answer: Sequence[str], gaps: Sequence[_Gap], glue: Glue
) -> Iterator[_Gap]:
    """Join neighbouring gaps where only together they have the same characters.

    A part of a cut token may equal a token near by (`New-York York` as `New- York York`): then the
    equal tokens were paired wrongly, and the characters of one gap lack what the next has over.
    """
    n = 0
    while n < len(gaps):
        first, joined = gaps[n], 1
        for reach in range(min(_REACH, len(gaps) - n)):
            last = gaps[n + reach]
            if reach and last.i - gaps[n + reach - 1].i_end > _REACH:
                break
            wide = _Gap(first.i, last.i_end, first.j, last.j_end)
            sides = reference[wide.i : wide.i_end], answer[wide.j : wide.j_end]
            if _Letters.of(*sides, glue).equal:
                first, joined = wide, reach + 1
                break
        yield first
        n += joined


def _trace_gap(
    reference: Sequence[str], answer: Sequence[str], gap: _Gap, glue: Glue, found: Trace
) -> None:
    """Place the lines of one gap by their characters."""
    tokens, lines = reference[gap.i : gap.i_end], answer[gap.j : gap.j_end]
    letters = _Letters.of(tokens, lines, glue)
    overlaps = letters.overlaps()
    tokens_of: list[list[int]] = [[] for _ in lines]
    lines_of: list[list[int]] = [[] for _ in tokens]
    for i, j in overlaps:
        tokens_of[j].append(i)
        lines_of[i].append(j)
    # Most lines are exact: all of these are noted at once.
    same = [on[0] if len(on) == 1 else -1 for on in tokens_of]
    same = [i if i >= 0 and tokens[i] == lines[j] else -1 for j, i in enumerate(same)]
    exact = np.flatnonzero(np.array(same) >= 0)
    found.note_exact(gap.j + exact, gap.i + np.array(same, np.int32)[exact])
    for j in (j for j, i in enumerate(same) if i < 0):
        on, left = tokens_of[j], letters.in_line[j]
        parts = lines_of[on[0]] if on else []
        if not on:
            kind = _stray(lines[j], left, glue)
        elif len(on) > 1:
            kind = Kind.MERGED_TOKENS
        elif len(parts) > 1:
            covered = sum(overlaps[on[0], part] for part in parts) == letters.in_token[on[0]]
            whole = covered and overlaps[on[0], j] == left
            kind = Kind.CUT_TOKEN if whole else Kind.ALTERED_TOKEN
        else:
            kind = glue.compare(tokens[on[0]], lines[j])
            if kind == Kind.ALTERED_TOKEN and letters.equal:
                kind = Kind.MANGLED_GLUE
        found.note(gap.j + j, [gap.i + i for i in on], kind)


def _stray(line: str, n_left: int, glue: Glue) -> Kind:
    """Say what a line is that shares no characters with the reference."""
    if not line.strip():
        return Kind.EMPTY_TOKEN
    return Kind.LABEL_AS_TOKEN if not n_left or glue.is_label(line) else Kind.INSERTED_TOKEN


def _stand_in(reference: Sequence[str], answer: Sequence[str], found: Trace) -> None:
    """Pair tokens that are missing with as many lines that stand in their place.

    Lines with a token come first; where there are none, lines with only a label do: one tool
    turned every `/` into an empty token.
    """
    missing = np.flatnonzero(~found.touched).tolist()
    placed = np.flatnonzero(found.target >= 0)
    tokens = found.target[placed]
    edges = [-1, *placed.tolist(), len(answer)]
    for _, numbered in groupby(enumerate(missing), key=lambda pair: pair[1] - pair[0]):
        run = [token for _, token in numbered]
        before = int(np.searchsorted(tokens, run[0]))
        lines = range(edges[before] + 1, edges[before + 1])
        strange = [n for n in lines if found.kind[n] == Kind.INSERTED_TOKEN]
        chosen = strange or [n for n in lines if found.kind[n] == Kind.EMPTY_TOKEN]
        if len(run) == len(chosen):
            for token, line in zip(run, chosen, strict=True):
                same = reference[token] == answer[line]
                found.note(line, [token], Kind.EXACT if same else Kind.REPLACED_TOKEN)
