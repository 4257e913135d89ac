"""The one result type of all aggregators: labels, confidence, spans, workers, and how it went."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from inspect import signature
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregation.judge import Candidate
from goldspan.aggregation.plausibility import check_plausibility
from goldspan.crowd import Crowd, write_crowd
from goldspan.crowd.atomic import new_file, write_text
from goldspan.crowd.formats.conll import conll_lines
from goldspan.crowd.formats.parquet import METHOD
from goldspan.crowd.formats.span_exports import SoftLabels
from goldspan.crowd.grid import any_formula, csv_text, guard, marked
from goldspan.crowd.layers import asks_each, by_whole, known_labels, of_wholes, sets_of
from goldspan.crowd.losses import UNUSED, lost_in_gold
from goldspan.crowd.measures import agreement, score
from goldspan.crowd.model import (
    YES,
    ItemText,
    columns_of_items,
    item_texts,
    known_texts,
    list_array,
)
from goldspan.crowd.registry import formats, get_writer
from goldspan.errors import InputError, UnavailableError, UnknownNameError
from goldspan.plugins import load
from goldspan.spans import Codec, Tagged, find_spans
from goldspan.spans.corpus import SpanArray
from goldspan.spans.notebook import Page, counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from goldspan.aggregation.families import Families
    from goldspan.aggregation.workers import Habit
    from goldspan.spans.confidence import ConfidenceScore

WITH_SETS = ("jsonl", "csv", "parquet")
WRITERS = ("conll", *WITH_SETS)
ENDINGS = {".conll": "conll", ".txt": "conll", ".tsv": "conll", ".jsonl": "jsonl", ".csv": "csv"}
ENDINGS |= {".parquet": "parquet", ".npz": "cleanlab", ".spacy": "docbin"}
_WITH_ANSWERS = ("cleanlab", "datasets")
"""Formats of other tools that get everybody's answers beside the labels."""


def unanswered(n: int, end: str) -> list[str]:
    """Return the note on what becomes of items without answers; none if there are none."""
    are = "is" if n == 1 else "are"
    return [f"{counted(n, 'item')} without answers {are} {end}"] if n else []


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the crowd says, as one aggregator sees it.

    Attributes:
        crowd: The crowd that was aggregated.
        codes: int16 [n_tokens], the tags; -1 where an item has no answer.
        token_probs: float32 [n_tokens, n_labels], the share or probability of every tag.
        span_confidence: float32 [n_spans], for the spans of `codes` in order.
        confidence: float32 [n_items], that all tags of the item are right.
        make_workers: Makes the table `workers` when it is first asked for.
        method: Name of the aggregator.
        params: Its parameters.
        trace: The objective after every step; empty where nothing iterates.
        converged: Whether it came to its end.
        stop_reason: Why it stopped.
        seconds: How long it took.
        notes: Decisions and warnings, in sentences.
        tagger: A tagger trained on the way, or None.
        entropy: float32 [n_items], of an item's labels in nats, or None for votes.
        posterior: What can be asked later: other spans, other paths; None for votes.
        memory: What a later fit can start from; None for votes.
        item_columns: What else a method says about items, float64 [n_items] each, such as the
            difficulty or a numeric `value`; written with the labels.
        sets: Of every written span the alternatives that hold the truth with a chosen probability
            (`goldspan.aggregation.conformal.ConformalSets`); None unless `calibrate` was asked for
            a coverage.
        candidates: What `auto` tried, the largest weight first; empty for other methods.
        families: Workers who err together, as the method found or was given them; None where
            everybody errs alone.
        cautions: What the method itself warns of, such as workers who look like copies.
        known: int16 [n_tokens], the known labels that `fit` was given, -1 elsewhere; None if none.
    """

    crowd: Crowd
    codes: NDArray[np.int16]
    token_probs: NDArray[np.float32]
    span_confidence: NDArray[np.float32]
    confidence: NDArray[np.float32]
    make_workers: Callable[[Consensus], pa.Table] = field(repr=False)
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    trace: tuple[float, ...] = ()
    converged: bool = True
    stop_reason: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    tagger: Any = None
    entropy: NDArray[np.float32] | None = None
    posterior: Any = field(default=None, repr=False)
    memory: Any = field(default=None, repr=False)
    item_columns: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    candidates: tuple[Candidate, ...] = ()
    families: Families | None = field(default=None, repr=False)
    cautions: tuple[str, ...] = ()
    sets: Any = field(default=None, repr=False)
    known: NDArray[np.int16] | None = field(default=None, repr=False)

    @cached_property
    def workers(self) -> pa.Table:
        """One row per worker: answers, labels, and how good they are by this result.

        Where workers err together also their `family`, null of who errs alone, and `effective`:
        as how many independent workers the whole family counts, n / (1 + (n - 1) rho).
        """
        table, families = self.make_workers(self), self.families
        if families is None:
            return table
        names = families.names()
        family = pa.array(map(names.get, self.crowd.worker_ids.to_pylist()), pa.string())
        table = table.append_column("family", family)
        return table.append_column("effective", pa.array(families.effective))

    @cached_property
    def warnings(self) -> list[str]:
        """What a person should know before trusting the labels, in sentences; it needs no gold.

        Signs that they have run away from the answers (`goldspan.aggregation.plausibility`), and
        the `cautions` of the method.
        """
        return [*check_plausibility(self.crowd, self.codes).warnings, *self.cautions]

    @property
    def tagset(self) -> Codec:
        """The tags and their encoding."""
        return self.crowd.tagset

    @property
    def tagged(self) -> Tagged:
        """The labels as codes and offsets."""
        return Tagged(self.codes, self.crowd.offsets)

    @cached_property
    def tags(self) -> list[list[str | None]]:
        """The labels as lists of tags, one list per item; None where nobody answered."""
        return self.tagset.decode(self.tagged)

    @cached_property
    def labels(self) -> list[Any]:
        """The label of every item of a crowd of single labels.

        Strings, or what came in a DataFrame: whole numbers, numbers or truth values. None where
        nobody answered. Where items have any number of labels, the list of those that hold.

        Raises:
            UnavailableError: The items are not single labels.
        """
        text, crowd = self.label_array, self.crowd
        if crowd.wholes is not None:
            return [
                [part for part, label in parts if label == YES]
                if any(label is not None for _, label in parts) else None
                for _, parts in by_whole(crowd, text.to_pylist())
            ]  # fmt: skip
        found = text if crowd.labels_are_text else crowd.labels_of(self.codes)
        return list(found.to_pylist())

    @property
    def label_array(self) -> pa.Array:
        """The labels of single labels as an Arrow string array, null where nobody answered.

        Raises:
            UnavailableError: The items are not single labels.
        """
        if not self.crowd.is_classification:
            raise UnavailableError("labels are for crowds of single labels; use tags or spans")
        words = pa.array(self.tagset.tags, pa.string())
        return words.take(pa.array(self.codes, mask=self.codes < 0))

    @property
    def label_probs(self) -> pa.Table:
        """Where items have any number of labels: item, label, and the probability that it holds.

        Raises:
            UnavailableError: The items have one label each, or spans.
        """
        crowd = self.crowd
        if crowd.wholes is None or not crowd.is_classification:
            raise UnavailableError("label_probs are of items with any number of labels")
        holds = self.token_probs[:, crowd.tagset.index[YES]]
        return pa.table({"item": crowd.wholes, "label": crowd.parts, "probability": holds})

    @cached_property
    def span_array(self) -> SpanArray:
        """The spans as arrays."""
        return find_spans(self.tagged, self.tagset)

    @cached_property
    def spans(self) -> pa.Table:
        """The spans: item, start, end (tokens of the item), type, confidence.

        Where the crowd has texts also `start_char` and `end_char`, in code points of the item's
        text, and `text`, what the span covers; null for items whose text is not known.
        """
        wholes = self.crowd.wholes
        return self._part_spans if wholes is None else _each_once(self._part_spans, wholes)

    @cached_property
    def _part_spans(self) -> pa.Table:
        """The table of spans in the order of `span_array`, every part of an item by itself."""
        found = self.span_array
        base = self.crowd.offsets[found.item]
        ids = self.crowd.item_ids if self.crowd.wholes is None else self.crowd.wholes
        return pa.table(
            {
                "item": ids.take(pa.array(found.item)),
                "start": pa.array((found.start - base).astype(np.int32)),
                "end": pa.array((found.end - base).astype(np.int32)),
                "type": pa.array([self.tagset.types[t] for t in found.type.tolist()], pa.string()),
                "confidence": pa.array(self.span_confidence),
                **self._covered(),
            }
        )

    @cached_property
    def _own(self) -> list[ItemText | None]:
        """The text of every item with the places of its tokens; None where it is not known."""
        return [text if text.is_own else None for text in item_texts(self.crowd)]

    def _covered(self) -> dict[str, pa.Array]:
        """What the spans cover: columns start_char, end_char, text; none without texts."""
        if self.crowd.texts is None:
            return {}
        found = self._span_texts()
        own = pc.is_valid(found["start_char"])
        found["text"] = pc.if_else(own, found["text"], pa.scalar(None, pa.string()))
        return {name: found[name] for name in ("start_char", "end_char", "text")}

    @cached_property
    def token_confidence(self) -> NDArray[np.float32]:
        """Share or probability of the tag that was given, float32 [n_tokens]; 0 without answers."""
        known = np.maximum(self.codes, 0)
        shares = np.take_along_axis(self.token_probs, known[:, None].astype(np.int64), 1)[:, 0]
        return np.where(self.codes >= 0, shares, 0).astype(np.float32)

    @property
    def mean_confidence(self) -> float | None:
        """Mean confidence of the spans, or of plain labels; None where there are none."""
        plain = self.tagset.rules.is_plain
        sure = self.token_confidence[self.codes >= 0] if plain else self.span_confidence
        return float(sure.mean(dtype=np.float64)) if len(sure) else None

    def tagged_by_id(self) -> dict[str, list[str]]:
        """Return the tags by item id, for `goldspan.score`."""
        return dict(zip(self.crowd.item_ids.to_pylist(), self.tags, strict=True))

    @property
    def soft(self) -> SoftLabels:
        """Confidences and probabilities as writers of formats take them."""
        return SoftLabels(self.token_probs, self.span_confidence, self.confidence, self.method)

    def as_gold(self) -> Crowd:
        """Return the crowd with these labels as its gold."""
        return self.crowd.with_gold(self.codes)

    def measure_confidence(self, truth: Any, encoding: str | None = None) -> ConfidenceScore:
        """Measure how far the confidences can be believed; `goldspan.score` calls it.

        Args:
            truth: What `goldspan.score` takes as the truth.
            encoding: As there.

        Returns:
            Calibration error, Brier score and others, each beside that of a constant confidence.
        """
        from goldspan.aggregation.plausibility import measure_confidence

        mine = self.as_gold()
        if asks_each(self.crowd) and isinstance(truth, Crowd):
            truth = known_labels(self.crowd, sets_of(truth, chars=False))
        sure = self.token_probs, self.token_confidence, self.span_confidence
        return measure_confidence(mine, *sure, truth, encoding)

    def alternatives(self, item: str | int, least: float = 0.01) -> list[Any]:
        """List the spans that the truth of an item may hold, the likeliest first.

        Args:
            item: Id or index.
            least: Least posterior of a span.

        Returns:
            Named tuples (start, end, type, confidence), tokens of the item.

        Raises:
            InputError: The method has no posterior (votes), or there is no such item.
        """
        if self.posterior is None:
            raise InputError(f"{self.method} has no posterior: use ds, ibcc, mace or a bsc method")
        index = _index(item, self.crowd.n_items, self.crowd.item_index, "item")
        found: list[Any] = self.posterior.alternatives(index, least)
        return found

    def confusion(self, worker: str | int) -> NDArray[np.float64]:
        """Return the expected confusions of a worker, float64 [J, J]: truth, label given.

        Element [j, i] is the expected number of tokens with truth j that the worker labelled i, by
        the order of `tagset.tags`.

        Raises:
            InputError: There is no such worker.
        """
        from goldspan.aggregation.workers import confusion_counts

        index = _index(worker, self.crowd.n_workers, self.crowd.worker_index, "worker")
        return confusion_counts(self.crowd, self.token_probs, index)

    def habits(self, worker: str | int) -> list[Habit]:
        """List what a worker does with spans, the most frequent first; `str` says it in words.

        Raises:
            InputError: There is no such worker.
        """
        from goldspan.aggregation.workers import habits

        index = _index(worker, self.crowd.n_workers, self.crowd.worker_index, "worker")
        return [] if self.tagset.rules.is_plain else habits(self.crowd, self.codes, index)

    def report(self, path: str | Path | None = None) -> Page:
        r"""Make a report with figures, one HTML file that needs no network and no script.

        It has the agreement of the crowd, and the score of the labels where there is gold; for
        others there is `goldspan.report.write_report`.

        Args:
            path: Where to write it; None writes nothing.

        Returns:
            The page, a string. A notebook shows it where it is the last line of a cell.

        Raises:
            MissingExtraError: Jinja2 or Matplotlib is not installed.
            InputError: The path cannot be written.

        >>> import goldspan
        >>> gold = goldspan.aggregate(b"task,worker,label\nq1,ann,yes\nq1,bob,yes\n")
        >>> gold.report().startswith("<!DOCTYPE html>")
        True
        """
        crowd, render = self.crowd, load("goldspan.report.sections:render")
        is_known = crowd.gold is not None and bool((crowd.gold >= 0).any())
        scored = score(crowd, self) if is_known else None
        page = Page(render(self, agreement=agreement(crowd), score=scored))
        if path is not None:
            write_text(path, [page])
        return page

    def plot_workers(self) -> Figure:
        r"""Draw how much the workers did and how well they agree: the box plots of the report.

        Returns:
            A Matplotlib figure; save it by `figure.savefig("workers.png")`.

        Raises:
            MissingExtraError: Matplotlib is not installed.
            InputError: Nobody answered anything.

        >>> import goldspan
        >>> gold = goldspan.aggregate(b"task,worker,label\nq1,ann,yes\nq1,bob,yes\n")
        >>> len(gold.plot_workers().axes)
        3
        """
        figure: Figure = load("goldspan.report:agreement_figure")(self.crowd, agreement(self.crowd))
        return figure

    def write(
        self,
        path: str | Path,
        format: str | None = None,  # noqa: A002 - the word users know
        *,
        text: bool = True,
        raw_csv: bool = False,
    ) -> list[str]:
        """Write the labels, and the items' texts where they are known.

        Args:
            path: Where to; a name that ends in `.gz` is compressed.
            format: "conll" (token, offsets, tag, confidence), "jsonl" (an item per line with its
                spans), "parquet" (an item per row with tags, confidence and every tag's
                probability) or "csv" (single labels: item, label, confidence, text; spans: a row
                per span). All but conll and the csv of spans also hold `item_columns`. Or a format
                of `write_crowd`, such as "docbin", "datasets", "cleanlab", "gliner" or
                "label-studio": where it has a place for them, labels are marked as predictions and
                have their confidences; cleanlab and datasets get the answers, too. By default what
                the ending of the name says, else conll (single labels: csv).
            text: Whether conll shows the texts and the column of offsets; other readers of such
                files may want neither.
            raw_csv: Whether cells of CSV stay as they are. By default an apostrophe goes before
                those that a spreadsheet may take for formulas; goldspan's readers take it off.

        Returns:
            What the file does not give back of the items and their labels, in words, found by
            reading it; empty if everything is there. (Confidences: conll has those of tokens, csv
            of labels, jsonl of spans and items, parquet all. `sets` are in all but conll.)

        Raises:
            InputError: The path cannot be written, or the format does not fit, as conll does not
                where there are `sets`.
        """
        target = Path(path)
        name = format or format_of(path) or ("csv" if self.crowd.is_classification else "conll")
        if name == "spans":
            name = "jsonl"
        elif name == "csv" and not self.tagset.rules.is_plain:
            name = "span-table"
        if name not in WRITERS and name not in formats():
            raise UnknownNameError("output format", name, dict.fromkeys([*WRITERS, *formats()]))
        if self.sets and name not in WITH_SETS:
            raise InputError(
                f"{target}: {name} has no place for the sets of alternatives: write .jsonl or "
                ".parquet, or ask for no coverage"
            )
        if name not in WRITERS:
            crowd = self.as_gold()
            crowd = crowd if name in _WITH_ANSWERS else without_answers(crowd)
            marks = "predicted" in signature(get_writer(name).write).parameters
            sure = dict(zip(crowd.item_ids.to_pylist(), self.confidence.tolist(), strict=True))
            how: dict[str, Any] = {"text": text, "raw_csv": raw_csv}
            how |= {"soft": self.soft, "predicted": sure if marks else None}
            lost = write_crowd(crowd, target, format=name, **how)
            return [one for one in lost if not one.startswith(UNUSED)]
        if name == "parquet":
            import pyarrow.parquet as pq

            with new_file(target) as temporary:
                pq.write_table(self.to_arrow(), temporary, compression="zstd")
        elif name == "conll":
            lines = conll_lines(self.crowd, self.tags, self.token_confidence, text=text)
            write_text(target, lines)
        elif name == "jsonl":
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in self.json_rows())
            write_text(target, lines)
        elif not self.crowd.is_classification:
            raise InputError(
                f"{target}: csv is for single labels and spans; write tagged tokens as .conll"
            )
        else:
            write_text(target, self._csv_lines(raw=raw_csv))
        mine = replace(without_answers(self.as_gold()), attributes=None, groups=None)
        return lost_in_gold(mine, target, name)

    def to_arrow(self) -> pa.Table:
        """Return an item per row: item, tokens, tags, token_confidence, probs, confidence, spans.

        Also doc, text and token_start where they are known. `probs` holds one list per token in the
        order of the tags, which stand in the metadata under `goldspan.tags`, their encoding under
        `goldspan.encoding`. `read_crowd` reads the file: the labels are its gold.
        """
        crowd, spans = self.crowd, self.span_array
        width = self.token_probs.shape[1]
        probs = pa.FixedSizeListArray.from_arrays(pa.array(self.token_probs.reshape(-1)), width)
        words = pa.array([*self.tagset.tags, None], pa.string())
        tags = words.take(pa.array(np.where(self.codes < 0, len(self.tagset.tags), self.codes)))
        table = self._part_spans.drop_columns("item")
        parts = [column.combine_chunks() for column in table.columns]
        found = pa.StructArray.from_arrays(parts, table.column_names)
        bounds = np.searchsorted(spans.item, np.arange(crowd.n_items + 1))
        facts = columns_of_items(crowd, known_texts(crowd))
        columns = {
            "item": crowd.item_ids,
            **({"label": crowd.labels_of(self.codes)} if crowd.is_classification else {}),
            "tokens": facts.pop("tokens"),
            "tags": list_array(tags, crowd.offsets),
            "token_confidence": list_array(pa.array(self.token_confidence), crowd.offsets),
            "probs": list_array(probs, crowd.offsets),
            "confidence": pa.array(self.confidence),
            "spans": list_array(found, bounds),
            **facts,
            **crowd.item_names,
        }
        for name, numbers in self.item_columns.items():
            columns[name] = pa.array(numbers, mask=np.isnan(numbers))
        if self.sets:
            columns["sets"] = self._sets_array(bounds)
        meta = {
            "goldspan.tags": json.dumps(self.tagset.tags),
            "goldspan.encoding": self.tagset.encoding,
            METHOD: self.method,
        }
        return pa.table(columns).replace_schema_metadata(meta)

    def _sets_array(self, spans: NDArray[np.int64]) -> pa.ListArray:
        """Return the sets of every item's spans, of plain labels those of its labelled tokens."""
        # spans int64 [n_items + 1], bounds of the items in the written spans
        units = spans
        if self.tagset.rules.is_plain:
            units = np.concatenate([[0], np.cumsum(self.codes >= 0)])[self.crowd.offsets]
        every = [self.sets.of(n) for n in range(len(self.sets))]
        members = [member for one in every for member in one]
        kinds = (pa.string(), pa.int32(), pa.int32(), pa.string(), pa.float32())
        columns = list(zip(*members, strict=True)) or [()] * len(kinds)
        arrays = [pa.array(one, kind) for one, kind in zip(columns, kinds, strict=True)]
        each = pa.StructArray.from_arrays(arrays, ["kind", "start", "end", "type", "confidence"])
        sizes = np.concatenate([[0], np.cumsum([*map(len, every)])]).astype(np.int64)
        return list_array(list_array(each, sizes), units)

    def summary(self) -> dict[str, Any]:
        """Return the main facts as plain values, for JSON."""
        whole = self.crowd.whole_items
        return {
            "method": self.method,
            "params": {name: _plain(value) for name, value in self.params.items()},
            "items": whole.n_items,
            **({} if self.crowd.wholes is None else {"parts": self.crowd.n_items}),
            "tokens": whole.n_tokens,
            "answers": len(whole.latest),
            "workers": self.crowd.n_workers,
            "items_without_answers": int((np.diff(whole.by_item.bounds) == 0).sum()),
            "spans": None if self.tagset.rules.is_plain else len(self.spans),
            "mean_token_confidence": float(self.token_confidence.mean())
            if len(self.codes)
            else 0.0,
            "converged": self.converged,
            "stop_reason": self.stop_reason,
            "iterations": len(self.trace),
            "objective": self.trace[-1] if self.trace else None,
            "seconds": self.seconds,
            "notes": list(self.notes),
            **({"candidates": [*map(asdict, self.candidates)]} if self.candidates else {}),
            **({"families": self._by_worker(self.families)} if self.families is not None else {}),
            **({"sets": self.sets.to_dict()} if self.sets else {}),
        }

    def _by_worker(self, families: Families) -> dict[str, Any]:
        """Return the families by worker, for JSON."""
        names, rho = families.names(), families.rho[families.number]
        every = self.crowd.worker_ids.to_pylist(), rho.tolist(), families.effective.tolist()
        return {
            worker: {"family": names[worker], "rho": shared, "effective": effective}
            for worker, shared, effective in zip(*every, strict=True)
            if worker in names
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return the labels as a pandas DataFrame.

        Single labels: one row per item with item, text (where there are texts), label (missing
        where nobody answered), confidence, and `item_columns`. Otherwise one row per span: item,
        start and end (tokens), type, text, start_char and end_char (characters of the item's text,
        missing where only its tokens are known), confidence.

        Raises:
            MissingExtraError: pandas is not installed.

        >>> import goldspan
        >>> answers = [{"task": "q1", "worker": w, "label": 1} for w in ("ann", "bob")]
        >>> goldspan.aggregate(answers).to_pandas().to_dict("records")
        [{'item': 'q1', 'label': 1, 'confidence': 1.0}]
        """
        from goldspan.spans.notebook import data_frame

        if self.crowd.is_classification:
            columns, texts = self._label_columns(), known_texts(self.crowd.whole_items)
            named = {"text": pa.array(texts, pa.string())} if any(map(bool, texts)) else {}
            return data_frame(pa.table({"item": columns.pop("item"), **named, **columns}))
        table, wholes = self._part_spans, self.crowd.wholes
        if "text" not in table.column_names:
            for name, column in self._span_texts().items():
                table = table.append_column(name, column)
        table = table if wholes is None else _each_once(table, wholes)
        places = ("item", "start", "end", "type", "text", "start_char", "end_char", "confidence")
        return data_frame(table.select(places))

    def _repr_html_(self) -> str:
        """Show the first items in a notebook: their labels, or their text with the spans marked."""
        from goldspan.crowd.model import first_items, marked_texts
        from goldspan.spans.notebook import block, marked, table

        which = first_items(self.crowd)
        first = self.as_gold().select_items(which)
        assert first.gold is not None
        whole = first.whole_items
        columns: dict[str, Any] = {"item": whole.item_ids.to_pylist()}
        if whole.is_classification:
            if whole.texts is not None:
                columns["text"] = [marked(text or "", []) for text in whole.texts.to_pylist()]
            for name, column in self._label_columns().items():
                cells = column[: whole.n_items].to_pylist()
                if name in ("label", "labels"):
                    each = (", ".join(one) if isinstance(one, list) else one for one in cells)
                    cells = [None if one is None else str(one) for one in each]
                if name != "item":
                    columns[name] = cells
        else:
            sure = self.span_confidence[np.isin(self.span_array.item, which)]
            columns["text"] = marked_texts(first, first.gold, sure.tolist())
            every = of_wholes(self.crowd, np.multiply, self.confidence)
            columns["confidence"] = every[: whole.n_items].tolist()
        rows = zip(*columns.values(), strict=True)
        shown = table(list(columns), rows, self.crowd.whole_items.n_items, "items")
        return block("Consensus", [f"method {self.method}", *self._facts()], shown)

    def __repr__(self) -> str:
        """Return what was aggregated how."""
        return f"Consensus({', '.join([self.method, *self._facts()])})"

    def _facts(self) -> list[str]:
        crowd, single = self.crowd, self.crowd.is_classification
        facts = [crowd.items_counted]
        facts += [] if single else [counted(len(self.spans), "span")]
        answers = counted(len(crowd.whole_items.latest), "answer")
        workers = counted(crowd.n_workers, "worker")
        facts.append(f"{answers} of {workers}")
        sure = self.mean_confidence
        facts += [] if sure is None else [f"mean confidence {sure:.2f}"]
        return facts if self.converged else [*facts, "not converged"]

    def _label_columns(self) -> dict[str, pa.Array]:
        """Return the columns of a table of labels."""
        if self.crowd.wholes is not None:
            ids, sure = zip(*by_whole(self.crowd, self.confidence.tolist()), strict=True)
            return {
                "item": pa.array(ids, pa.string()),
                "labels": pa.array(self.labels, pa.list_(pa.string())),
                "confidence": pa.array([np.prod([p for _, p in own]) for own in sure]),
            }
        found = {
            "item": self.crowd.item_ids,
            "label": self.crowd.labels_of(self.codes),
            "confidence": pa.array(self.token_confidence),
        }
        for name, numbers in self.item_columns.items():
            found[name] = pa.array(numbers, mask=np.isnan(numbers))
        return found

    def _span_texts(self) -> dict[str, pa.Array]:
        """Return what every span covers, its first character and one past its last."""
        spans = self.span_array
        start = (spans.start - self.crowd.offsets[spans.item]).tolist()
        end = (spans.end - self.crowd.offsets[spans.item]).tolist()
        texts, item = enumerate(item_texts(self.crowd)), -1
        covered, first, last = [], [], []
        for n, a, b in zip(spans.item.tolist(), start, end, strict=True):
            while item < n:
                item, text = next(texts)
            begin, stop = text.bounds[a][0], text.bounds[b - 1][1]
            covered.append(text.value[begin:stop])
            first.append(begin if text.is_own else None)
            last.append(stop if text.is_own else None)
        return {
            "text": pa.array(covered, pa.string()),
            "start_char": pa.array(first, pa.int32()),
            "end_char": pa.array(last, pa.int32()),
        }

    def json_rows(self) -> Iterator[dict[str, Any]]:
        """Yield an object per item, as JSON lines have it; `read_crowd` reads `gold` as gold."""
        if self.crowd.wholes is None:
            yield from self._json_rows()
            return
        for whole, rows in by_whole(self.crowd, self._json_rows()):
            yield _whole_row(whole, rows)

    def _json_rows(self) -> Iterator[dict[str, Any]]:
        crowd, spans = self.crowd, self.span_array
        bounds = np.searchsorted(spans.item, np.arange(crowd.n_items + 1)).tolist()
        starts, plain = crowd.offsets.tolist(), self.tagset.rules.is_plain
        units = [0, *np.cumsum(self.codes >= 0).tolist()]
        ids, texts = crowd.item_ids.to_pylist(), known_texts(crowd)
        groups = [None] * crowd.n_items if crowd.groups is None else crowd.groups.to_pylist()
        for n, (name, tokens) in enumerate(zip(ids, crowd.tokens_list, strict=True)):
            own = self._own[n]
            row: dict[str, Any] = {"item": name}
            if groups[n] is not None:
                row["doc"] = groups[n]
            if texts[n] is not None:
                row["text"] = texts[n]
            row["tokens"] = tokens
            if own is not None and not crowd.is_classification:
                row |= {"token_start": [start for start, _ in own.bounds], "unit": "char"}
            said = bool((self.codes[starts[n] : starts[n + 1]] >= 0).any())
            if crowd.is_classification:
                label = self.tags[n][0] if said else None
                row |= {"gold": label, "label": label}
            elif plain:
                row |= {"gold": {"tags": self.tags[n]} if said else None, "tags": self.tags[n]}
                if self.sets:
                    own_units = range(units[starts[n]], units[starts[n + 1]])
                    row["set"] = [[one.type for one in self.sets.of(u)] for u in own_units]
            else:
                own_spans = range(bounds[n], bounds[n + 1])
                spelled = [self._json_span(i, starts[n], own) for i in own_spans]
                row["gold"] = spelled if said else None
            if self.sets and crowd.is_classification and said:
                row["set"] = [member.type for member in self.sets.of(units[starts[n]])]
            row["confidence"] = round(float(self.confidence[n]), 4)
            row |= {name: _number(column[n]) for name, column in self.item_columns.items()}
            yield row

    def _json_span(self, i: int, base: int, own: ItemText | None) -> dict[str, Any]:
        """A span as JSON: in characters of its text if that is known, else in tokens."""
        spans = self.span_array
        first, end = int(spans.start[i]) - base, int(spans.end[i]) - base
        one: dict[str, Any] = {"type": self.tagset.types[spans.type[i]]}
        if own is None:
            one |= {"start": first, "end": end}
        else:
            a, b = own.bounds[first][0], own.bounds[end - 1][1]
            one |= {"start": a, "end": b, "text": own.value[a:b]}
            one |= {"start_token": first, "end_token": end}
        one |= {"confidence": round(float(self.span_confidence[i]), 4)}
        return one | {"set": self._json_set(i, own)} if self.sets else one

    def _json_set(self, i: int, own: ItemText | None) -> list[dict[str, Any]]:
        """The set of a span as JSON, its spans in characters or tokens like the span itself."""
        rows = []
        for member in self.sets.of(i):
            row = {name: value for name, value in member._asdict().items() if value is not None}
            if own is not None and member.kind == "span":
                row |= {"start_token": member.start, "end_token": member.end}
                row["start"] = own.bounds[member.start][0]
                row["end"] = own.bounds[member.end - 1][1]
            row["confidence"] = round(member.confidence, 4)
            rows.append(row)
        return rows

    def _csv_lines(self, *, raw: bool) -> Iterator[str]:
        import csv
        import io

        if self.crowd.wholes is not None:
            table, texts = self._label_columns(), known_texts(self.crowd.whole_items)
            ids, sure = table["item"].to_pylist(), table["confidence"].to_pylist()
            said = [None if own is None else json.dumps(own) for own in self.labels]
            columns = {"item": ids, "label": said, "confidence": [f"{p:.4f}" for p in sure]}
            if any(text is not None for text in texts):
                columns["text"] = [text or "" for text in texts]
            yield csv_text([*columns], list(zip(*columns.values(), strict=True)), raw=raw)
            return
        buffer = io.StringIO()
        texts = known_texts(self.crowd)
        # The writer quotes no carriage return that stands alone.
        alone = any("\r" in text for text in texts if text)
        quotes: Any = {"quoting": csv.QUOTE_ALL} if alone else {}
        out = csv.writer(buffer, lineterminator="\n", **quotes)
        has_text = any(text is not None for text in texts)
        head = ["item", "label", "confidence", *self.item_columns, *(["set"] if self.sets else [])]
        out.writerow([*head, "text"] if has_text else head)
        ids, labels = self.crowd.item_ids.to_pylist(), self.label_array.to_pylist()
        if not raw and any_formula(ids, self.tagset.tags, texts):
            header = marked(buffer.getvalue())
            buffer.seek(0)
            buffer.truncate()
            buffer.write(header)
            ids, labels = [*map(guard, ids)], [*map(guard, labels)]
            texts = [*map(guard, texts)]
        rows = zip(ids, labels, self.token_confidence, strict=True)
        more: list[list[Any]] = [[*map(_number, own)] for own in self.item_columns.values()]
        if self.sets:
            units = (np.cumsum(self.codes >= 0) - 1).tolist()
            every = [
                [member.type for member in self.sets.of(unit)] if code >= 0 else []
                for unit, code in zip(units, self.codes.tolist(), strict=True)
            ]
            more.append([json.dumps(own, ensure_ascii=False) if own else "" for own in every])
        extra = zip(*more, strict=True) if more else repeat(())
        out.writerows(
            (name, label, f"{p:.4f}", *numbers, *([text or ""] if has_text else []))
            for (name, label, p), numbers, text in zip(rows, extra, texts, strict=False)
        )
        yield buffer.getvalue()


def _whole_row(whole: str, parts: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Put the rows of an item's parts together."""
    rows = [row for _, row in parts]
    row = {**rows[0], "item": whole}
    row["confidence"] = round(float(np.prod([one["confidence"] for one in rows])), 4)
    if "label" in row:
        known = [(part, one) for part, one in parts if one["gold"] is not None]
        labels = [part for part, one in known if one["label"] == YES]
        row.pop("label")
        return row | {"gold": {"labels": labels} if known else None}
    spans = [span for one in rows for span in one["gold"] or ()]
    most: dict[tuple[Any, ...], dict[str, Any]] = {}
    for span in sorted(spans, key=lambda one: (one["start"], -one["end"], -one["confidence"])):
        most.setdefault((span["start"], span["end"], span["type"]), span)
    is_known = any(one["gold"] is not None for one in rows)
    return row | {"gold": [*most.values()] if is_known else None}


def _each_once(spans: pa.Table, wholes: pa.Array) -> pa.Table:
    """Return the spans of all parts of items by item and place, the most certain of equal ones."""
    place = pc.index_in(spans["item"], value_set=wholes.unique())
    keys = [("place", "ascending"), ("start", "ascending"), ("end", "descending"),
            ("type", "ascending"), ("confidence", "descending")]  # fmt: skip
    ordered = spans.append_column("place", place).sort_by(keys)
    rows = zip(
        *(ordered[name].to_pylist() for name in ("item", "start", "end", "type")), strict=True
    )
    first: dict[tuple[Any, ...], int] = {}
    for n, row in enumerate(rows):
        first.setdefault(row, n)
    return ordered.drop_columns("place").take(pa.array([*first.values()], pa.int64()))


def _plain(value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, np.generic):
        return value.item()
    return f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else repr(value)


def _number(value: np.float64) -> float | None:
    """Return a number as JSON can hold it, None for NaN."""
    return None if np.isnan(value) else float(value)


def format_of(path: str | Path) -> str | None:
    """Return the output format that the ending of a name stands for, None for an unknown ending."""
    target = Path(path)
    plain = target.with_suffix("") if target.suffix == ".gz" else target
    return ENDINGS.get(plain.suffix.lower())


def _index(name: str | int, count: int, find: Callable[[str], int], what: str) -> int:
    """Take an index as it is and find a name."""
    if not isinstance(name, int):
        return find(name)
    if not 0 <= name < count:
        raise InputError(f"there is no {what} number {name}: there are {count}")
    return name


def without_answers(crowd: Crowd) -> Crowd:
    """Return the items with their gold, and nobody's answers."""
    nobody = crowd.answers.take(np.zeros(0, np.intp))
    nobody = replace(nobody, started=None, submitted=None, cost=None, guideline=None)
    return replace(crowd, answers=nobody, worker_ids=pa.array([], pa.string()))
