"""What an alignment of a worker's file with its reference is made of.

An answer file is a list of lines, each a token and a label. `Kind` says how a line relates to the
reference; `Fault` says the same in words and places, and also what no line shows: a missing token,
a sentence cut elsewhere. `Alignment` holds both, compactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class AnswerToken(NamedTuple):
    """One line of an answer file.

    Attributes:
        token: The token as the file shows it; "" where the line holds only a label.
        label: The label; "" where the line holds only a token.
        line: Line in the file, counted from 1.
        sentence: Sentence of the file, counted from 0.
    """

    token: str
    label: str
    line: int
    sentence: int


class Kind(IntEnum):
    """How a line of an answer relates to the reference; the code of `Alignment.kind`."""

    EXACT = 0
    GLUED_SUFFIX = 1
    GLUED_REFERENCE = 2
    CUT_TOKEN = 3
    MANGLED_GLUE = 4
    MERGED_TOKENS = 5
    ALTERED_TOKEN = 6
    REPLACED_TOKEN = 7
    EMPTY_TOKEN = 8
    LABEL_AS_TOKEN = 9
    INSERTED_TOKEN = 10

    @property
    def word(self) -> str:
        """Give the name under which faults and reports count it.

        >>> Kind.CUT_TOKEN.word
        'cut-token'
        """
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

FAULT_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "glued-suffix": "A label is glued onto a token that is otherwise as in the reference.",
        "glued-reference": "The reference has a label glued onto this token, the answer has not.",
        "cut-token": "The line holds a part of a reference token.",
        "mangled-glue": "Glued labels stand inside the token, or are cut with the rest elsewhere.",
        "merged-tokens": "The line holds (parts of) several reference tokens.",
        "altered-token": "The line holds a reference token with other characters in it.",
        "replaced-token": "Something else, or nothing, stands where the reference has a token.",
        "empty-token": "The line has a label and no token.",
        "label-as-token": "A label, or a part of one, stands in the place of a token.",
        "inserted-token": "The reference has no such token here.",
        "missing-token": "The answer lacks this token of a sentence that it has.",
        "missing-sentence": "The answer has no token of this sentence.",
        "sentence-cut": "The answer starts a sentence inside a sentence of the reference.",
        "sentence-join": "The answer goes on where the reference starts a sentence.",
    }
)
"""Every kind of fault, explained in one sentence."""


class Fault(NamedTuple):
    """One thing that was not as it should be.

    Attributes:
        kind: One of `FAULT_KINDS`.
        line: Line in the answer file; for what is missing the line it should follow, 0 the top.
        sentence: Reference sentence, counted from 0; -1 unknown.
        position: Token within that sentence, counted from 0; for a line that belongs to no token,
            the token it follows; -1 none.
        token: What the answer shows.
        label: The label on that line.
        reference: What the reference has there.
    """

    kind: str
    line: int
    sentence: int
    position: int
    token: str
    label: str
    reference: str


@dataclass(frozen=True, eq=False)
class Alignment:
    """Where the lines of one answer belong among the tokens of the reference.

    Attributes:
        source: int32 [n_tokens], index of the line whose label stands for the token, -1 none. Of
            several parts the first that is not outside, else the first.
        altered: bool [n_tokens], whether the answer shows the token cut, merged, changed, or
            leaves it out of a sentence that it has. A purely glued label does not count.
        target: int32 [n_lines], reference token in which the line begins, -1 none; never falls.
        kind: int8 [n_lines], a code of `Kind`.
        faults: Everything that is not as in the reference, by line. A token cut in three gives
            three faults, one for every line, so that every label can be found.
    """

    source: NDArray[np.int32]
    altered: NDArray[np.bool_]
    target: NDArray[np.int32]
    kind: NDArray[np.int8]
    faults: tuple[Fault, ...]
