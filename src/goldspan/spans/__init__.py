"""Spans and tags: parse, check, convert, mask and score, for every encoding (paper 004)."""

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
from goldspan.spans.encoding import ALIASES, ENCODINGS, Encoding, Role, get_encoding
from goldspan.spans.parsing import (
    Span,
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
