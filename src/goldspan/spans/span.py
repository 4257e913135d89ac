"""A typed stretch of tokens."""

from __future__ import annotations

from typing import NamedTuple


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
