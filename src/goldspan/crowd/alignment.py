"""Answers whose tokens were altered, aligned with the tokens of the item."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import IntEnum
from itertools import groupby, pairwise, takewhile
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

# --------------------------------------------------------------------------------------------------
# What an alignment of a worker's file with its reference is made of.


class AnswerToken(NamedTuple):
    """One line of an answer file."""

    token: str  # The token as the file shows it; "" where the line holds only a label
    label: str  # The label; "" where the line holds only a token
    line: int  # Line in the file, counted from 1
    sentence: int  # Sentence of the file, counted from 0


class _Explained(IntEnum):
    """A code with a sentence that explains it."""

    text: str

    def __new__(cls, code: int, text: str = "") -> Self:
        """Make a member of a code and its words."""
        member = int.__new__(cls, code)
        member._value_, member.text = code, text
        return member


class Kind(_Explained):
    """How a line of an answer relates to the reference; the code of `Alignment.kind`."""

    EXACT = 0, "The line is a token of the reference."
    GLUED_SUFFIX = 1, "A label is glued onto a token that is otherwise as in the reference."
    GLUED_REFERENCE = 2, "The reference has a label glued onto this token, the answer has not."
    CUT_TOKEN = 3, "The line holds a part of a reference token."
    MANGLED_GLUE = 4, "Glued labels are inside the token, or are cut with the rest elsewhere."
    MERGED_TOKENS = 5, "The line holds (parts of) several reference tokens."
    ALTERED_TOKEN = 6, "The line holds a reference token with other characters in it."
    REPLACED_TOKEN = 7, "Something else, or nothing, is where the reference has a token."
    EMPTY_TOKEN = 8, "The line has a label and no token."
    LABEL_AS_TOKEN = 9, "A label, or a part of one, is where a token should be."
    INSERTED_TOKEN = 10, "The reference has no such token here."

    @property
    def word(self) -> str:
        """Return the name under which faults and reports count it."""
        return self.name.lower().replace("_", "-")


ALTERING = frozenset(
    {
        Kind.CUT_TOKEN,
        Kind.MANGLED_GLUE,
        Kind.MERGED_TOKENS,
        Kind.ALTERED_TOKEN,
        Kind.REPLACED_TOKEN,
    }
)
"""Kinds that make a reference token an altered one. A purely glued label does not: the token
under it is whole, and the label on its line was given to that token and to no other."""

SPOILING = frozenset({Kind.INSERTED_TOKEN.word, Kind.LABEL_AS_TOKEN.word})
"""Faults that spoil a sentence though none of its tokens is altered."""

FAULT_KINDS: Mapping[str, str] = {
    **{kind.word: kind.text for kind in Kind if kind != Kind.EXACT},
    "missing-token": "The answer lacks this token of a sentence that it has.",
    "missing-sentence": "The answer has no token of this sentence.",
    "sentence-cut": "The answer starts a sentence inside a sentence of the reference.",
    "sentence-join": "The answer goes on where the reference starts a sentence.",
}
"""Every kind of fault, explained in one sentence."""


class Fault(NamedTuple):
    """One thing that was not as it should be."""

    kind: str
    line: int  # Line in the answer file; for what is missing the line it should follow, 0 the top
    sentence: int  # Reference sentence, counted from 0; -1 unknown
    position: int  # Token within that sentence, counted from 0
    token: str  # What the answer shows
    label: str  # The label on that line
    reference: str  # What the reference has there


@dataclass(eq=False)
class Alignment:
    """Where the lines of one answer belong among the tokens of the reference."""

    target: NDArray[np.int32]  # [n_lines], reference token in which the line begins, -1 none
    kind: NDArray[np.int8]  # [n_lines], a code of `Kind`
    touched: NDArray[np.bool_]  # [n_tokens], whether the answer shows something of the token
    altered: NDArray[np.bool_]  # [n_tokens]
    faults: tuple[Fault, ...] = ()  # Everything that is not as in the reference, by line

    @classmethod
    def of(cls, n_tokens: int, n_lines: int) -> Alignment:
        """Begin with lines of which nothing is known."""
        lines = np.full(n_lines, -1, np.int32), np.full(n_lines, Kind.EMPTY_TOKEN, np.int8)
        return cls(*lines, np.zeros(n_tokens, np.bool_), np.zeros(n_tokens, np.bool_))

    def note(self, line: int, tokens: Sequence[int], kind: Kind) -> None:
        """Write down which tokens a line shows and how; it belongs to the first of them."""
        self.target[line] = tokens[0] if tokens else -1
        self.kind[line] = kind
        for token in tokens:
            self.touched[token] = True
            self.altered[token] |= kind in ALTERING


# --------------------------------------------------------------------------------------------------
# Labels glued onto tokens: `Valletta/LOC`, `Hutu/B-MISC`, and what labelling tools made of them.


_TAG = re.compile(r"[A-Z]-([\w.-]+)")
_TYPE_SHAPE = re.compile(r"[A-Z][A-Z_]+", re.ASCII)
_MAX_PASSES = 8
"""How deep labels inside labels are undone; real files go two deep."""


@dataclass(frozen=True)
class LabelRepair:
    """The glued labels of one document."""

    types: frozenset[str]  # Types that may be glued
    labels: frozenset[str]
    both: frozenset[str]  # Tokens that both sides have; a bare type at their end belongs to them
    pattern: re.Pattern[str]  # Matches a glued label anywhere in a text

    @classmethod
    def learn(
        cls,
        reference: Sequence[str],
        answer: Sequence[str],
        labels: Iterable[str],
        types: Collection[str] = (),
    ) -> LabelRepair:
        """Learn which types are glued in a document."""
        words, shown, used = set(reference), set(answer), frozenset(labels)
        known = {*types, *(m[1] for m in map(_TAG.fullmatch, used) if m)}
        for token in sorted(words - shown):
            tag = _TAG.fullmatch(token.rpartition("/")[2]) if "/" in token else None
            known |= {tag[1]} if tag else set()
        added = {token.rpartition("/")[::2] for token in shown - words}
        tails = {tail for head, tail in added if head in words and tail not in words}
        # `Malta/LO C` is a glued LOC that was cut: LO is not a type too.
        kinds = sorted({tail for tail in tails if _TYPE_SHAPE.fullmatch(tail)} | known)
        cut = {kind for kind, longer in pairwise(kinds) if longer.startswith(kind)} - known
        known.update(set(kinds) - cut)
        longest_first = sorted(known - {""}, key=lambda kind: (-len(kind), kind))
        choice = "|".join(map(re.escape, longest_first)) or r"(?!)"
        pattern = re.compile(rf"/(?:[A-Z]-)?(?:{choice})")
        return cls(frozenset(longest_first), used, frozenset(words & shown), pattern)

    def strip(self, token: str) -> str:
        """Take glued labels off the end of a token; a token is never emptied."""
        head, slash, tail = token.rpartition("/")
        while slash and head:
            tag = _TAG.fullmatch(tail)
            known = (tag[1] if tag else tail) in self.types
            if not known or (not tag and token in self.both):
                break
            token = head
            head, slash, tail = token.rpartition("/")
        return token

    def clean(self, text: str, owner: Sequence[int]) -> tuple[str, list[int]]:
        """Take glued labels out of a text wherever they are, also labels inside labels."""
        owners = list(owner)
        for _ in range(_MAX_PASSES):
            spans = [found.span() for found in self.pattern.finditer(text)]
            if not spans:
                break
            cuts = [0, *(edge for span in spans for edge in span), len(text)]
            kept = [slice(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=True)]
            text = "".join(text[part] for part in kept)
            owners = [line for part in kept for line in owners[part]]
        return text, owners

    def is_label(self, token: str) -> bool:
        """Return whether a token is a label or a type, with or without the slash."""
        return token.lstrip("/") in self.labels | self.types

    def compare(self, reference: str, token: str) -> Kind:
        """Return how one line shows one reference token."""
        if token == reference:
            return Kind.EXACT
        bare = self.strip(token)
        if bare == self.strip(reference):
            return Kind.GLUED_REFERENCE if bare == token else Kind.GLUED_SUFFIX
        return Kind.ALTERED_TOKEN


# --------------------------------------------------------------------------------------------------
# Equal runs of two sequences: what `difflib` finds, in near linear time on long inputs.


SMALL = 1 << 16
"""Product of lengths up to which `difflib` is used at once: 256 by 256."""
LARGE = 1 << 20
"""Product of lengths up to which `difflib` is used where nothing splits the sequences."""
RUNS = (16, 8, 4, 2, 1)
"""Lengths of the runs that split; long ones are the most certain."""


class Block(NamedTuple):
    """`a[i : i + size] == b[j : j + size]`."""

    i: int
    j: int
    size: int


def match(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Block]:
    """Find equal runs of two sequences, in order and without overlap."""
    blocks: list[Block] = []
    stack = [(0, len(a), 0, len(b))]
    while stack:
        i, i_end, j, j_end = stack.pop()
        if (i_end - i) * (j_end - j) > SMALL:
            head = _common(a, b, i, j, min(i_end - i, j_end - j), step=1)
            i, j = i + head, j + head
            tail = _common(a, b, i_end - 1, j_end - 1, min(i_end - i, j_end - j), step=-1)
            i_end, j_end = i_end - tail, j_end - tail
            blocks += [Block(i - head, j - head, head), Block(i_end, j_end, tail)]
        inner, rest = _split(a[i:i_end], b[j:j_end])
        blocks += [Block(i + di, j + dj, size) for di, dj, size in inner]
        stack += [(i + p, i + q, j + r, j + s) for p, q, r, s in rest]
    return sorted(block for block in blocks if block.size)


def _common(
    a: Sequence[Hashable], b: Sequence[Hashable], i: int, j: int, limit: int, *, step: int
) -> int:
    """Count the equal elements from (i, j) on, forwards or backwards, at most `limit`."""
    return sum(1 for _ in takewhile(lambda n: a[i + n] == b[j + n], range(0, limit * step, step)))


def _split(
    a: Sequence[Hashable], b: Sequence[Hashable]
) -> tuple[list[Block], list[tuple[int, int, int, int]]]:
    """Match two sequences, or split them into pairs of slices that are still to be matched."""
    product = len(a) * len(b)
    if product > SMALL:
        for size in RUNS:
            # Pair the runs of `size` elements that occur once in both, as many as keep their order
            once_a, once_b = dict(_once(a, size)), dict(_once(b, size))
            pairs = [(i, once_b[run]) for run, i in once_a.items() if run in once_b]
            anchors = _longest_rise(sorted(pairs))
            if anchors:
                starts = [(0, 0), *((i + 1, j + 1) for i, j in anchors)]
                ends = [*anchors, (len(a), len(b))]
                between = zip(starts, ends, strict=True)
                rest = [(p, q, r, s) for (p, r), (q, s) in between if p < q and r < s]
                return [Block(i, j, 1) for i, j in anchors], rest
    if product > LARGE:
        return [], []
    found = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return [Block(*block) for block in found], []


def _once(sequence: Sequence[Hashable], size: int) -> Iterator[tuple[Hashable, int]]:
    """Yield the runs that occur exactly once, with their starts."""
    places: dict[Hashable, int] = {}
    for start in range(len(sequence) - size + 1):
        run = tuple(sequence[start : start + size])
        places[run] = -1 if run in places else start
    return ((run, start) for run, start in places.items() if start >= 0)


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keep the most pairs, sorted by their first numbers, whose second numbers rise too."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        rank = bisect_left(ends, j)
        before.append(last[rank - 1] if rank else -1)
        ends[rank : rank + 1] = [j]
        last[rank : rank + 1] = [n]
    kept = []
    n = last[-1] if last else -1
    while n >= 0:
        kept.append(pairs[n])
        n = before[n]
    return kept[::-1]


# --------------------------------------------------------------------------------------------------
# Which line of an answer holds which characters of the reference tokens.


_REACH = 8
"""How many gaps may be joined, and how many equal tokens between two of them given up."""


def trace(
    reference: Sequence[str], answer: Sequence[str], repair: LabelRepair, found: Alignment
) -> None:
    """Find for every line of an answer the reference token in which it begins."""
    n_tokens, n_lines = len(reference), len(answer)
    gaps: Iterator[_Gap] = iter([_Gap(0, n_tokens, 0, n_lines)])
    if not _CharacterAlignment.of(reference, answer, repair).equal:
        keys = [[repair.strip(token) for token in side] for side in (reference, answer)]
        blocks = match(*keys)
        for i, j in ((b.i + n, b.j + n) for b in blocks for n in range(b.size)):
            found.note(j, [i], repair.compare(reference[i], answer[j]))
        gaps = _heal(reference, answer, between(blocks, n_tokens, n_lines), repair)
    for gap in gaps:
        _trace_gap(reference, answer, gap, repair, found)
    # Pair tokens that are missing with as many lines that stand in their place
    # Lines that show another token are taken before lines that show none
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


@dataclass(frozen=True)
class _Gap:
    """Reference tokens i to i_end against lines j to j_end, ends excluded."""

    i: int
    i_end: int
    j: int
    j_end: int


@dataclass(frozen=True)
class _CharacterAlignment:
    """The characters of some tokens and of some lines, glued labels taken out."""

    tokens: str  # Characters of the tokens, joined
    lines: str  # Characters of the lines, joined
    in_token: Sequence[int]  # Number of characters of every token
    in_line: Sequence[int]  # Number of characters of every line

    @classmethod
    def of(
        cls, tokens: Sequence[str], lines: Sequence[str], repair: LabelRepair
    ) -> _CharacterAlignment:
        """Join the characters, and take out glued labels as far as the two sides need it."""
        chars = cls._join(tokens, lines)
        if chars.equal:
            return chars
        chars = cls._join([*map(repair.strip, tokens)], [*map(repair.strip, lines)])
        if chars.equal:
            return chars
        text, owner = repair.clean("".join(lines), _owners(map(len, lines)))
        in_line = np.bincount(np.array(owner, np.intp), minlength=len(lines)).tolist()
        return cls(chars.tokens, text, chars.in_token, in_line)

    @classmethod
    def _join(cls, tokens: Sequence[str], lines: Sequence[str]) -> _CharacterAlignment:
        return cls("".join(tokens), "".join(lines), [*map(len, tokens)], [*map(len, lines)])

    @property
    def equal(self) -> bool:
        return self.tokens == self.lines

    def overlaps(self) -> dict[tuple[int, int], int]:
        """Count the characters that a token and a line share, by (token, line), rising."""
        token_of, line_of = _owners(self.in_token), _owners(self.in_line)
        if self.equal:
            return Counter(zip(token_of, line_of, strict=True))
        blocks = match([*map(_fold, self.tokens)], [*map(_fold, self.lines)])
        pairs = ((token_of[b.i + n], line_of[b.j + n]) for b in blocks for n in range(b.size))
        shared = sorted(Counter(pairs).items())
        # A letter or two in common is chance: more than half of the shorter one is wanted.
        return {(i, j): n for (i, j), n in shared if 2 * n > min(self.in_token[i], self.in_line[j])}


def _owners(sizes: Iterable[int]) -> list[int]:
    lengths = [*sizes]
    owners: list[int] = np.repeat(np.arange(len(lengths)), np.array(lengths, np.intp)).tolist()
    return owners


def _fold(letter: str) -> str:
    """Forget the case of a letter, unless that makes several chars of it."""
    lower = letter.lower()
    return lower if len(lower) == 1 else letter


def between(blocks: Sequence[Block], n_tokens: int, n_lines: int) -> list[_Gap]:
    """List what lies between blocks, empty gaps left out."""
    ends = [(0, 0), *((b.i + b.size, b.j + b.size) for b in blocks)]
    starts = [*((b.i, b.j) for b in blocks), (n_tokens, n_lines)]
    gaps = [_Gap(i, i_end, j, j_end) for (i, j), (i_end, j_end) in zip(ends, starts, strict=True)]
    return [gap for gap in gaps if gap.i < gap.i_end or gap.j < gap.j_end]


def _heal(
    reference: Sequence[str], answer: Sequence[str], gaps: Sequence[_Gap], repair: LabelRepair
) -> Iterator[_Gap]:
    """Join neighbouring gaps where only together they have the same characters."""
    # A part of a cut token may equal a token near by (`New-York York` as `New- York York`)
    n = 0
    while n < len(gaps):
        first, joined = gaps[n], 1
        for reach in range(min(_REACH, len(gaps) - n)):
            last = gaps[n + reach]
            if reach and last.i - gaps[n + reach - 1].i_end > _REACH:
                break
            wide = _Gap(first.i, last.i_end, first.j, last.j_end)
            sides = reference[wide.i : wide.i_end], answer[wide.j : wide.j_end]
            if _CharacterAlignment.of(*sides, repair).equal:
                first, joined = wide, reach + 1
                break
        yield first
        n += joined


def _trace_gap(
    reference: Sequence[str],
    answer: Sequence[str],
    gap: _Gap,
    repair: LabelRepair,
    found: Alignment,
) -> None:
    """Place the lines of one gap by their characters."""
    tokens, lines = reference[gap.i : gap.i_end], answer[gap.j : gap.j_end]
    chars = _CharacterAlignment.of(tokens, lines, repair)
    overlaps = chars.overlaps()
    tokens_of: list[list[int]] = [[] for _ in lines]
    lines_of: list[list[int]] = [[] for _ in tokens]
    for i, j in overlaps:
        tokens_of[j].append(i)
        lines_of[i].append(j)
    for j, (line, on, left) in enumerate(zip(lines, tokens_of, chars.in_line, strict=True)):
        parts = lines_of[on[0]] if on else []
        if len(on) == 1 and tokens[on[0]] == line:
            kind = Kind.EXACT
        elif not on and not line.strip():
            kind = Kind.EMPTY_TOKEN
        elif not on:
            is_label = not left or repair.is_label(line)
            kind = Kind.LABEL_AS_TOKEN if is_label else Kind.INSERTED_TOKEN
        elif len(on) > 1:
            kind = Kind.MERGED_TOKENS
        elif len(parts) > 1:
            covered = sum(overlaps[on[0], part] for part in parts) == chars.in_token[on[0]]
            whole = covered and overlaps[on[0], j] == left
            kind = Kind.CUT_TOKEN if whole else Kind.ALTERED_TOKEN
        else:
            kind = repair.compare(tokens[on[0]], line)
            if kind == Kind.ALTERED_TOKEN and chars.equal:
                kind = Kind.MANGLED_GLUE
        found.note(gap.j + j, [gap.i + i for i in on], kind)


# --------------------------------------------------------------------------------------------------
# Which labels of an aligned answer count, and what became of all the others.


class Placement(_Explained):
    """What became of a line's label; the code of `Placed.placement`."""

    PLACED = 0, "placed on its token"
    UNLABELLED = 1, "the line has no label"
    EMPTY_TOKEN = 2, "the line has a label and no token"
    LABEL_AS_TOKEN = 3, "a label is where the token should be"
    INSERTED_TOKEN = 4, "the reference has no such token"
    ALTERED_TOKEN = 5, "the token is cut or altered"
    DROPPED_SENTENCE = 6, "something in the sentence is altered"
    OTHER_PART = 7, "another part of the token has the same label, or this one is outside"
    OVERRULED_PART = 8, "an earlier part of the token has another label"


_STRAYS = {
    Kind.EMPTY_TOKEN: Placement.EMPTY_TOKEN,
    Kind.LABEL_AS_TOKEN: Placement.LABEL_AS_TOKEN,
    Kind.INSERTED_TOKEN: Placement.INSERTED_TOKEN,
}


@dataclass(frozen=True, eq=False)
class Placed:
    """Which label counts for every token, and what became of every line."""

    source: NDArray[np.int32]  # [n_tokens], index of the line whose label counts, -1 missing
    placement: NDArray[np.int8]  # [n_lines], a code of `Placement`

    def reasons(self) -> dict[str, int]:
        """Count the labels that are not placed, by reason; with those placed, all lines."""
        counts = Counter(map(Placement, sorted(self.placement.tolist())))
        return {one.text: n for one, n in counts.items() if one != Placement.PLACED}


def place(
    alignment: Alignment,
    reference_offsets: NDArray[np.int64],  # [n_sentences + 1]
    answer_labels: Sequence[str],
    altered: str = "missing",  # What becomes of labels on cut, merged and changed tokens
    *,
    outside: str = "O",
) -> Placed:
    """Decide which labels of an aligned answer count.

    A label on a token with a label glued onto it, the token otherwise whole, counts under every
    rule: it was given to this token alone, and the makers of ner_mturk kept it. A line with an
    empty token belongs to no token; it does not spoil its sentence.

    >>> from goldspan.crowd.alignment import AnswerToken, align
    >>> answer = [AnswerToken("Africa", "B-LOC", 1, 0), AnswerToken("ns", "O", 2, 0)]
    >>> placed = place(align([["Africans"]], answer), np.array([0, 1]), ["B-LOC", "O"], "keep")
    >>> placed.source.tolist(), [Placement(code).name for code in placed.placement]
    ([0], ['PLACED', 'OTHER_PART'])
    """
    target = alignment.target
    source = speakers(target, answer_labels, len(alignment.altered), outside)
    unlabelled = np.array([not label for label in answer_labels], np.bool_)
    placement = np.full(len(target), Placement.OTHER_PART, np.int8)
    for kind, reason in _STRAYS.items():
        placement[alignment.kind == kind] = reason
    lost, reason = _lost_tokens(alignment, reference_offsets, altered)
    lines = np.flatnonzero(target >= 0)
    placement[lines[lost[target[lines]]]] = reason
    placement[lines[unlabelled[lines]]] = Placement.UNLABELLED
    source[lost] = -1
    given = np.flatnonzero(source >= 0)
    source[given[unlabelled[source[given]]]] = -1
    placement[source[source >= 0]] = Placement.PLACED
    for line in np.flatnonzero(placement == Placement.OTHER_PART).tolist():
        if answer_labels[line] not in {outside, answer_labels[source[target[line]]]}:
            placement[line] = Placement.OVERRULED_PART
    return Placed(source, placement)


def _lost_tokens(
    alignment: Alignment, offsets: NDArray[np.int64], altered: str
) -> tuple[NDArray[np.bool_], Placement]:
    """Mark the tokens whose labels a rule gives up, bool [n_tokens], and say why."""
    if altered == "missing":
        return alignment.altered, Placement.ALTERED_TOKEN
    lengths = np.diff(offsets)
    spoilt = np.zeros(len(lengths), np.bool_)
    if altered == "drop-sentence":
        spoilt[np.repeat(np.arange(len(lengths)), lengths)[alignment.altered]] = True
        strange = [f.sentence for f in alignment.faults if f.kind in SPOILING and f.sentence >= 0]
        spoilt[strange] = True
    return np.repeat(spoilt, lengths), Placement.DROPPED_SENTENCE


def speakers(
    target: NDArray[np.int32], labels: Sequence[str], n_tokens: int, outside: str
) -> NDArray[np.int32]:
    """Choose for every token the line that stands for it, int32 [n_tokens], -1 none."""
    placed = np.flatnonzero(target >= 0)
    source = np.full(n_tokens, -1, np.int32)
    source[target[placed]] = placed
    if np.all(np.diff(target[placed]) > 0):  # no token has two lines
        return source
    rank = np.array([2 if not label else int(label == outside) for label in labels], np.int8)
    # Written last wins: the best rank last, and within a rank the first line last.
    for worse in (2, 1, 0):
        lines = np.flatnonzero((target >= 0) & (rank == worse))[::-1]
        source[target[lines]] = lines
    return source


# --------------------------------------------------------------------------------------------------
# The faults of an aligned answer, each with its place in the answer and in the reference.


def _neighbour(
    line: int, answer: Sequence[AnswerToken], found: Alignment, placed: NDArray[np.intp]
) -> tuple[int, bool]:
    """Return the token that a line without one follows, -1 for none.

    Where the line begins a sentence it is the token that comes next, and True.
    """
    after = int(np.searchsorted(placed, line))
    before = int(placed[after - 1]) if after else -1
    follows = before >= 0 and answer[before].sentence == answer[line].sentence
    if after < len(placed) and not follows:
        return int(found.target[placed[after]]), True
    return (int(found.target[before]) if before >= 0 else -1), False


def _find_faults(
    reference: Sequence[Sequence[str]], answer: Sequence[AnswerToken], found: Alignment
) -> Iterator[Fault]:
    """Yield what is not as in the reference, and mark the tokens that are left out as altered."""
    lengths = np.array([len(tokens) for tokens in reference], np.int64)
    starts = np.cumsum(lengths) - lengths
    sentence_of = np.repeat(np.arange(len(lengths)), lengths)
    placed = np.flatnonzero(found.target >= 0)
    answered = np.zeros(len(lengths), np.bool_)
    answered[sentence_of[found.touched]] = True
    left_out = ~found.touched & answered[sentence_of]
    found.altered |= left_out

    def place_of(token: int) -> tuple[int, int]:
        sentence = int(sentence_of[token])
        return sentence, token - int(starts[sentence])

    def line_before(token: int) -> int:
        """The line in the file that a missing token should follow, 0 the top."""
        before = int(np.searchsorted(found.target[placed], token))
        return answer[int(placed[before - 1])].line if before else 0

    def shown(kind: str, line: int) -> Fault:
        token, one = int(found.target[line]), answer[line]
        near, begins = (token, False) if token >= 0 else _neighbour(line, answer, found, placed)
        sentence, position = place_of(near) if near >= 0 else (-1, -1)
        stood = reference[sentence][position] if token >= 0 else ""
        position = -1 if begins else position
        return Fault(kind, one.line, sentence, position, one.token, one.label, stood)

    for line in np.flatnonzero(found.kind != Kind.EXACT).tolist():
        yield shown(Kind(found.kind[line]).word, line)
    for token in np.flatnonzero(left_out).tolist():
        sentence, position = place_of(token)
        stood = reference[sentence][position]
        yield Fault("missing-token", line_before(token), sentence, position, "", "", stood)
    for sentence in np.flatnonzero(~answered & (lengths > 0)).tolist():
        line, text = line_before(int(starts[sentence])), " ".join(reference[sentence])
        yield Fault("missing-sentence", line, sentence, -1, "", "", text)
    for before, line in pairwise(placed.tolist()):
        known = sentence_of[found.target[before]] != sentence_of[found.target[line]]
        begins = answer[before].sentence != answer[line].sentence
        if known != begins:
            yield shown("sentence-cut" if begins else "sentence-join", line)


# --------------------------------------------------------------------------------------------------
# From a worker's dirty file to labels on the tokens of the reference.


def align(
    reference: Sequence[Sequence[str]],
    answer: Sequence[AnswerToken],
    *,
    types: Collection[str] = (),
    outside: str = "O",
) -> Alignment:
    """Find for every line of an answer the reference token that it belongs to.

    Linear where the characters agree; no input raises.
    """
    tokens = [token for sentence in reference for token in sentence]
    shown = [line.token for line in answer]
    found = Alignment.of(len(tokens), len(shown))
    if tokens == shown:
        found.target[:], found.kind[:], found.touched[:] = np.arange(len(tokens)), Kind.EXACT, True
    else:
        labels = {line.label for line in answer} - {outside}
        trace(tokens, shown, LabelRepair.learn(tokens, shown, labels, types), found)
    faults = _find_faults(reference, answer, found)
    found.faults = tuple(sorted(faults, key=lambda fault: fault[1:4]))
    return found
