"""What `goldspan.spans` shows to the world."""

from __future__ import annotations

import goldspan.spans


def test_the_public_names_are_these():
    assert set(goldspan.spans.__all__) == {
        "Codec", "Span", "Tagged", "convert", "find_errors", "find_spans", "parse", "score",
        "to_tokens", "tokenize", "validate", "write",
    }  # fmt: skip


def test_the_public_names_are_sorted_and_exist():
    names = goldspan.spans.__all__
    constants = [name for name in names if name.isupper()]
    classes = [name for name in names if name[0].isupper() and not name.isupper()]
    functions = [name for name in names if name[0].islower()]
    assert names == [*sorted(constants), *sorted(classes), *sorted(functions)]
    assert all(hasattr(goldspan.spans, name) for name in names)
