"""A data set on the Hugging Face Hub: gold, every annotator's answers, and a card."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from goldspan import __version__
from goldspan.aggregation.consensus import Consensus, without_answers
from goldspan.aggregation.machines import models_of
from goldspan.aggregation.splits import creators, of_annotators
from goldspan.crowd import Crowd, write_crowd
from goldspan.crowd.formats.datasets import feature_of
from goldspan.crowd.formats.span_exports import SoftLabels
from goldspan.crowd.hub import ANSWERS, GOLD, hub, parse, upload
from goldspan.errors import InputError
from goldspan.money import from_micro


def push(
    data: Crowd | Consensus,  # Answers, gold, or both; the labels of a consensus are the gold
    address: str,  # hf://datasets/OWNER/NAME
    *,
    gold: Crowd | None = None,  # Items with the gold, by default those of the crowd
    soft: SoftLabels | None = None,  # Confidences of the gold; by default those of a consensus
    about: str = "",  # Markdown that ends the card: method, certificate, licence
    public: bool = False,
    send: bool = False,  # Nothing leaves this machine otherwise
) -> dict[str, Any]:
    """Make a data set, upload it if `send` says so, and return what is in it.

    Of the configuration `answers` `read_crowd` makes the whole crowd again; `gold` has a row per
    item, as trainers want it.

    Raises:
        InputError: The address is none of a data set, or the Hub rejects the upload.
        MissingExtraError: `huggingface_hub` is not installed.
    """
    if parse(address)[1]:
        raise InputError(f"{address}: a data set is written as a whole: hf://datasets/OWNER/NAME")
    endpoint, crowd = hub().endpoint, data.as_gold() if isinstance(data, Consensus) else data
    soft = data.soft if isinstance(data, Consensus) else soft
    if gold is None and crowd.gold is not None:
        gold = without_answers(crowd)
    if gold is None and not crowd.n_workers:
        raise InputError("there are neither labels nor answers: nothing to upload")
    with tempfile.TemporaryDirectory() as name:
        lost = _write(Path(name), crowd, gold, soft, about)
        files = {
            path.relative_to(name).as_posix(): path.stat().st_size
            for path in sorted(Path(name).rglob("*.*"))
        }
        page = upload(address, Path(name), public=public) if send else None
    said = {"output": address, "endpoint": endpoint, "public": public, "files": files}
    return {**said, "workers": crowd.worker_ids.to_pylist(), "lost": lost, "sent": page}


def _write(
    folder: Path, crowd: Crowd, gold: Crowd | None, soft: SoftLabels | None, about: str
) -> list[str]:
    """Write the files and the card; return what they do not hold."""
    card, lost = ["---", "configs:"], []
    parts: dict[str, tuple[Crowd, dict[str, Any]]] = {}
    if gold is not None:
        if soft is not None and gold.is_classification:
            sure = [row[0] if row else np.nan for row in soft.by_item(gold)]
            soft = replace(soft, confidence=np.array(sure, np.float32))
        # Parts, of which spans that overlap are made, have their place in goldspan's layout alone.
        kind = "datasets" if gold.wholes is None else "parquet"
        parts[GOLD] = gold, {"format": kind, "soft": soft}
    if crowd.n_workers:
        parts[ANSWERS] = crowd, {"format": "parquet"}
    for name, (part, how) in parts.items():
        path = folder / name / "train.parquet"
        path.parent.mkdir()
        lost += [f"{name}: {one}" for one in write_crowd(part, path, **how)]
        card += [f"- config_name: {name}", f"  data_files: {name}/train.parquet"]
        if how["format"] == "parquet":
            _name_labels(path, part.tagset.tags)
    card += [*_card(crowd, gold, soft), "", about.strip()]
    (folder / "README.md").write_text("\n".join(card).strip() + "\n", encoding="utf-8")
    return lost


def _name_labels(path: Path, tags: Sequence[str]) -> None:
    """Give the labels in goldspan's Parquet the type and names that `datasets` wants of them."""
    table = pq.read_table(path)
    names = {"feature": {"names": list(tags), "_type": "ClassLabel"}, "_type": "Sequence"}
    features = {one.name: feature_of(one.type) for one in table.schema}
    for name in {"gold", "labels"} & features.keys():
        wide, features[name] = table[name].cast(pa.list_(pa.int64())), names
        table = table.set_column(table.schema.get_field_index(name), name, wide)
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **about}), path)


def _card(crowd: Crowd, gold: Crowd | None, soft: SoftLabels | None) -> Iterator[str]:
    """Yield the lines of the card after the files."""
    models, task = models_of(crowd, None), "text" if crowd.is_classification else "token"
    if crowd.n_workers:
        yield from ("annotations_creators:", *creators(crowd, models))
    yield from ("task_categories:", f"- {task}-classification", "tags:", "- goldspan", "---", "")
    yield f"# Labels\n\nWritten by goldspan {__version__}. Licence and source are the texts' own."
    if gold is not None:
        mean = f", mean confidence {soft.span_confidence.mean():.3f}" if soft else ""
        by = f", by the method `{soft.method}`" if soft and soft.method else ""
        yield f"\n`{GOLD}`: labels of {gold.items_counted}{by}{mean}."
    if crowd.n_workers:
        yield f"\n`{ANSWERS}`: rows of items, and rows of answers with the annotators' ids."
        yield from ("\n## Annotators\n", *of_annotators(crowd, models))
        cost = crowd.answers.cost
        if cost is not None and (cost > 0).any():
            yield f"\nThe recorded pay is {from_micro(int(cost[cost > 0].sum()))} in all."
