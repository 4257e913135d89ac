"""From tags to spans and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

from goldspan.errors import Fault, FaultsError, InputError, SpanError
from goldspan.spans.codec import Codec
from goldspan.spans.corpus import check_policy, fault_message
from goldspan.spans.encoding import (
    BAD_OPEN,
    ENDED,
    FAULT_KINDS,
    FAULTS,
    LINKED,
    NOT_CLOSED,
    STARTS,
    TYPE_CHANGE,
    Encoding,
    Role,
    Span,
    TagFault,
    get_encoding,
    read_tag,
)

# --------------------------------------------------------------------------------------------------
# Reading the spans and the faults of one sequence.


class TagError(NamedTuple):
    """One fault of a tag sequence.

    Attributes:
        index: The token at fault.
        kind: "unknown-tag", "wrong-case", "missing-type", "no-begin", "type-change",
            "not-closed" or "needless-begin".
        previous: The tag before, None at the beginning.
        current: The tag at fault.
        next: The tag after, None at the end.
        message: The fault in a sentence.
    """

    index: int  # type: ignore[assignment]
    kind: str
    previous: str | None
    current: str
    next: str | None
    message: str


def parse(
    tags: Sequence[str], encoding: str | Encoding = "BIO", policy: str = "conlleval"
) -> list[Span]:
    """Read the spans of one sequence of tags.

    Args:
        tags: One tag per token.
        encoding: "IOB", "BIO", "IOBES", "BILOU", "BMEWO" or "PLAIN", or an alias.
        policy: How malformed sequences are read: "conlleval", "strict", "boundaries", "raise".

    Returns:
        The spans in order.

    Raises:
        FaultsError: A tag does not belong to the encoding (under every policy), or with policy
            "raise" the sequence is malformed.

    >>> parse(["B-PER", "I-PER", "O", "I-LOC"])
    [Span(type='PER', start=0, end=2), Span(type='LOC', start=3, end=4)]
    >>> parse(["B-PER", "I-PER", "O", "I-LOC"], policy="strict")
    [Span(type='PER', start=0, end=2)]
    """
    check_policy(policy)
    tags = listed(tags)
    codec, codes = _encode(tags, get_encoding(encoding))
    bits = _pair_bits(codes, codec)
    if policy == "raise" and any(bit & FAULTS for bit in bits):
        raise FaultsError(as_faults(_pair_errors(tags, bits, codec)))
    return _read_spans(codes, bits, codec, policy)


# By encoding, as Lester (2020) has them.
parse_iob, parse_bio, parse_iobes, parse_bilou, parse_bmewo = (
    partial(parse, encoding=name) for name in ("IOB", "BIO", "IOBES", "BILOU", "BMEWO")
)


def parse_with_errors(
    tags: Sequence[str], encoding: str | Encoding = "BIO"
) -> tuple[list[Span], list[TagError]]:
    """Read the spans of one sequence in the way of conlleval, and list all that is wrong with it.

    A string that is not a tag belongs to no span and is told once; its neighbours are not blamed.

    >>> spans, errors = parse_with_errors(["O", "I-PER"])
    >>> errors[0].message
    'I-PER follows O: in BIO a span must open with its begin tag'
    """
    rules, tags = get_encoding(encoding), listed(tags)
    try:
        codec, codes = _encode(tags, rules)
    except FaultsError:
        return _parse_around(tags, rules)
    bits = _pair_bits(codes, codec)
    return _read_spans(codes, bits, codec), _pair_errors(tags, bits, codec)


def validate(tags: Sequence[str], encoding: str | Encoding = "BIO") -> list[TagError]:
    """List all that is wrong with a sequence; an empty list means that it is well-formed.

    >>> validate(["B-PER", "I-PER"])
    []
    """
    return parse_with_errors(tags, encoding)[1]


@lru_cache(maxsize=256)
def _codec(tags: frozenset[str], encoding: str) -> Codec:
    return Codec.from_tags(tags, encoding)


def listed(tags: Iterable[str]) -> list[str]:
    """Make a list of what may be an iterator, which can be read only once."""
    if isinstance(tags, str):
        raise InputError("expected a list of tags, got a string")
    return tags if isinstance(tags, list) else list(tags)


def _parse_around(tags: list[str], rules: Encoding) -> tuple[list[Span], list[TagError]]:
    """Do what `parse_with_errors` does where some strings are not tags."""
    read = [read_tag(tag, rules) for tag in tags]
    good = [not isinstance(r, TagFault) for r in read]
    codec = _codec(frozenset(t for t, g in zip(tags, good, strict=True) if g), rules.name)
    codes = [codec.index[tag] if g else -1 for tag, g in zip(tags, good, strict=True)]
    bits = _pair_bits(codes, codec)
    errors = []
    for i, fault in enumerate(read):
        if isinstance(fault, TagFault):
            errors.append(_error(tags, i, fault.kind, fault.message))
            # The neighbours of a string that is not a tag cannot be judged.
            bits[i] &= ~NOT_CLOSED
            bits[i + 1] &= ~BAD_OPEN
    errors += _pair_errors(tags, bits, codec)
    return _read_spans(codes, bits, codec), sorted(errors, key=lambda e: e.index)


def _encode(tags: Sequence[str], rules: Encoding) -> tuple[Codec, list[int]]:
    try:
        codec = _codec(frozenset(tags), rules.name)
    except (FaultsError, TypeError):
        faults = [(i, read_tag(tag, rules)) for i, tag in enumerate(tags)]
        listed = [
            Fault(f.message, token=i, kind=f.kind) for i, f in faults if isinstance(f, TagFault)
        ]
        raise FaultsError(listed) from None
    return codec, [codec.index[tag] for tag in tags]


def _pair_bits(codes: list[int], codec: Codec) -> list[int]:
    """Look up every two neighbours in the pair table; the boundary stands at both ends."""
    rows = codec.pair_rows
    pairs = zip([-1, *codes], [*codes, -1], strict=True)
    return [rows[before][now] for before, now in pairs]


def _read_spans(
    codes: list[int], bits: list[int], codec: Codec, policy: str = "conlleval"
) -> list[Span]:
    rules = codec.rules
    if policy == "boundaries" and rules.begin_always and not rules.is_plain:
        # Read spans under the policy `boundaries`: runs of linked tags that open with a begin tag
        heads = [i for i, bit in enumerate(bits) if not bit & LINKED]
        spans = []
        for a, b in pairwise(heads):
            opens = codes[a] >= 0 and codec.roles[codes[a]] in {Role.BEGIN, Role.SINGLE}
            closes = codec.roles[codes[b - 1]] in {Role.END, Role.SINGLE} or not codec.rules.has_end
            if opens and closes:
                spans.append(Span(codec.type_name[codes[a]], a, b))
        return spans
    bad_close = NOT_CLOSED | (TYPE_CHANGE if rules.has_end else 0)
    starts = [i for i, bit in enumerate(bits) if bit & STARTS]
    ends = [i for i, bit in enumerate(bits) if bit & ENDED]
    return [
        Span(codec.type_name[codes[a]], a, b)
        for a, b in zip(starts, ends, strict=True)
        if policy != "strict" or not (bits[a] & BAD_OPEN or bits[b] & bad_close)
    ]


def _pair_errors(tags: Sequence[str], bits: list[int], codec: Codec) -> list[TagError]:
    errors = []
    for i, bit in enumerate(bits):
        if bit & FAULTS:
            kind = FAULT_KINDS[bit & FAULTS]
            place = i - 1 if kind == "not-closed" else i
            before = tags[place - 1] if place else None
            after = tags[place + 1] if place + 1 < len(tags) else None
            message = fault_message(kind, before, tags[place], after, codec)
            errors.append(_error(tags, place, kind, message))
    return errors


def _error(tags: Sequence[str], index: int, kind: str, message: str) -> TagError:
    before = tags[index - 1] if index else None
    after = tags[index + 1] if index + 1 < len(tags) else None
    return TagError(index, kind, before, tags[index], after, message)


def as_faults(errors: Iterable[TagError]) -> list[Fault]:
    """Turn the errors of a sequence into faults, for an exception."""
    return [Fault(e.message, token=e.index, kind=e.kind) for e in errors]


# --------------------------------------------------------------------------------------------------
# Writing the spans of one sequence as tags, and rewriting tags.


def write(
    spans: Iterable[Span | tuple[str, int, int]], length: int, encoding: str | Encoding = "BIO"
) -> list[str]:
    """Write spans as tags.

    Args:
        spans: Spans in any order; no span at all is fine.
        length: Number of tokens.
        encoding: The encoding to write.

    Raises:
        SpanError: A span is empty, out of range, or overlaps another.

    >>> write([Span("PER", 1, 3)], 4, "IOBES")
    ['O', 'B-PER', 'E-PER', 'O']
    """
    rules = get_encoding(encoding)
    ordered = _checked([Span(*span) for span in spans], length)
    if rules.is_plain:
        if any(end - start != 1 for _, start, end in ordered):
            raise SpanError("a span has more than one token: PLAIN labels single tokens")
        if len(ordered) != length:
            raise SpanError(f"PLAIN labels every token: {len(ordered)} labels for {length} tokens")
        return [span.type for span in ordered]
    letters = {role: letter for letter, role in rules.prefixes.items()}
    begin, inside = letters[Role.BEGIN], letters[Role.INSIDE]
    last, single = letters.get(Role.END, inside), letters.get(Role.SINGLE)
    tags = ["O"] * length
    before = Span("", -1, -1)
    for span in ordered:
        kind, start, end = span
        touches = start == before.end and kind == before.type
        first = begin if rules.begin_always or touches else inside
        if end - start == 1:
            tags[start] = f"{single or first}-{kind}"
        else:
            middle = [f"{inside}-{kind}"] * (end - start - 2)
            tags[start:end] = [f"{first}-{kind}", *middle, f"{last}-{kind}"]
        before = span
    return tags


def convert(tags: Sequence[str], source: str | Encoding, target: str | Encoding) -> list[str]:
    """Rewrite tags in another encoding.

    Raises:
        FaultsError: The tags are malformed; the exception holds every fault, because gold labels
            people can fix and should not be guessed.
        InputError: One of the two is PLAIN, whose labels are not spans.

    >>> convert(["I-ORG", "I-ORG", "B-ORG"], "IOB", "BIO")
    ['B-ORG', 'I-ORG', 'B-ORG']
    """
    rules, wanted = get_encoding(source), get_encoding(target)
    if rules.is_plain != wanted.is_plain:
        raise InputError("PLAIN labels hold no spans: they cannot be converted to another encoding")
    tags = listed(tags)
    spans, errors = parse_with_errors(tags, rules)
    if errors:
        raise FaultsError(as_faults(errors))
    return write(spans, len(tags), wanted)


def _checked(spans: list[Span], length: int) -> list[Span]:
    """Sort spans and reject those that cannot be written."""
    if length < 0:
        raise SpanError(f"a sequence cannot have {length} tokens")
    for kind, start, end in spans:
        if not isinstance(kind, str) or not kind:
            raise SpanError("a span has no type")
        edges: tuple[Any, ...] = (start, end)
        if not all(isinstance(edge, Integral) for edge in edges):
            raise SpanError("the start and the end of a span must be whole numbers")
        if end <= start:
            raise SpanError(f"span [{start}, {end}) is empty")
        if start < 0 or end > length:
            raise SpanError(f"span [{start}, {end}) is out of range: there are {length} tokens")
    ordered = sorted(spans, key=lambda span: span.start)
    for left, right in pairwise(ordered):
        if right.start < left.end:
            first, second = f"[{left.start}, {left.end})", f"[{right.start}, {right.end})"
            raise SpanError(f"span {second} overlaps span {first}")
    return ordered
