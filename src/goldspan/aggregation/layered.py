"""The consensus of several questions about the same items: every layer is aggregated by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from goldspan.aggregation.consensus import Consensus, format_of
from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.layered import HEAD
from goldspan.crowd.io import read_layers
from goldspan.crowd.layers import ByLayer, Layers, stacked
from goldspan.errors import InputError, UnavailableError

if TYPE_CHECKING:
    import pandas as pd


class LayersConsensus(ByLayer[Consensus]):
    """What `aggregate` makes of `Layers`: a mapping from the name of a layer to its `Consensus`."""

    def __repr__(self) -> str:
        """Return every layer's name and consensus."""
        return f"LayersConsensus({', '.join(f'{name}: {one!r}' for name, one in self.items())})"

    @property
    def spans(self) -> pa.Table:
        """The spans of all layers of spans (`Consensus.spans`), with a column `layer` before.

        Raises:
            UnavailableError: No layer has spans.
        """
        found = {n: one.spans for n, one in self.items() if not one.tagset.rules.is_plain}
        if not found:
            raise UnavailableError("no layer has spans: use labels")
        return _with_names(found)

    @property
    def labels(self) -> dict[str, list[Any]]:
        """The labels of all layers of labels (`Consensus.labels`)."""
        return {n: one.labels for n, one in self.items() if one.crowd.is_classification}

    @property
    def workers(self) -> pa.Table:
        """The workers of all layers (`Consensus.workers`), with a column `layer` before."""
        return _with_names({name: one.workers for name, one in self.items()})

    def to_pandas(self) -> pd.DataFrame:
        """Return the tables of all layers (`Consensus.to_pandas`) as one, with a column `layer`."""
        return stacked({name: one.to_pandas() for name, one in self.items()})

    def as_gold(self) -> Layers:
        """Return the crowds with these labels as their gold."""
        return Layers({name: one.as_gold() for name, one in self.items()}, self.ordinal)

    def write(self, path: str | Path) -> None:
        """Write JSON lines: an item each, with the spans or labels of every layer.

        `read_layers` reads them back as gold.

        Raises:
            InputError: The name does not end in .jsonl, or the path cannot be written.
        """
        if format_of(path) != "jsonl":
            raise InputError(f"{path}: labels of several layers are written as .jsonl")
        rows = self.json_rows()
        write_text(path, [json.dumps(row, ensure_ascii=False) + "\n" for row in rows])

    def json_rows(self) -> list[dict[str, Any]]:
        """Return an object per item: what it is, and the labels of every layer with confidences."""
        found: dict[str, dict[str, Any]] = {}
        # The tokens are those of a layer of spans, where there is one
        for name in sorted(self, key=lambda name: self[name].crowd.is_classification):
            for row in self[name].json_rows():
                head = {key: row[key] for key in HEAD if key in row}
                one = found.setdefault(row["item"], {**head, "layers": {}, "confidence": {}})
                one["layers"][name] = _listed(row["gold"])
                one["confidence"][name] = row["confidence"]
        for one in found.values():
            for key in ("layers", "confidence"):
                one[key] = {name: one[key].get(name) for name in self}
        return [*found.values()]


def _listed(gold: Any) -> Any:
    """Return what is known of an item as a list; tags of tokens, and what is unknown, stay."""
    if isinstance(gold, str):
        return [gold]
    return gold["labels"] if isinstance(gold, dict) and "labels" in gold else gold


def _with_names(tables: Mapping[str, pa.Table]) -> pa.Table:
    named = [
        table.add_column(0, "layer", pa.array([name] * len(table), pa.string()))
        for name, table in tables.items()
    ]
    return pa.concat_tables(named, promote_options="permissive")


def aggregate_layers(
    layers: Layers, method: str | None, *, gold: Any, **how: Any
) -> LayersConsensus:
    """Aggregate every layer; those of a scale by "ordinal", unless a method is named."""
    from goldspan.aggregation import aggregate

    known = gold if isinstance(gold, Mapping) else {} if gold is None else read_layers(gold)
    results = {
        name: aggregate(
            crowd,
            method or ("ordinal" if name in layers.ordinal else None),
            gold=known.get(name),
            **how,
        )
        for name, crowd in layers.items()
    }
    return LayersConsensus(results, layers.ordinal)
