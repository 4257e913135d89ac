"""What `goldspan.spans` shows to the world."""

from __future__ import annotations

import goldspan.spans


def test_the_public_names_are_these():
    assert set(goldspan.spans.__all__) == {
        "Codec", "Span", "Tagged", "convert", "find_errors", "find_spans", "next_tags",
        "parse", "parse_bilou", "parse_bio", "parse_bmewo", "parse_iob", "parse_iobes", "score",
        "to_tokens", "tokenize", "transition_mask", "transitions", "validate", "write",
    }  # fmt: skip
