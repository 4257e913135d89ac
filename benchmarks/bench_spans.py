"""Spans against the peers: parse and flags against iobes, exact F1 against seqeval."""

from __future__ import annotations

import logging
from typing import Any

import iobes
import numpy as np
import seqeval.metrics

from corpus import corpus
from goldspan.spans import (
    Tagged,
    find_spans,
    parse,
    score,
)
from goldspan.spans.corpus import token_flags
from goldspan.spans.scoring import score_codes
from pairs import Row, compare

N_WORKERS = 5
# The peer logs every malformed tag; what is compared is parsing.
logging.getLogger("iobes").setLevel(logging.CRITICAL)


def _clean() -> Any:
    return corpus(0.0)


def _both() -> Any:
    return corpus(0.0), corpus(0.05)


def _matrix() -> Any:
    codec, tagged, tags = corpus(0.0)
    return codec, Tagged(np.stack([tagged.codes] * N_WORKERS, axis=1), tagged.offsets), tags


def _peer_parse(data: Any) -> None:
    for tags in data[2]:
        iobes.parse_spans_bio(tags)


def _our_sentences(data: Any) -> None:
    for tags in data[2]:
        parse(tags)


def _our_f1(data: Any) -> float:
    (codec, truth, _), (_, found, _) = data
    return score_codes(truth, found, codec).f1


def _our_f1_strings(data: Any) -> float:
    return score(data[0][2], data[1][2]).f1


def _peer_f1(data: Any) -> float:
    return float(seqeval.metrics.f1_score(data[0][2], data[1][2]))


def run() -> list[Row]:
    """Run all of them."""
    same = abs(_our_f1(_both()) - _peer_f1(_both()))
    assert same < 1e-12, f"the two F1 differ by {same}"
    return [
        compare(
            "parse a corpus from ids (iobes)",
            _clean,
            lambda d: find_spans(d[1], d[0]),
            _peer_parse,
            at_least=50,
        ),
        compare(
            "parse a corpus from strings (iobes)",
            _clean,
            lambda d: find_spans(d[0].encode(d[2]), d[0]),
            _peer_parse,
        ),
        compare(
            "parse sentence by sentence (iobes)",
            _clean,
            _our_sentences,
            _peer_parse,
            rounds=3,
        ),
        compare("exact F1 from ids (seqeval)", _both, _our_f1, _peer_f1, at_least=60),
        compare("exact F1 from strings (seqeval)", _both, _our_f1_strings, _peer_f1, at_least=10),
        compare(
            f"boundary flags, [tokens, {N_WORKERS} workers], per label (iobes)",
            _matrix,
            lambda d: token_flags(d[1], d[0]),
            _peer_parse,
            at_least=100,
            scale=N_WORKERS,
            note="the peer parses one column; its time counts five times",
        ),
    ]
