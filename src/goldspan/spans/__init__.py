"""Spans and tags: parse, check, convert, mask and score, for every encoding.

Imported at first use: `spans.encoding` and `spans.text` do without NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.spans.codec import Codec, Tagged
    from goldspan.spans.corpus import find_errors, find_spans
    from goldspan.spans.encoding import Span
    from goldspan.spans.parsing import convert, parse, validate, write
    from goldspan.spans.scoring import score
    from goldspan.spans.text import to_tokens, tokenize

__all__ = [
    "Codec",
    "Span",
    "Tagged",
    "convert",
    "find_errors",
    "find_spans",
    "parse",
    "score",
    "to_tokens",
    "tokenize",
    "validate",
    "write",
]

_HOME = {
    "Codec": "goldspan.spans.codec",
    "Span": "goldspan.spans.encoding",
    "Tagged": "goldspan.spans.codec",
    "convert": "goldspan.spans.parsing",
    "find_errors": "goldspan.spans.corpus",
    "find_spans": "goldspan.spans.corpus",
    "parse": "goldspan.spans.parsing",
    "score": "goldspan.spans.scoring",
    "to_tokens": "goldspan.spans.text",
    "tokenize": "goldspan.spans.text",
    "validate": "goldspan.spans.parsing",
    "write": "goldspan.spans.parsing",
}

__getattr__ = lazy(__name__, _HOME)
