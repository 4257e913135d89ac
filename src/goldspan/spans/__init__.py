"""Spans and tags: parse, check, convert, mask and score, for every encoding.

Imported at first use: `spans.encoding` and `spans.text` do without NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.spans.codec import Codec, Tagged, Transition, transition_mask, transitions
    from goldspan.spans.corpus import (
        POLICIES,
        ErrorArray,
        SpanArray,
        find_errors,
        find_spans,
        token_flags,
        write_codes,
    )
    from goldspan.spans.encoding import ALIASES, ENCODINGS, Encoding, Role, Span, get_encoding
    from goldspan.spans.parsing import (
        TagError,
        convert,
        parse,
        parse_with_errors,
        validate,
        write,
    )
    from goldspan.spans.scoring import (
        Rates,
        SchemeScore,
        Score,
        WrongSpan,
        score,
        score_codes,
        score_columns,
    )
    from goldspan.spans.text import locate, to_chars, to_tokens, tokenize

__all__ = [
    "ALIASES",
    "ENCODINGS",
    "POLICIES",
    "Codec",
    "Encoding",
    "ErrorArray",
    "Rates",
    "Role",
    "SchemeScore",
    "Score",
    "Span",
    "SpanArray",
    "TagError",
    "Tagged",
    "Transition",
    "WrongSpan",
    "convert",
    "find_errors",
    "find_spans",
    "get_encoding",
    "locate",
    "parse",
    "parse_with_errors",
    "score",
    "score_codes",
    "score_columns",
    "to_chars",
    "to_tokens",
    "token_flags",
    "tokenize",
    "transition_mask",
    "transitions",
    "validate",
    "write",
    "write_codes",
]

_HOME = {
    "ALIASES": "goldspan.spans.encoding",
    "Codec": "goldspan.spans.codec",
    "ENCODINGS": "goldspan.spans.encoding",
    "Encoding": "goldspan.spans.encoding",
    "ErrorArray": "goldspan.spans.corpus",
    "POLICIES": "goldspan.spans.corpus",
    "Rates": "goldspan.spans.scoring",
    "Role": "goldspan.spans.encoding",
    "SchemeScore": "goldspan.spans.scoring",
    "Score": "goldspan.spans.scoring",
    "Span": "goldspan.spans.encoding",
    "SpanArray": "goldspan.spans.corpus",
    "TagError": "goldspan.spans.parsing",
    "Tagged": "goldspan.spans.codec",
    "Transition": "goldspan.spans.codec",
    "WrongSpan": "goldspan.spans.scoring",
    "convert": "goldspan.spans.parsing",
    "find_errors": "goldspan.spans.corpus",
    "find_spans": "goldspan.spans.corpus",
    "get_encoding": "goldspan.spans.encoding",
    "locate": "goldspan.spans.text",
    "parse": "goldspan.spans.parsing",
    "parse_with_errors": "goldspan.spans.parsing",
    "score": "goldspan.spans.scoring",
    "score_codes": "goldspan.spans.scoring",
    "score_columns": "goldspan.spans.scoring",
    "to_chars": "goldspan.spans.text",
    "to_tokens": "goldspan.spans.text",
    "token_flags": "goldspan.spans.corpus",
    "tokenize": "goldspan.spans.text",
    "transition_mask": "goldspan.spans.codec",
    "transitions": "goldspan.spans.codec",
    "validate": "goldspan.spans.parsing",
    "write": "goldspan.spans.parsing",
    "write_codes": "goldspan.spans.corpus",
}

__getattr__ = lazy(__name__, _HOME)
