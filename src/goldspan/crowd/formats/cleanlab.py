"""What cleanlab takes: labels and predicted probabilities as the arrays of an `.npz` file.

Item n has the rows offsets[n]:offsets[n + 1] of `labels`, `pred_probs` and `labels_multiannotator`;
`about` is JSON in UTF-8 as uint8: classes, items, workers, tokens, encoding, and texts,
`token_start` and docs where they are known. A worker's last answer counts.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.archives import read_array
from goldspan.crowd.atomic import new_file
from goldspan.crowd.builder import CrowdBuilder
from goldspan.crowd.formats.span_exports import SoftLabels
from goldspan.crowd.labels import keep_workers
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.source import Source
from goldspan.errors import Fault, FormatError

_ARRAYS = ("about", "labels", "labels_multiannotator", "offsets")


def sniff(source: Source) -> bool:
    """Return whether the archive has the arrays."""
    return {f"{name}.npy" for name in _ARRAYS} <= (source.files or {}).keys()


def read(source: Source, options: ReadOptions) -> Crowd:
    """Read labels as gold and the workers' labels as answers."""
    try:
        files = source.files or {}
        arrays = {name: read_array(files[f"{name}.npy"].data) for name in _ARRAYS}
        return keep_workers(_read(arrays, source.name, options), options)
    except FormatError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        message = f"not the arrays that goldspan writes for cleanlab ({error}): write them again"
        raise FormatError([Fault(message, file=source.name, kind="arrays")]) from None


def _read(arrays: dict[str, NDArray[Any]], name: str, options: ReadOptions) -> Crowd:
    about: dict[str, Any] = json.loads(arrays["about"].astype(np.uint8).tobytes())
    classes: list[str | None] = [*about["classes"], None]
    named = replace(options, encoding=options.encoding or about["encoding"])
    builder = CrowdBuilder(named.with_labels(about["classes"]), name, "cleanlab")
    bounds = arrays["offsets"].astype(np.int64).tolist()
    gold = arrays["labels"].astype(np.int64)
    given = arrays["labels_multiannotator"].astype(np.float64)
    said = np.where(np.isnan(given), -1, given).astype(np.int64)
    n_tokens = bounds[-1]
    if gold.shape != (n_tokens,) or said.shape != (n_tokens, len(about["workers"])):
        raise ValueError(f"{gold.shape} labels and {said.shape} of workers for {n_tokens} tokens")
    for codes in (gold, said):
        if codes.size and not -1 <= codes.min() <= codes.max() < len(classes) - 1:
            raise ValueError("a label is not a class")
    for worker in about["workers"]:
        builder.add_worker(worker)
    for n, item in enumerate(about["items"]):
        part = slice(bounds[n], bounds[n + 1])
        codes = gold[part].tolist()
        place = builder.add_item(
            item,
            about["tokens"][n],
            group=about["docs"][n] if "docs" in about else None,
            text=about["texts"][n] if "texts" in about else None,
            token_start=about["token_start"][part] if "token_start" in about else None,
            gold=[classes[code] for code in codes] if max(codes) >= 0 else None,
        )
        for w, worker in enumerate(about["workers"]):
            tags = [classes[code] for code in said[part, w].tolist()]
            if any(tag is not None for tag in tags):
                builder.add_answer(place, worker, tags)
    return builder.build()


def write(crowd: Crowd, path: Path, soft: SoftLabels | None = None) -> None:
    """Write the arrays."""
    latest = crowd.latest
    given = np.full((crowd.n_tokens, crowd.n_workers), np.nan)
    given[crowd.token_of, crowd.worker_of] = np.where(latest.codes < 0, np.nan, latest.codes)
    nothing = np.full(crowd.n_tokens, -1, np.int16)
    about: dict[str, Any] = {"classes": list(crowd.tagset.tags), "encoding": crowd.tagset.encoding}
    columns = {"workers": crowd.worker_ids, "items": crowd.item_ids, "tokens": crowd.tokens,
               "texts": crowd.texts, "docs": crowd.groups}  # fmt: skip
    about |= {name: column.to_pylist() for name, column in columns.items() if column is not None}
    if crowd.token_start is not None:
        about["token_start"] = crowd.token_start.tolist()
    arrays = {
        "labels": (nothing if crowd.gold is None else crowd.gold).astype(np.int64),
        "labels_multiannotator": given,
        "offsets": crowd.offsets,
        "about": np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), np.uint8),
    }
    if soft is not None and soft.token_probs is not None:
        arrays["pred_probs"] = soft.token_probs
    with new_file(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
