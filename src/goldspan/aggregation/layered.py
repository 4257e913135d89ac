"""The consensus of several questions about the same items: every layer is aggregated by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregation.consensus import Consensus, format_of
from goldspan.crowd.atomic import write_text
from goldspan.crowd.formats.layered import HEAD
from goldspan.crowd.io import read_layers
from goldspan.crowd.layers import ByLayer, Layers, stacked, whole_index
from goldspan.crowd.model import Crowd
from goldspan.crowd.questions import answers_of_labels
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


@dataclass(frozen=True, eq=False)
class Joint(Consensus):
    """Several layers of the same items as one result: whether all labels of an item are right.

    Its crowd says who answered what; `layers` has the labels. `confidence` is the product of those
    of the layers, as if they erred independently.

    Attributes:
        layers: The consensus of every layer.
        parts: By layer of which item of the crowd each of its items is a part, int64 [n_items].
        sure: By layer the probability that its labels of an item are right, float64 [n_items] of
            the crowd; 1 where nobody answered.
    """

    layers: LayersConsensus = field(default_factory=lambda: LayersConsensus({}))
    parts: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    sure: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of(cls, layers: LayersConsensus, crowd: Crowd) -> Joint:
        """Put the layers together over a crowd that has an item of one place for each of theirs."""
        place = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
        entropy, parts = np.zeros(crowd.n_items), dict[str, NDArray[np.int64]]()
        sure = {name: np.ones(crowd.n_items) for name in layers}
        for name, one in layers.items():
            ids, part = whole_index(one.crowd)
            at = parts[name] = np.array([place[item] for item in ids], np.int64)[part]
            asked = one.codes[one.crowd.offsets[:-1]] >= 0
            np.multiply.at(sure[name], at[asked], one.confidence[asked])
            if one.entropy is not None:
                np.add.at(entropy, at, one.entropy)
        known = np.diff(crowd.by_item.bounds) > 0
        has_all = all(one.entropy is not None for one in layers.values())
        return cls(
            crowd=crowd,
            codes=np.where(known, 0, -1).astype(np.int16),
            token_probs=known[:, None].astype(np.float32),
            span_confidence=np.zeros(0, np.float32),
            confidence=np.where(known, np.prod([*sure.values()], axis=0), 0).astype(np.float32),
            make_workers=_workers,
            method=", ".join(f"{name}: {one.method}" for name, one in layers.items()),
            seconds=sum(one.seconds for one in layers.values()),
            notes=_each(layers, "notes"),
            cautions=_each(layers, "cautions"),
            entropy=entropy.astype(np.float32) if has_all else None,
            layers=layers,
            parts=parts,
            sure=sure,
        )

    @property
    def mean_confidence(self) -> float | None:
        """Mean probability that all labels of an item are right."""
        known = self.confidence[self.codes >= 0]
        return float(known.mean(dtype=np.float64)) if len(known) else None

    def over(self, change: Callable[[Crowd], Crowd]) -> Joint:
        """Return this over changed crowds, such as with other names of the workers."""
        each = {name: replace(one, crowd=change(one.crowd)) for name, one in self.layers.items()}
        layers = LayersConsensus(each, self.layers.ordinal)
        return replace(self, crowd=change(self.crowd), layers=layers)

    def answers(
        self, tokens_of: Callable[[str], tuple[Sequence[str], Sequence[int]]]
    ) -> dict[str, dict[str, Any]]:
        """Return the labels by item, in the form of an answer (`goldspan.crowd.questions`)."""
        crowds = {name: one.crowd for name, one in self.layers.items()}
        codes = {name: one.codes for name, one in self.layers.items()}
        return answers_of_labels(crowds, codes, tokens_of)


def _workers(result: Consensus) -> pa.Table:
    assert isinstance(result, Joint)
    return result.layers.workers


def _each(layers: LayersConsensus, what: str) -> tuple[str, ...]:
    return tuple(f"{name}: {one}" for name, own in layers.items() for one in getattr(own, what))


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
