"""Labels glued onto tokens: `Valletta/LOC`, `Hutu/B-MISC`, and what labelling tools made of them.

A slash and a word are a glued label only where the word is known as a type: `and/or` and `10-3/8`
are tokens. Some tools replace text by labels again and again and cut what they made, so that
`Kingston` becomes `Kingston/B | - | /B | - | MISC | LOC`; `Glue.clean` undoes this on characters.
A glued type is no answer of a worker and is never read as a label: in ner_mturk four workers have
`/LOC` on every place of the gold, and `O` as their own label on four fifths of these tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from goldspan.crowd.alignment.kinds import Kind

_TAG = re.compile(r"[A-Z]-([\w.-]+)")
_TYPE_SHAPE = re.compile(r"[A-Z][A-Z_]+", re.ASCII)
_MAX_PASSES = 8
"""How deep labels inside labels are undone; real files go two deep."""


@dataclass(frozen=True)
class Glue:
    """The glued labels of one document.

    Attributes:
        types: Types that may be glued.
        labels: Labels of the answer.
        both: Tokens that both sides have; a bare type at their end belongs to them.
        pattern: Matches a glued label anywhere in a text.
    """

    types: frozenset[str]
    labels: frozenset[str]
    both: frozenset[str]
    pattern: re.Pattern[str]

    @classmethod
    def learn(
        cls,
        reference: Sequence[str],
        answer: Sequence[str],
        labels: Iterable[str],
        types: Collection[str] = (),
    ) -> Glue:
        """Learn which types are glued in a document.

        Known are the `types` given, those of the labels, those glued in tag form (`/B-MISC`) in
        the reference, and words in capitals that the answer adds to tokens of the reference.
        """
        words, shown, used = set(reference), set(answer), frozenset(labels)
        known = {*types, *(m[1] for m in map(_TAG.fullmatch, used) if m)}
        for token in sorted(words - shown):
            tag = _TAG.fullmatch(token.rpartition("/")[2]) if "/" in token else None
            known |= {tag[1]} if tag else set()
        added = {token.rpartition("/")[::2] for token in shown - words}
        tails = {tail for head, tail in added if head in words and tail not in words}
        # `Malta/LO C` is a glued LOC that was cut: LO is no type beside it.
        kinds = sorted({tail for tail in tails if _TYPE_SHAPE.fullmatch(tail)} | known)
        cut = {kind for kind, longer in pairwise(kinds) if longer.startswith(kind)} - known
        known.update(set(kinds) - cut)
        longest_first = sorted(known - {""}, key=lambda kind: (-len(kind), kind))
        choice = "|".join(map(re.escape, longest_first)) or r"(?!)"
        pattern = re.compile(rf"/(?:[A-Z]-)?(?:{choice})")
        return cls(frozenset(longest_first), used, frozenset(words & shown), pattern)

    def strip(self, token: str) -> str:
        """Take glued labels off the end of a token; a token is never emptied.

        >>> Glue.learn(["Valletta"], ["Valletta/LOC"], []).strip("Valletta/LOC")
        'Valletta'
        """
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
        """Take glued labels out of a text wherever they are, also labels inside labels.

        Args:
            text: Characters of several lines, joined.
            owner: Line of every character.

        Returns:
            The characters that remain and their lines.
        """
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
        """Say whether a token is a label or a type, with or without the slash."""
        return token.lstrip("/") in self.labels | self.types

    def compare(self, reference: str, token: str) -> Kind:
        """Say how one line shows one reference token."""
        if token == reference:
            return Kind.EXACT
        bare = self.strip(token)
        if bare == self.strip(reference):
            return Kind.GLUED_REFERENCE if bare == token else Kind.GLUED_SUFFIX
        return Kind.ALTERED_TOKEN
