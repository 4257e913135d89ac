"""Which line of an answer holds which characters of the reference tokens.

However a file was cut, merged and glued, its characters keep their order. Where they are all
there, the characters alone say which line belongs to which token, with nothing to guess. Only
where they differ are tokens compared first, and characters between the equal tokens.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from karat.crowd.alignment_glue import Glue
from karat.crowd.alignment_kinds import ALTERING, Kind
from karat.crowd.alignment_match import Block, match

_REACH = 8
"""How many gaps may be joined, and how many equal tokens between two of them given up."""


@dataclass
class Trace:
    """Where lines begin, filled in while tracing.

    Attributes:
        target: Reference token of every line, -1 none.
        kind: Kind of every line.
        touched: Reference tokens of which the answer shows something.
        altered: Reference tokens that the answer shows cut, merged or changed.
    """

    target: list[int]
    kind: list[Kind]
    touched: set[int]
    altered: set[int]


def trace(reference: Sequence[str], answer: Sequence[str], glue: Glue) -> Trace:
    """Find for every line of an answer the reference token in which it begins."""
    found = Trace([-1] * len(answer), [Kind.EMPTY_TOKEN] * len(answer), set(), set())
    gaps: Iterator[_Gap] = iter([_Gap(0, len(reference), 0, len(answer))])
    whole = _Letters.of(reference, answer, glue)
    if not whole.equal:
        keys = [[glue.strip(token) for token in side] for side in (reference, answer)]
        blocks = match(*keys)
        for i, j in ((b.i + n, b.j + n) for b in blocks for n in range(b.size)):
            _note(found, j, [i], glue.compare(reference[i], answer[j]))
        gaps = _heal(reference, answer, _between(blocks, len(reference), len(answer)), glue)
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
    """The characters of some tokens and of some lines, each with the place it comes from."""

    tokens: str
    lines: str
    token_of: list[int]
    line_of: list[int]

    @classmethod
    def of(cls, tokens: Sequence[str], lines: Sequence[str], glue: Glue) -> _Letters:
        """Join the characters; glued labels go where the characters differ because of them."""
        raw = cls("".join(tokens), "".join(lines), _places(tokens), _places(lines))
        if raw.equal:
            return raw
        bare = [glue.strip(token) for token in tokens]
        text, line_of = glue.clean(raw.lines, raw.line_of)
        return cls("".join(bare), text, _places(bare), line_of)

    @property
    def equal(self) -> bool:
        """Whether both sides have the same characters."""
        return self.tokens == self.lines

    def overlaps(self) -> Counter[tuple[int, int]]:
        """Count the characters that a token and a line share, by (token, line)."""
        if self.equal:
            return Counter(zip(self.token_of, self.line_of, strict=True))
        blocks = match([*map(_fold, self.tokens)], [*map(_fold, self.lines)])
        shared = Counter(
            (self.token_of[b.i + n], self.line_of[b.j + n]) for b in blocks for n in range(b.size)
        )
        # A letter or two in common is chance: half of the shorter one is wanted.
        in_token, in_line = Counter(self.token_of), Counter(self.line_of)
        kept = {k: n for k, n in shared.items() if 2 * n > min(in_token[k[0]], in_line[k[1]])}
        return Counter(kept)


def _places(tokens: Sequence[str]) -> list[int]:
    """Say for every character of the joined tokens which token it is of."""
    return [*chain.from_iterable([n] * len(token) for n, token in enumerate(tokens))]


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
    tokens_of, lines_of = defaultdict(list), defaultdict(list)
    for i, j in sorted(overlaps):
        tokens_of[j].append(i)
        lines_of[i].append(j)
    left = Counter(letters.line_of)
    size = Counter(letters.token_of)
    for j, line in enumerate(lines):
        on = tokens_of[j]
        if not on:
            kind = _stray(line, left[j], glue)
        elif len(on) > 1:
            kind = Kind.MERGED_TOKENS
        elif len(lines_of[on[0]]) > 1:
            parts = [overlaps[on[0], part] for part in lines_of[on[0]]]
            whole = sum(parts) == size[on[0]] and overlaps[on[0], j] == left[j]
            kind = Kind.CUT_TOKEN if whole else Kind.ALTERED_TOKEN
        else:
            kind = glue.compare(tokens[on[0]], line)
            if kind == Kind.ALTERED_TOKEN and letters.equal:
                kind = Kind.MANGLED_GLUE
        _note(found, gap.j + j, [gap.i + i for i in on], kind)


def _stray(line: str, n_left: int, glue: Glue) -> Kind:
    """Say what a line is that shares no characters with the reference."""
    if not line.strip():
        return Kind.EMPTY_TOKEN
    return Kind.LABEL_AS_TOKEN if not n_left or glue.is_label(line) else Kind.INSERTED_TOKEN


def _note(found: Trace, line: int, tokens: Sequence[int], kind: Kind) -> None:
    """Write down which tokens a line shows and how; it belongs to the first of them."""
    found.target[line] = tokens[0] if tokens else -1
    found.kind[line] = kind
    found.touched.update(tokens)
    if kind in ALTERING:
        found.altered.update(tokens)


def _stand_in(reference: Sequence[str], answer: Sequence[str], found: Trace) -> None:
    """Pair tokens that are missing with as many lines that stand in their place.

    Lines with a token come first; where there are none, lines with only a label do: one tool
    turned every `/` into an empty token.
    """
    last = -1
    lines: list[int] = []
    for line, target in [*enumerate(found.target), (len(answer), len(reference))]:
        if target < 0:
            lines.append(line)
            continue
        missing = [i for i in range(last + 1, target) if i not in found.touched]
        strange = [n for n in lines if found.kind[n] == Kind.INSERTED_TOKEN]
        empty = [n for n in lines if found.kind[n] == Kind.EMPTY_TOKEN]
        chosen = strange or empty
        if missing and len(missing) == len(chosen):
            for i, n in zip(missing, chosen, strict=True):
                same = reference[i] == answer[n]
                _note(found, n, [i], Kind.EXACT if same else Kind.REPLACED_TOKEN)
        last, lines = max(last, target), []
