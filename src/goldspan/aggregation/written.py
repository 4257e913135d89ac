"""Confidences in the files that `Consensus.write` made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.crowd.formats.columns import parquet_table
from goldspan.crowd.formats.datasets import is_ours
from goldspan.crowd.grid import read_grid
from goldspan.crowd.layers import units_of
from goldspan.crowd.source import open_source
from goldspan.errors import Fault, FaultsError, GoldspanError
from goldspan.spans import find_spans

ROUNDED = 1e-6
"""How far a probability may be beyond 0 or 1."""
Rows = dict[str, Any]


class Written(NamedTuple):
    """Confidences that a file holds."""

    token_probs: NDArray[np.float32] | None  # [n_tokens, J], None where the file has none
    token_confidence: NDArray[np.float32]  # [n_tokens]; of files without them NaN
    span_confidence: NDArray[np.float32]  # [n_spans]


def read_confidences(path: str, labels: Crowd) -> Written | None:
    """Read the confidences of a file that `Consensus.write` made as .parquet, .jsonl or .csv."""
    if labels.gold is None or labels.import_report.format == "layers":  # which has one per layer
        return None
    read = _Reading(path, labels)
    table, rows = _parquet(path), _json_rows(path)
    if table is not None:
        found = read.of_parquet(table)
    elif rows is not None:
        found = read.of_json(rows)
    else:
        found = read.of_csv(_csv_rows(path))
    if read.faults:
        raise FaultsError(read.faults, "the confidences are damaged: write the labels again")
    return found


def _in_order(spans: Any) -> list[Rows]:
    """Return spans that have a confidence, as objects, by their places."""
    listed = [one for one in spans or [] if isinstance(one, dict)]
    return sorted(listed, key=lambda one: one["start"])


# --------------------------------------------------------------------------------------------------
# The files, as far as they may be ours.


def _parquet(path: str) -> pa.Table | None:
    """Return the table of a Parquet file that `Consensus.write` made."""
    source = open_source(path)
    if source.is_folder or not source.is_parquet:
        return None
    table = parquet_table(source)
    return table if b"goldspan.tags" in (table.schema.metadata or {}) else None


def _json_rows(path: str) -> dict[str, Rows] | None:
    """Return the lines of a JSONL file by item, or the rows of `datasets`; None of another."""
    source = open_source(path)
    if source.is_folder:
        return None
    if source.is_parquet:
        table = parquet_table(source)
        ours = table.to_pylist() if is_ours(table.column_names) else []
        return {row["item"]: row | {"gold": row.get("spans")} for row in ours} or None
    try:
        lines = source.text.value.split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
    except (ValueError, GoldspanError):
        return None
    if not all(isinstance(row, dict) and isinstance(row.get("item"), str) for row in rows):
        return None
    return {row["item"]: row for row in rows}


def _csv_rows(path: str) -> list[Rows] | None:
    """Return the rows of a table of single labels, None of another file."""
    source = open_source(path)
    if source.is_folder or source.is_parquet:
        return None
    try:
        grid = read_grid(source, ",")
    except GoldspanError:
        return None
    if "item" not in grid.header:
        return None
    columns = [grid.column(name).to_pylist() for name in grid.header]
    return [dict(zip(grid.header, row, strict=True)) for row in zip(*columns, strict=True)]


# --------------------------------------------------------------------------------------------------
# Confidences, each of them checked.


@dataclass(eq=False)
class _Reading:
    """Reads confidences, and collects what is wrong with them."""

    path: str
    labels: Crowd
    faults: list[Fault] = field(default_factory=list)

    def of_parquet(self, table: pa.Table) -> Written | None:
        """Take them from a table."""
        names, labels = table.column_names, self.labels
        if "value" in names or not {"token_confidence", "probs", "spans"} & set(names):
            return None
        for name in ("token_confidence", "probs", "spans"):
            if name not in names:
                self._fault(f"the column {name} is missing")
        if self.faults:
            return None
        n_tokens, width = np.diff(labels.offsets).tolist(), len(labels.tagset.tags)
        ids = labels.item_ids.to_pylist()
        columns = (table[name].to_pylist() for name in ("token_confidence", "probs", "spans"))
        tokens, probs, sure = [], [], []
        for name, n, n_spans, one, each, spans in zip(
            ids, n_tokens, self._n_spans(), *columns, strict=True
        ):
            tokens += self._numbers(one or [], n, name, "token", "confidences")
            rows = each or []
            self._count(len(rows), n, name, "lists of probabilities")
            for k, row in enumerate(rows[:n]):
                own = self._numbers(row or [], width, name, "token", "probabilities", k)
                if sum(own) > 1 + 1000 * ROUNDED:
                    self._fault(f"the probabilities add up to {sum(own):.4g}", name, k)
                probs.append(own)
            own_spans = [one.get("confidence") for one in spans or []]
            sure += self._numbers(own_spans, n_spans, name, "span", "confidences")
        if self.faults:
            return None
        rows, single, span = (np.array(one, np.float32) for one in (probs, tokens, sure))
        return Written(rows.reshape(-1, width), single, span)

    def of_json(self, rows: Mapping[str, Rows]) -> Written | None:
        """Take them from lines of JSON."""
        labels, ids = self.labels, self.labels.item_ids.to_pylist()
        every = [rows.get(name, {}) for name in ids]
        if labels.wholes is not None:
            return None if labels.is_classification else self._of_parts(rows)
        if labels.is_classification:
            if any("value" in row for row in every):
                return None
            return self._single(
                [[row["confidence"]] if "confidence" in row else [] for row in every]
            )
        if labels.tagset.rules.is_plain:
            return None
        spans = [_in_order(row.get("gold")) for row in every]
        told = [[one["confidence"] for one in own if "confidence" in one] for own in spans]
        if not any(told) and not any("confidence" in row for row in every):
            return None
        sure: list[float] = []
        for name, own, n in zip(ids, spans, self._n_spans(), strict=True):
            sure += self._numbers(
                [one.get("confidence") for one in own], n, name, "span", "confidences"
            )
        nothing = np.full(labels.n_tokens, np.nan, np.float32)
        return None if self.faults else Written(None, nothing, np.array(sure, np.float32))

    def _of_parts(self, rows: Mapping[str, Rows]) -> Written | None:
        """Take the confidences of spans that overlap, whatever parts they are in."""
        labels = self.labels
        assert labels.wholes is not None
        told = {
            (whole, one["type"], one["start"], one["end"]): one["confidence"]
            for whole, row in rows.items()
            for one in _in_order(row.get("gold"))
            if "confidence" in one
        }
        if not told:
            return None
        items = np.arange(labels.n_items)
        chars = labels.texts is not None
        every = units_of(labels, labels.gold_tagged, items, chars=chars)
        sure: list[float] = []
        for whole, own in zip(labels.wholes.to_pylist(), every, strict=True):
            found = [told.get((whole, *one)) for one in sorted(own, key=lambda one: one[1])]
            sure += self._numbers(found, len(own), whole, "span", "confidences")
        nothing = np.full(labels.n_tokens, np.nan, np.float32)
        return None if self.faults else Written(None, nothing, np.array(sure, np.float32))

    def of_csv(self, rows: list[Rows] | None) -> Written | None:
        """Take them from a table of single labels."""
        if not rows or "confidence" not in rows[0] or "value" in rows[0]:
            return None
        if not self.labels.is_classification:
            return None
        cells: dict[str, list[Any]] = {}
        for row in rows:
            cells.setdefault(row["item"], []).append(_read(row["confidence"]))
        ids = self.labels.item_ids.to_pylist()
        return self._single([cells.get(name, []) for name in ids])

    def _single(self, every: Sequence[list[Any]]) -> Written | None:
        """Take one confidence of every item that is labelled; of others it says nothing."""
        labels = self.labels
        if not any(every):
            return None
        sure = []
        said = labels.gold_tagged.codes >= 0
        for name, own, is_said in zip(labels.item_ids.to_pylist(), every, said, strict=True):
            if is_said:
                sure += self._numbers(own, 1, name, "label", "confidences")
            else:
                sure.append(0.0)
        if self.faults:
            return None
        array = np.array(sure, np.float32)
        return Written(None, array, array[find_spans(labels.gold_tagged, labels.tagset).start])

    def _n_spans(self) -> list[int]:
        labels = self.labels
        spans = find_spans(labels.gold_tagged, labels.tagset)
        return list(np.bincount(spans.item, minlength=labels.n_items).tolist())

    def _numbers(
        self, values: Sequence[Any], n: int, item: str, what: str, words: str, at: int = -1
    ) -> list[float]:
        """Check that there are n numbers from 0 to 1; what is none becomes 0."""
        self._count(len(values), n, item, words, at)
        found = []
        for k, value in enumerate(values):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            is_right = is_number and -ROUNDED <= value <= 1 + ROUNDED  # NaN is not
            if not is_right:
                which = what if what == "label" else f"{what} {k if at < 0 else at}"
                shown = "is missing" if value is None else f"is {value!r:.40}"
                self._fault(f"the {words[:-1]} of {which} {shown}, not a number from 0 to 1", item)
            found.append(min(1.0, max(0.0, float(value))) if is_right else 0.0)
        return found

    def _count(self, found: int, n: int, item: str, words: str, at: int = -1) -> None:
        if found != n:
            where = "" if at < 0 else f" of token {at}"
            self._fault(f"{found} {words}{where}, and there should be {n}", item)

    def _fault(self, message: str, item: str = "", token: int = -1) -> None:
        self.faults.append(Fault(message, self.path, item=item, token=token, kind="confidence"))


def _read(cell: str | None) -> Any:
    """Read a cell as a number; what is none stays."""
    try:
        return None if cell is None or not cell.strip() else float(cell)
    except ValueError:
        return cell
