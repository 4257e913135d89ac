"""The encodings of tags, and the pair table that drives parsing, checking and scoring."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from goldspan.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# --------------------------------------------------------------------------------------------------
# The span encodings: what each prefix does, and how a tag is read.


class Role(IntEnum):
    """What a tag does to a span."""

    OUTSIDE = 0
    BEGIN = 1
    INSIDE = 2
    END = 3
    SINGLE = 4


class Span(NamedTuple):
    """A typed stretch of tokens.

    Attributes:
        type: For example "PER".
        start: First token.
        end: One past the last token.

    >>> Span("PER", 2, 4).tokens
    range(2, 4)
    """

    type: str
    start: int
    end: int

    @property
    def tokens(self) -> range:
        """The tokens of the span."""
        return range(self.start, self.end)


class PartSpan(NamedTuple):
    """A span that may begin and end within tokens."""

    type: str
    start: int  # The first token
    end: int  # One past the last token
    from_char: int = 0  # The first character of its first token
    to_char: int | None = None  # One past the last character of its last token; None: all of it


class Encoding(NamedTuple):
    """One way of writing spans as tags."""

    name: str
    prefixes: dict[str, Role]  # The prefix letter of every role that it has
    summary: str  # One line for help texts
    # Whether every span opens with its begin tag (in IOB only where two spans of one type touch)
    begin_always: bool = True

    @property
    def has_end(self) -> bool:
        """Whether a span's last token has a tag of its own."""
        return Role.END in self.prefixes.values()

    @property
    def is_plain(self) -> bool:
        """Whether tags are plain labels, each a span of one token."""
        return not self.prefixes

    def prefix(self, role: Role) -> str:
        """Return the prefix letter of a role."""
        for letter, played in self.prefixes.items():
            if played == role:
                return letter
        raise KeyError(role)


_B, _I, _E, _S = Role.BEGIN, Role.INSIDE, Role.END, Role.SINGLE
_IOB = {"B": _B, "I": _I}

ENCODINGS: dict[str, Encoding] = {
    row.name: row
    for row in (
        Encoding("IOB", _IOB, "B- only where spans of one type touch (IOB1)", begin_always=False),
        Encoding("BIO", _IOB, "B- begins every span, I- continues it (IOB2)"),
        Encoding("IOBES", {"B": _B, "I": _I, "E": _E, "S": _S}, "E- ends, S- is single"),
        Encoding("BILOU", {"B": _B, "I": _I, "L": _E, "U": _S}, "L- ends, U- is single"),
        Encoding("BMEWO", {"B": _B, "M": _I, "E": _E, "W": _S}, "M- inside, W- is single"),
        Encoding("PLAIN", {}, "labels without prefixes, one token each"),
    )
}
ALIASES = {"IOB1": "IOB", "IOB2": "BIO", "BIOES": "IOBES", "BIOUL": "BILOU", "BMEOW": "BMEWO"}


def get_encoding(name: str | Encoding) -> Encoding:
    """Find an encoding by its name or an alias, in any case."""
    if isinstance(name, Encoding):
        return name
    key = name.upper() if isinstance(name, str) else ""
    found = ENCODINGS.get(ALIASES.get(key, key))
    if found is None:
        raise UnknownNameError("encoding", name, [*ENCODINGS, *ALIASES])
    return found


class TagFault(NamedTuple):
    """Why a string is not a tag of an encoding."""

    kind: str
    message: str


def read_tag(tag: object, encoding: Encoding) -> tuple[Role, str] | TagFault:
    """Split one tag into its role and its type, or say why it cannot be.

    The type is everything after the first hyphen, so it may hold hyphens itself. Nothing is
    guessed: an unknown tag, a prefix in the wrong case and a tag without a type are three
    different faults, and never `O`.

    >>> read_tag("B-creative-work", get_encoding("BIO"))
    (<Role.BEGIN: 1>, 'creative-work')
    >>> read_tag("b-PER", get_encoding("BIO")).kind
    'wrong-case'
    """
    if not isinstance(tag, str):
        return TagFault("unknown-tag", f"{tag!r} is not a tag but a {type(tag).__name__}")
    if encoding.is_plain:
        return (Role.SINGLE, tag) if tag else TagFault("missing-type", "a label is empty")
    if tag == "O":
        return (Role.OUTSIDE, "")
    prefix, hyphen, kind = tag.partition("-")
    if prefix in encoding.prefixes:
        if kind:
            return (encoding.prefixes[prefix], kind)
        return TagFault("missing-type", f"tag {tag!r} has no type: {_allowed(encoding)}")
    if tag == "o" or (prefix.upper() in encoding.prefixes and (hyphen or len(tag) == 1)):
        message = f"tag {tag!r} has its prefix in the wrong case: {_allowed(encoding)}"
        return TagFault("wrong-case", message)
    return TagFault(
        "unknown-tag", f"tag {tag!r} is not in {encoding.name}: {_allowed(encoding)}{_hint(tag)}"
    )


def write_tag(role: Role, kind: str, encoding: Encoding) -> str:
    """Write the tag of a role and type; the inverse of `read_tag`."""
    if encoding.is_plain:
        return kind
    return "O" if role is Role.OUTSIDE else f"{encoding.prefix(role)}-{kind}"


def _allowed(encoding: Encoding) -> str:
    letters = ", ".join(f"{letter}-TYPE" for letter in encoding.prefixes)
    return f"allowed are {letters} and O"


def _hint(tag: str) -> str:
    """Name the encodings in which a tag would be fine."""
    prefix, _, kind = tag.partition("-")
    fits = [e.name for e in ENCODINGS.values() if kind and prefix in e.prefixes]
    return f'; it looks like {fits[0]}: pass encoding="{fits[0]}"' if fits else ""


# --------------------------------------------------------------------------------------------------
# The pair table: one byte for every two neighbouring tags, and everything follows from it.


STARTS = 1
ENDED = 2
NO_BEGIN = 4
TYPE_CHANGE = 8
NOT_CLOSED = 16
NEEDLESS_BEGIN = 32
LINKED = 64

BAD_OPEN = NO_BEGIN | TYPE_CHANGE | NEEDLESS_BEGIN
FAULTS = BAD_OPEN | NOT_CLOSED
"""The bits that are faults; a pair has at most one of them, so that no fault is told twice."""

FAULT_KINDS: dict[int, str] = {
    NO_BEGIN: "no-begin",
    TYPE_CHANGE: "type-change",
    NOT_CLOSED: "not-closed",
    NEEDLESS_BEGIN: "needless-begin",
}


def pair_table(
    roles: NDArray[np.int8], types: NDArray[np.int16], encoding: Encoding
) -> NDArray[np.uint8]:
    """Build the table of an encoding and a set of tags."""
    # roles int8 [V], the `Role` of every tag; types int16 [V]
    # returns uint8 [V+1, V+1]
    import numpy as np  # the help texts of the command line name encodings and do without it

    role = np.concatenate([[Role.OUTSIDE], roles]).astype(np.int8)
    kind = np.concatenate([[-1], types]).astype(np.int16)
    before, now = role[:, None], role[None, :]
    same = kind[:, None] == kind[None, :]
    was_out, is_out = before == Role.OUTSIDE, now == Role.OUTSIDE

    opens = (now == Role.BEGIN) | (now == Role.SINGLE)
    closed = (before == Role.END) | (before == Role.SINGLE)
    starts = ~is_out & (was_out | ~same | opens | closed)
    ended = ~was_out & (is_out | starts)

    unfinished = (before == Role.BEGIN) | (before == Role.INSIDE)
    continues = (now == Role.INSIDE) | (now == Role.END)
    bad_open = starts & continues & encoding.begin_always
    type_change = bad_open & unfinished
    no_begin = bad_open & ~unfinished
    not_closed = ended & unfinished & ~type_change & encoding.has_end
    touching = ~was_out & same
    needless = (now == Role.BEGIN) & ~touching & (not encoding.begin_always)
    linked = unfinished & continues & (same | encoding.has_end)

    table = np.zeros(starts.shape, np.uint8)
    for bit, where in (
        (STARTS, starts),
        (ENDED, ended),
        (NO_BEGIN, no_begin),
        (TYPE_CHANGE, type_change),
        (NOT_CLOSED, not_closed),
        (NEEDLESS_BEGIN, needless),
        (LINKED, linked),
    ):
        table[where] |= bit
    table.flags.writeable = False
    return table
