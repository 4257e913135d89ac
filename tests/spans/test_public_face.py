"""What `goldspan.spans` shows to the world."""

from __future__ import annotations

import inspect

import goldspan.spans


def test_the_public_names_are_these():
    assert set(goldspan.spans.__all__) == {
        "ALIASES", "ENCODINGS", "POLICIES", "Codec", "Encoding", "ErrorArray", "Rates", "Role",
        "SchemeScore", "Score", "Span", "SpanArray", "TagError", "Tagged", "Transition",
        "WrongSpan", "convert", "find_errors", "find_spans", "get_encoding", "locate", "parse",
        "parse_with_errors", "score", "score_codes", "score_columns", "to_chars", "to_tokens",
        "token_flags", "tokenize", "transition_mask", "transitions", "validate", "write",
        "write_codes",
    }  # fmt: skip


def test_the_public_names_are_sorted_and_exist():
    names = goldspan.spans.__all__
    constants = [name for name in names if name.isupper()]
    classes = [name for name in names if name[0].isupper() and not name.isupper()]
    functions = [name for name in names if name[0].islower()]
    assert names == [*sorted(constants), *sorted(classes), *sorted(functions)]
    assert all(hasattr(goldspan.spans, name) for name in names)


def test_every_public_function_and_class_says_what_it_does():
    for name in goldspan.spans.__all__:
        value = getattr(goldspan.spans, name)
        if callable(value):
            assert inspect.getdoc(value), name
