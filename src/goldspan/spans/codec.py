"""Tags as codes: the tag set with its masks of legal transitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import Fault, FaultsError, InputError
from goldspan.spans.encoding import (
    FAULTS,
    Encoding,
    Role,
    TagFault,
    get_encoding,
    pair_table,
    read_tag,
    write_tag,
)

# --------------------------------------------------------------------------------------------------
# Tags as integers: the bridge from words at the edge to arrays inside.


MAX_TAGS = 32_000
"""Codes are int16."""


class Tagged(NamedTuple):
    """The tags of many items as one flat array.

    Attributes:
        codes: int16 [n_tokens] or [n_tokens, n_workers]; -1 where nobody labelled the token.
        offsets: int64 [n_items + 1]; item n holds tokens offsets[n] to offsets[n + 1].
    """

    codes: NDArray[np.int16]
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class Codec:
    """A tag set in one encoding: tags to codes and back, with the pair table.

    Code v stands for `tags[v]`; -1 stands for a token without a tag. Codecs made by `from_types`
    and `from_tags` put `O` first and then the full tag strings in sorted order (PLAIN: sorted).

    Args:
        tags: The tags in the order of their codes.
        encoding: Their encoding, by any of its names.

    Raises:
        FaultsError: Some of the tags do not belong to the encoding, or appear twice.

    >>> codec = Codec.from_types(["PER"], "BIO")
    >>> codec.tags
    ('O', 'B-PER', 'I-PER')
    >>> codec.encode([["B-PER", "O"], ["O"]]).codes.tolist()
    [1, 0, 0]
    """

    tags: tuple[str, ...]
    encoding: str = "BIO"

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(self.tags))
        object.__setattr__(self, "encoding", get_encoding(self.encoding).name)
        read = [read_tag(tag, self.rules) for tag in self.tags]
        faults = [Fault(r.message, kind=r.kind) for r in read if isinstance(r, TagFault)]
        seen: set[str] = set()
        for tag in self.tags:
            if tag in seen:
                faults.append(Fault(f"tag {tag!r} appears twice", kind="duplicate-tag"))
            seen.add(tag)
        if faults:
            raise FaultsError(faults)
        if len(self.tags) > MAX_TAGS:
            raise InputError(f"{len(self.tags)} tags are more than {MAX_TAGS}: are these labels?")

    @classmethod
    def from_types(cls, types: Iterable[str], encoding: str | Encoding = "BIO") -> Codec:
        """Make the complete tag set of some span types (PLAIN: of some labels)."""
        rules = get_encoding(encoding)
        kinds = sorted(set(types))
        if rules.is_plain:
            return cls(tuple(kinds), rules.name)
        roles = rules.prefixes.values()
        tags = sorted(write_tag(role, kind, rules) for kind in kinds for role in roles)
        return cls(("O", *tags), rules.name)

    @classmethod
    def from_tags(cls, tags: Iterable[str], encoding: str | Encoding = "BIO") -> Codec:
        """Make the complete tag set of all types that occur in some tags.

        Raises:
            FaultsError: Some of the tags do not belong to the encoding.
        """
        rules = get_encoding(encoding)
        types: set[str] = set()
        faults: list[Fault] = []
        for tag in sorted(set(tags), key=str):
            read = read_tag(tag, rules)
            if isinstance(read, TagFault):
                faults.append(Fault(read.message, kind=read.kind))
            elif read[1]:
                types.add(read[1])
        if faults:
            raise FaultsError(faults)
        return cls.from_types(types, rules)

    @cached_property
    def rules(self) -> Encoding:
        """The encoding's row of the table of encodings."""
        return get_encoding(self.encoding)

    @cached_property
    def index(self) -> dict[str | None, int]:
        """Code of every tag; None is -1."""
        return {None: -1, **{tag: code for code, tag in enumerate(self.tags)}}

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The span types, sorted."""
        return tuple(sorted({kind for _, kind in self._read if kind}))

    @cached_property
    def roles(self) -> NDArray[np.int8]:
        """Role of every tag, int8 [V]."""
        return np.array([role for role, _ in self._read], np.int8)

    @cached_property
    def type_of(self) -> NDArray[np.int16]:
        """Index into `types` of every tag, int16 [V]; -1 for `O`."""
        place = {kind: i for i, kind in enumerate(self.types)}
        return np.array([place.get(kind, -1) for _, kind in self._read], np.int16)

    @cached_property
    def code_of(self) -> NDArray[np.int16]:
        """Code of every (role, type), int16 [5, n_types]; -1 where the tag set lacks it."""
        table = np.full((len(Role), max(1, len(self.types))), -1, np.int16)
        for code, (role, kind) in enumerate(zip(self.roles, self.type_of, strict=True)):
            table[role, kind if kind >= 0 else slice(None)] = code
        return table

    @cached_property
    def pairs(self) -> NDArray[np.uint8]:
        """The pair table, uint8 [V + 1, V + 1], the boundary first (see `pair_table`)."""
        return pair_table(self.roles, self.type_of, self.rules)

    @cached_property
    def pair_rows(self) -> list[list[int]]:
        """The pair table as lists with the boundary last, so that code -1 finds it.

        For loops over single sentences, where lists are faster than arrays.
        """
        rows: list[list[int]] = np.roll(self.pairs, -1, axis=(0, 1)).tolist()
        return rows

    @cached_property
    def type_name(self) -> tuple[str, ...]:
        """Type of every tag; "" for `O`."""
        return tuple(kind for _, kind in self._read)

    @cached_property
    def outside(self) -> int:
        """Code of `O`; -1 where the tag set has none."""
        return self.index.get("O", -1) if not self.rules.is_plain else -1

    @property
    def start_mask(self) -> NDArray[np.bool_]:
        """Which tags may come first, bool [V]."""
        return np.asarray((self.pairs[0, 1:] & FAULTS) == 0)

    @property
    def end_mask(self) -> NDArray[np.bool_]:
        """Which tags may come last, bool [V]."""
        return np.asarray((self.pairs[1:, 0] & FAULTS) == 0)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which tag may follow which, bool [V, V], rows previous."""
        return np.asarray((self.pairs[1:, 1:] & FAULTS) == 0)

    def encode(self, sequences: Sequence[Sequence[str | None]]) -> Tagged:
        """Turn lists of tags into codes.

        Args:
            sequences: One list of tags per item; None marks a token without a tag.

        Raises:
            FaultsError: Some tags are not in the tag set; all are listed with item and token.
        """
        if isinstance(sequences, str) or (len(sequences) and isinstance(sequences[0], str)):
            raise InputError("expected a list of tag lists, one per item; got a single one")
        lengths = np.fromiter(map(len, sequences), np.int64, count=len(sequences))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        code = self.index.__getitem__
        try:
            every = map(code, chain.from_iterable(sequences))
            codes = np.fromiter(every, np.int16, count=int(offsets[-1]))
        except (KeyError, TypeError):
            raise FaultsError(self._unknown(sequences)) from None
        return Tagged(codes, offsets)

    def decode(self, tagged: Tagged) -> list[list[str | None]]:
        """Turn codes back into lists of tags; a token without a tag becomes None.

        Raises:
            InputError: A code is not of this tag set.
        """
        n_tags = len(self.tags)
        if tagged.codes.size and not -1 <= tagged.codes.min() <= tagged.codes.max() < n_tags:
            raise InputError(f"codes must lie in -1 … {n_tags - 1}, the codes of the tag set")
        words = np.array([*self.tags, None], object)
        flat = words[tagged.codes].tolist()
        bounds = tagged.offsets.tolist()
        return [flat[a:b] for a, b in pairwise(bounds)]

    def decode_complete(self, tagged: Tagged) -> list[list[str]]:
        """Turn codes back into lists of tags where every token has one.

        Raises:
            InputError: A token has no tag, or a code is not of this tag set.
        """
        if tagged.codes.size and tagged.codes.min() < 0:
            raise InputError(f"{np.count_nonzero(tagged.codes < 0)} tokens have no tag")
        return cast("list[list[str]]", self.decode(tagged))

    @cached_property
    def _read(self) -> list[tuple[Role, str]]:
        pairs = [read_tag(tag, self.rules) for tag in self.tags]
        return [pair for pair in pairs if not isinstance(pair, TagFault)]

    def _unknown(self, sequences: Sequence[Sequence[str | None]]) -> list[Fault]:
        faults = []
        for item, tags in enumerate(sequences):
            for token, tag in enumerate(tags):
                if isinstance(tag, str | None) and tag in self.index:
                    continue
                read = read_tag(tag, self.rules)
                kind, message = "unknown-tag", f"tag {tag!r} is not in the tag set"
                if isinstance(read, TagFault):
                    kind, message = read
                faults.append(Fault(message, item=str(item), token=token, kind=kind))
        return faults


# --------------------------------------------------------------------------------------------------
# Which tag may follow which, as a list and as a mask for a CRF.


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


def next_tags(
    tags: Iterable[str], encoding: str | Encoding, start: str = "<START>", end: str = "<END>"
) -> dict[str, list[str]]:
    """Return the tags that may follow each tag, and the start, as a dictionary.

    >>> next_tags(["O", "B-X", "I-X"], "BIO")["O"]
    ['O', 'B-X', '<END>']
    """
    found: dict[str, list[str]] = {}
    for source, target, legal in transitions(tags, encoding, start, end):
        found.setdefault(source, []).extend([target] if legal else [])
    del found[end]
    return found


def transition_mask(tags: Iterable[str], encoding: str | Encoding) -> NDArray[np.bool_]:
    """Return the legality of transitions as an array, for a CRF.

    >>> transition_mask(["O", "B-X", "I-X"], "BIO").astype(int)[:3, :3]
    array([[1, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    """
    # returns bool [V + 2, V + 2]
    codec = Codec(tuple(tags), get_encoding(encoding).name)
    n_tags = len(codec.tags)
    legal = (codec.pairs & FAULTS) == 0
    mask = np.zeros((n_tags + 2, n_tags + 2), np.bool_)
    mask[:n_tags, :n_tags] = legal[1:, 1:]
    mask[n_tags, :n_tags] = legal[0, 1:]
    mask[:n_tags, n_tags + 1] = legal[1:, 0]
    mask[n_tags, n_tags + 1] = True
    return mask
