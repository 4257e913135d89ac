"""Which items a person checks, to find out how right the labels are: drawn by known chances.

Items of which the labels are less sure are drawn more often, in proportion to

    1/2 + 1/2 sqrt(v) / mean of sqrt(v),    v = -ln(confidence that the whole item is right)
                                                + a tenth of its labels.

Of single labels v is c (1 - c), c the confidence, and a tenth. No item is left out, and nobody who
checks sees the labels. The order is random, so that any number of items from its beginning is a
sample, and a longer list continues a shorter one. Other labels draw other items.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows, draws, keys_of
from goldspan.aggregation.consensus import without_answers
from goldspan.aggregation.written import read_confidences
from goldspan.auditing.intervals import Floats
from goldspan.crowd import Crowd
from goldspan.crowd.atomic import write_text
from goldspan.crowd.io import write_unlabelled
from goldspan.crowd.layers import require_flat
from goldspan.crowd.measures import labels_of
from goldspan.errors import InputError
from goldspan.params import Whole, require
from goldspan.spans import Codec, Tagged, find_spans

ALIKE = 0.5
"""Share of the chances that is the same for all items."""
PER_LABEL = 0.1
"""Mistakes that are expected per label, whatever the confidence says."""
VERSION = 1


@dataclass(frozen=True, eq=False)
class Labelled:
    """Items with labels, and how sure these are."""

    crowd: Crowd  # The labels are its gold
    confidence: Floats | None  # [n_items], that a whole item is right; None if nobody says

    @classmethod
    def of(cls, labels: Any, /, **reading: Any) -> Labelled:
        """Take a `Consensus`, or read labels; items without any are left out."""
        crowd = labels_of(labels, "labels", **reading)
        require_flat(crowd, "an audit")
        sure = getattr(labels, "confidence", None)
        if sure is None and crowd.attributes and "confidence" in crowd.attributes.column_names:
            column = crowd.attributes["confidence"]
            is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
            sure = column.to_numpy() if is_number and not column.null_count else None
        if sure is not None and not ((sure >= 0) & (sure <= 1)).all():
            raise InputError("labels: the confidence of an item must be from 0 to 1")
        if sure is None and crowd.is_classification and isinstance(labels, str | Path):
            found = read_confidences(str(labels), crowd)  # of a table
            sure = None if found is None else found.token_confidence
        there = (np.diff(crowd.offsets) > 0) & (
            count_in_rows(crowd.gold_tagged.codes < 0, crowd.offsets) == 0
        )
        if not there.any():
            raise InputError("labels: no item is labelled as a whole")
        confidence = None if sure is None else np.asarray(sure, np.float64)[there]
        return cls(crowd.select_items(there), confidence)

    @cached_property
    def written(self) -> Floats:
        """Labels per item: spans, or 1."""
        return np.asarray(count_labels(self.crowd).sum(axis=1))

    @cached_property
    def doubt(self) -> Floats:
        """Mistakes per item that are expected."""
        if self.confidence is None:
            return np.zeros(self.crowd.n_items)
        sure = np.clip(self.confidence, 1e-6, 1.0)
        if self.crowd.is_classification:
            return np.asarray(sure * (1 - sure))
        return np.asarray(np.minimum(-np.log(sure), self.written + 1))

    @cached_property
    def share_right(self) -> Floats:
        """How probably a label of the item is right."""
        if self.confidence is None:
            return np.ones(self.crowd.n_items)
        if self.crowd.is_classification:
            return self.confidence
        return np.asarray(np.exp(-self.doubt / (self.written + 1)))

    @cached_property
    def weights(self) -> Floats:
        """To which the chances of the draw are proportional, float64 [n_items]."""
        size = np.sqrt(self.doubt + PER_LABEL * self.written)
        mean = size.mean()
        relative = size / mean if mean > 0 else np.ones(len(size))
        return np.asarray(ALIKE + (1 - ALIKE) * relative)

    @property
    def digest(self) -> str:
        """Fingerprint of the items and their labels."""
        found = hashlib.blake2b(digest_size=16)
        for item, tags in self.crowd.tagged_by_id().items():
            found.update(json.dumps([item, tags]).encode())
        return found.hexdigest()


def count_labels(crowd: Crowd) -> NDArray[np.float64]:
    """Count the gold's spans, or single labels, of every item by type, float64 [n_items, n]."""
    item, kind, names = placed_labels(crowd)[:3]
    found = np.zeros((crowd.n_items, max(1, len(names))))
    np.add.at(found, (item, kind), 1)
    return found


def placed_labels(
    crowd: Crowd,
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return item, type, names of types, first token and one past the last of all gold labels."""
    codec: Codec = crowd.tagset
    if codec.rules.is_plain:
        token = np.flatnonzero(crowd.gold_tagged.codes >= 0)
        item = np.searchsorted(crowd.offsets, token, side="right") - 1
        first, kind = token - crowd.offsets[item], crowd.gold_tagged.codes[token].astype(np.int64)
        return item, kind, list(codec.tags), first, first + 1
    spans = find_spans(Tagged(crowd.gold_tagged.codes, crowd.offsets), codec)
    base, item = crowd.offsets[spans.item], spans.item.astype(np.int64)
    kind = spans.type.astype(np.int64)
    return item, kind, list(codec.types), spans.start - base, spans.end - base


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """Which items to check, in this order, and with which chances they were drawn.

    Attributes:
        items: Ids of the items to check.
        weights: By id of every item, to which the chances of the draw are proportional.
        seed: Of the draw.
        labels: Fingerprint of the labels that were to be checked.
        crowd: The items to check, in order, without labels; None if the plan was read.
    """

    items: tuple[str, ...]
    weights: Mapping[str, float]
    seed: int
    labels: str
    crowd: Crowd | None = None

    @property
    def probabilities(self) -> list[float]:
        """Chance of every drawn item, among those that were left when it was drawn."""
        left, found = sum(self.weights.values()), []
        for item in self.items:
            found.append(min(1.0, self.weights[item] / left))  # of all items the last is sure
            left -= self.weights[item]
        return found

    def write(self, path: str | Path, format: str | None = None, *, first: int = 0) -> None:  # noqa: A002
        """Write the items for whoever checks them, without labels.

        Args:
            path: Where to.
            format: "jsonl", whose field `gold` is to be filled; "csv" for single labels, whose
                column `label` is to be filled; "label-studio", "doccano", "prodigy" or "parquet".
                By default what the ending of the name says; `.json` is Label Studio's.
            first: How many items to leave out, since whoever checks has them already.

        Raises:
            InputError: The format cannot hold items without labels, the plan was read from a file
                and has no texts, or the path cannot be written.
        """
        if self.crowd is None:
            raise InputError("this plan was read from a file: draw it again from the labels")
        chosen = self.crowd.select_items(np.arange(first, len(self.items)))
        write_unlabelled(chosen, path, format)

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, from which a stranger can compute the certificate again."""
        drawn = [
            {"item": item, "probability": chance}
            for item, chance in zip(self.items, self.probabilities, strict=True)
        ]
        found = {
            "version": VERSION, "seed": self.seed, "labels": self.labels,
            "drawn": drawn, "weights": dict(self.weights),
        }  # fmt: skip
        write_text(path, [json.dumps(found, ensure_ascii=False, indent=1) + "\n"])

    @classmethod
    def load(cls, path: str | Path) -> AuditPlan:
        """Read a plan.

        Raises:
            InputError: The file is not a plan, or cannot be read.
        """
        try:
            found = json.loads(Path(path).read_text("utf-8"))
            if found["version"] != VERSION:
                raise InputError(f"{path}: a plan of version {found['version']}, not {VERSION}")
            weights = {str(name): float(one) for name, one in found["weights"].items()}
            items = tuple(str(one["item"]) for one in found["drawn"])
            plan = cls(items, weights, int(found["seed"]), str(found["labels"]))
            plan.probabilities  # noqa: B018 - an item without a weight is a KeyError
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: not a plan of `goldspan audit draw` ({error})") from None
        if len({*items}) < len(items) or not all(0 < one < np.inf for one in weights.values()):
            raise InputError(f"{path}: an item is drawn twice, or a weight is not positive")
        return plan


def draw_audit(
    labels: Any, /, n: int = 100, *, random_state: int = 0, again: bool = False, **reading: Any
) -> AuditPlan:
    """Draw the items whose check tells how right the labels are.

    Args:
        labels: A `Consensus`, or what `goldspan.score` takes: a path to labels that were written,
            a `Crowd` with gold. Files of `Consensus.write` that have a confidence per item (JSON
            Lines, Parquet) need fewer checks than others.
        n: How many items, from 10; all if there are fewer. 20 give a first idea, 100 to 200 a
            certificate.
        random_state: Seed. The same seed with a larger `n` continues the list.
        again: Whether other labels of the same items draw the same items, as far as chances allow,
            so that earlier checks count again. Only for checks that made no label: where they did,
            the labels of these items are better than those of the others.
        reading: Options of `read_crowd`.

    Returns:
        An `AuditPlan`; `plan.write` makes the file for whoever checks, `plan.save` keeps the plan.

    Raises:
        InputError: There are no labels, or `n` is below 10.

    >>> import goldspan
    >>> labels = [{"item": str(i), "label": "yes" if i % 3 else "no"} for i in range(50)]
    >>> plan = goldspan.draw_audit(labels, n=10)
    >>> len(plan.items), plan.items == goldspan.draw_audit(labels, n=20).items[:10]
    (10, True)
    """
    require("n", n, Whole(LEAST))
    require("random_state", random_state, Whole(0))
    found = Labelled.of(labels, **reading)
    crowd = found.crowd
    weights = found.weights
    ids = crowd.item_ids.to_pylist()
    purpose = "audit" if again else f"audit {found.digest}"
    wait = -np.log1p(-draws(random_state, purpose, keys_of(ids))) / weights
    order = np.lexsort((np.arange(len(ids)), wait))[:n]
    blind = replace(without_answers(crowd.select_items(order)), gold=None, attributes=None)
    return AuditPlan(
        tuple(ids[one] for one in order),
        dict(zip(ids, weights.tolist(), strict=True)),
        random_state,
        found.digest,
        blind,
    )


LEAST = 10
"""Items that must be checked before an interval is given."""
