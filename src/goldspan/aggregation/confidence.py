"""How far the confidences of a result can be believed, against a truth matched by item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.crowd.formats.columns import parquet_table
from goldspan.crowd.grid import read_grid
from goldspan.crowd.labels import joined, translate
from goldspan.crowd.source import Source, open_source
from goldspan.errors import GoldspanError
from goldspan.spans import Tagged, find_spans
from goldspan.spans.confidence import ConfidenceScore, score_confidence
from goldspan.spans.corpus import SpanArray
from goldspan.spans.scoring import align_by_id, item_keys, right_spans


def measure_confidence(
    crowd: Crowd,
    token_probs: NDArray[np.float32] | None,
    token_confidence: NDArray[np.float32],
    span_confidence: NDArray[np.float32],
    truth: Any,
    encoding: str | None,
) -> ConfidenceScore:
    """Measure confidences; see `ConfidenceScore`.

    Only items on both sides count, and spans whose truth is known throughout. Crowds of plain
    labels have no spans: there the labels count.

    Args:
        crowd: With the labels of the result as its gold.
        token_probs: float32 [n_tokens, J]; without them there is no cross-entropy.
        token_confidence: float32 [n_tokens], used for plain labels only.
        span_confidence: float32 [n_spans].
        truth: What `goldspan.spans.score` takes as the truth.
        encoding: As there.
    """
    codes = crowd.gold_tagged.codes
    gold, _, codec = align_by_id(truth, crowd, encoding)
    place = {key: n for n, key in enumerate(crowd.item_ids.to_pylist())}
    which = np.array([place[key] for key in item_keys(truth, crowd) if key in place], np.int64)
    lengths = np.diff(crowd.offsets)[which]
    first = np.cumsum(lengths) - lengths
    every = joined(crowd.tagset, codec)
    true = np.full(crowd.n_tokens, -1, np.int16)
    index = np.repeat(crowd.offsets[which] - first, lengths) + np.arange(lengths.sum())
    true[index] = translate(gold.codes, codec, every)
    written = translate(codes, crowd.tagset, every)
    known = np.flatnonzero((true >= 0) & (written >= 0))
    right = (true == written)[known]
    if token_probs is None:
        probs, tokens_right = np.zeros(0), right[:0]
    else:
        mine = np.array([crowd.tagset.index.get(tag, -1) for tag in every.tags], np.int64)
        own = mine[true[known]]
        probs = np.where(own >= 0, token_probs[known, np.maximum(own, 0)], 0.0)
        tokens_right = right
    if every.rules.is_plain:
        sure = token_confidence[known]
        return score_confidence("label", sure, right, probs, tokens_right, len(every.tags))
    spans = find_spans(Tagged(written, crowd.offsets), every)
    there = find_spans(Tagged(true, crowd.offsets), every)
    unknown = np.concatenate([[0], np.cumsum(true < 0)])
    kept = unknown[spans.end] == unknown[spans.start]
    is_right = right_spans(there, spans, len(true))[kept]
    sure = span_confidence[kept]
    return score_confidence("span", sure, is_right, probs, tokens_right, len(every.tags))


class Written(NamedTuple):
    """Confidences that a file holds.

    Attributes:
        token_probs: float32 [n_tokens, J], None where the file has none.
        token_confidence: float32 [n_tokens]; of files without them NaN.
        span_confidence: float32 [n_spans].
    """

    token_probs: NDArray[np.float32] | None
    token_confidence: NDArray[np.float32]
    span_confidence: NDArray[np.float32]


def read_confidences(path: str, labels: Crowd) -> Written | None:
    """Read the confidences of a file that `Consensus.write` made as .parquet, .jsonl or .csv.

    Args:
        path: The file.
        labels: What `read_crowd` makes of it.

    Returns:
        The confidences, or None where the file has none for all that is labelled: CoNLL holds those
        of tokens alone.
    """
    source = open_source(path)
    if source.is_folder or labels.gold is None:
        return None
    try:
        if source.is_parquet:
            return _of_parquet(source, labels)
        return _of_json_lines(source, labels) or _of_csv(source, labels)
    except (KeyError, TypeError, ValueError, GoldspanError):
        return None


def _of_parquet(source: Source, labels: Crowd) -> Written | None:
    table = parquet_table(source)
    if b"goldspan.tags" not in (table.schema.metadata or {}) or "value" in table.column_names:
        return None
    tokens, probs, spans = (
        table[name].combine_chunks().flatten() for name in ("token_confidence", "probs", "spans")
    )
    rows = probs.flatten().to_numpy().reshape(len(tokens), -1)
    if len(spans) != len(_spans(labels)) or rows.shape != (
        labels.n_tokens,
        len(labels.tagset.tags),
    ):
        return None
    return Written(rows, tokens.to_numpy(), spans.field("confidence").to_numpy())


def _of_json_lines(source: Source, labels: Crowd) -> Written | None:
    text = source.text.value
    if not text.startswith("{"):
        return None
    rows = {row["item"]: row for row in map(json.loads, filter(str.strip, text.split("\n")))}
    ids = labels.item_ids.to_pylist()
    if labels.is_classification:
        single = {name: rows[name]["confidence"] for name in ids if "value" not in rows[name]}
        return _of_labels(single, labels)
    own = [rows[name]["gold"] or [] for name in ids]
    per_item = np.bincount(_spans(labels).item, minlength=labels.n_items)
    if list(map(len, own)) != per_item.tolist():
        return None
    sure = [span["confidence"] for row in own for span in sorted(row, key=lambda s: s["start"])]
    nothing = np.full(labels.n_tokens, np.nan, np.float32)
    return Written(None, nothing, np.array(sure, np.float32))


def _of_csv(source: Source, labels: Crowd) -> Written | None:
    grid = read_grid(source, ",")
    if not {"item", "confidence"} <= set(grid.header) or "value" in grid.header:
        return None
    columns = (grid.column(name).to_pylist() for name in ("item", "confidence"))
    return _of_labels(dict(zip(*columns, strict=True)), labels)


def _of_labels(confidence: Mapping[str, Any], labels: Crowd) -> Written | None:
    """Take confidences of single labels by item id."""
    if not labels.is_classification:
        return None
    sure = np.array([confidence[name] for name in labels.item_ids.to_pylist()], np.float32)
    return Written(None, sure, sure[_spans(labels).start])


def _spans(labels: Crowd) -> SpanArray:
    return find_spans(labels.gold_tagged, labels.tagset)
