"""From a CRF's scores to a result: legal labels, marginals, spans with confidence, alternatives.

The scores become the evidence of `Posterior`: every token has a row of its own in the table, in
the place of workers' labels. So everything that can be asked of a BSC result can be asked here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregate.bsc.evidence import Evidence
from goldspan.aggregate.bsc.posterior import Posterior, decode_spans, spans_of
from goldspan.aggregate.bsc.tables import Tables
from goldspan.aggregate.consensus import Consensus
from goldspan.aggregate.crf.lessons import Floats, Scores
from goldspan.crowd import Crowd
from goldspan.protocols import Runner
from goldspan.spans import Codec

TOKENS_PER_SHARD = 20_000
MAX_SHARDS = 8


def posterior_of(
    scores: Scores,
    tokens: NDArray[np.int64],
    active: NDArray[np.bool_],
    codec: Codec,
    runner: Runner,
    known: NDArray[np.int16] | None = None,
) -> Posterior:
    """Make a posterior of scores.

    Args:
        scores: Of all tokens.
        tokens: int64 [n_items + 1].
        active: bool [n_items]; the others are left open.
        codec: The tag set.
        runner: Where to work.
        known: int16 [n_tokens], truth that is clamped, -1 unknown.
    """
    table = _table(scores, tokens)
    end = (scores.end > 0).astype(np.float64)
    tables = Tables(table, np.exp(table), np.vstack([scores.start, scores.step]), end)
    n_tokens = len(table)
    gold = np.zeros(0, np.int16) if known is None or not (known >= 0).any() else known
    every = Evidence(
        tokens, np.arange(n_tokens + 1), np.arange(n_tokens, dtype=np.int32), active, gold,
        np.zeros((0, table.shape[1])),
    )  # fmt: skip
    return Posterior(_cut(every), tables, codec, runner)


def _table(scores: Scores, tokens: NDArray[np.int64]) -> Floats:
    """Give the log scores, largest 0; the last tag's weight stands at the last token.

    Single labels have no other place for it, and a constant per token changes nothing.
    """
    table = scores.unary.copy()
    last = tokens[1:][np.diff(tokens) > 0] - 1
    table[last] += np.log(np.where(scores.end > 0, scores.end, 1.0))
    if len(table):
        table -= table.max(axis=1, keepdims=True)
    return table


def _cut(evidence: Evidence) -> list[Evidence]:
    """Cut items into shards of about equal numbers of tokens; depends on the input only."""
    tokens, n_items = evidence.offsets, len(evidence.active)
    n_shards = int(np.clip(tokens[-1] // TOKENS_PER_SHARD, 1, MAX_SHARDS))
    edges = np.searchsorted(tokens, tokens[-1] * np.arange(1, n_shards) // n_shards)
    edges = np.unique(np.concatenate([[0], edges, [n_items]]))
    return [evidence.items(int(a), int(b)) for a, b in pairwise(edges)]


def consensus_of(
    crowd: Crowd,
    posterior: Posterior,
    *,
    decode: str,
    method: str,
    make_workers: Callable[[Consensus], pa.Table],
) -> Consensus:
    """Make a result of a posterior.

    Args:
        crowd: The items.
        posterior: What is known of them.
        decode: "viterbi", the likeliest path, or "mbr", the spans with the largest expected F1.
        method: Name of the aggregator.
        make_workers: Makes the table of workers.
    """
    codec, offsets = crowd.tagset, crowd.offsets
    last = posterior.marginals()
    codes = last.codes
    if decode == "mbr" and not codec.rules.is_plain:
        codes = decode_spans(last, offsets, codec)
    paths, masses = posterior.confidences(
        codes, spans_of(codes, offsets, codec), offsets, last.probs
    )
    return Consensus(
        crowd=crowd,
        codes=codes,
        token_probs=last.probs,
        span_confidence=masses.astype(np.float32),
        confidence=paths.astype(np.float32),
        make_workers=make_workers,
        method=method,
        entropy=last.entropy.astype(np.float32),
        posterior=posterior,
    )
