"""Reading and writing crowds in any format, and converting them to another encoding."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd.atomic import write_text
from goldspan.crowd.detection import find_layers, read_source
from goldspan.crowd.formats.span_exports import SoftLabels
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.grid import csv_text
from goldspan.crowd.labels import with_notes
from goldspan.crowd.layers import Layers
from goldspan.crowd.losses import lost_in_file
from goldspan.crowd.model import Crowd, item_texts, known_texts
from goldspan.crowd.options import ReadOptions, reading_options
from goldspan.crowd.registry import FORMATS, get_writer
from goldspan.errors import Fault, FaultsError, InputError, UnknownNameError
from goldspan.spans import (
    Codec,
    Tagged,
    find_errors,
    find_spans,
)
from goldspan.spans.corpus import write_codes
from goldspan.spans.encoding import get_encoding

READING = frozenset(reading_options())
"""The names of the options of `read_crowd`."""


def read_crowd(source: Any, **options: Any) -> Crowd:
    r"""Read a crowd: items, workers, their answers, and gold if there is some.

    Args:
        source: A path (plain or `.gz`), a folder, a `.zip`, "-" for standard input, bytes, a
            binary file; a DataFrame of any make, a Hugging Face `Dataset`, or a list of dicts.
        options: The fields of `ReadOptions`: format, gold, texts, encoding, columns, workers,
            labels, missing, altered, repeated, unknown, strict, offsets, tokens, cut, overlapping,
            several, unlabelled, strip, rename_workers, delimiter, text_encoding, max_decompressed,
            predicted and progress. A DataFrame is of the format "long", "span-table",
            "tag-columns" or "wide".

    Returns:
        The crowd; `crowd.import_report` says what was found and decided.

    Raises:
        FormatError: The input is rejected; every fault is listed with its place.
        UnknownNameError: There is no such option, or it has no such value.

    >>> crowd = read_crowd(b"token\tann\tbob\nParis\tB-LOC\tO\n", format="wide")
    >>> crowd.answers_of("1")
    {'ann': ['B-LOC'], 'bob': ['O']}
    """
    _check_options(options)
    given = ReadOptions(**options)
    crowd = read_source(source, given)
    return crowd if given.gold is None else attach_gold(crowd, given.gold, given, refine=True)


def read_layers(
    source: Any, layers: Sequence[str] | None = None, *, ordinal: Sequence[str] = (), **options: Any
) -> Layers:
    r"""Read the answers to several questions about the same items.

    Args:
        source: What `read_crowd` reads.
        layers: The questions, as `columns={"label": NAME}` of `read_crowd` takes them; by default
            all of the file: controls of Label Studio, "spans" and "accept" of Prodigy, layers of
            WebAnno and UIMA, "spans", "cats" and span groups of spaCy, questions of Argilla,
            Potato, Mechanical Turk, Toloka and Appen, what `aggregate` wrote of several layers.
            Of a table the columns must be named. A file of another format has one question, called
            by its kind: "spans", "label", "labels" (any number) or "tags".
        ordinal: The questions whose labels are levels of a scale.
        options: The options of `read_crowd`, the same for all questions.

    Raises:
        UnknownNameError: The file has no such question; the message lists them.
        FormatError: The input is rejected.

    >>> table = b"item,worker,mood,topic\n1,ann,glad,art\n1,bob,sad,art\n"
    >>> read_layers(table, ["mood", "topic"])["topic"].answers_of("1")
    {'ann': ['art'], 'bob': ['art']}
    """
    _check_options(options)
    given = ReadOptions(**options)
    if "label" in given.columns:
        raise InputError("layers=[…] names the questions: leave 'label' out", parameter="columns")
    source, there = find_layers(source, given, layers)
    wanted = list(dict.fromkeys(there if layers is None else layers))
    for name in wanted:
        if there and name not in there:
            raise UnknownNameError("layer", name, there)
    named = {name: {"columns": {**given.columns, "label": name}} for name in wanted}
    crowds = {name: read_crowd(source, **options | column) for name, column in named.items()}
    if not wanted:
        crowd = read_crowd(source, **options)
        report = crowd.import_report
        if report.format == "long" and any("not read: " in note for note in report.notes):
            note = "one column is read as the question: name others with --layer NAME (layers=[…])"
            crowd = with_notes(crowd, [note])
        crowds = {_kind_of(crowd): crowd}
    return Layers(crowds, tuple(ordinal))


def _kind_of(crowd: Crowd) -> str:
    if crowd.is_classification:
        return "label" if crowd.wholes is None else "labels"
    return "tags" if crowd.tagset.rules.is_plain else "spans"


def _check_options(names: Iterable[str]) -> None:
    for name in sorted(names):
        if name not in READING:
            raise UnknownNameError("reading option", name, sorted(READING))


def to_crowd(data: Any, argument: str = "crowd", **reading: Any) -> Crowd:
    """Return whatever a public function was given as a `Crowd`."""
    reading = {name: value for name, value in reading.items() if value is not None}
    _check_options(reading)
    if hasattr(type(data), "as_gold"):
        data = data.as_gold()
    if isinstance(data, Layers):
        names = ", ".join(data)
        raise InputError(f"{argument}: these are several layers ({names}): pass one, layers[NAME]")
    if not isinstance(data, Crowd):
        try:
            return read_crowd(data, **reading)
        except InputError as error:
            error.where = argument
            raise
    gold = reading.pop("gold", None)
    if reading:
        raise InputError(
            f"{argument}: this is a {type(data).__name__} already, {', '.join(reading)}=… say how "
            "to read a file or a table: pass them to read_crowd"
        )
    if gold is None:
        return data
    return attach_gold(data, gold, ReadOptions(), refine=True)


def write_crowd(
    crowd: Any,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    text: bool = True,
    raw_csv: bool = False,
    predicted: Mapping[str, float] | None = None,
    soft: SoftLabels | None = None,
    **reading: Any,
) -> list[str]:
    """Write a crowd; reading it back gives an equal one, but for what the format cannot hold.

    That is found by reading the file again and comparing all of it.

    Args:
        crowd: What to write: a `Crowd`, a `Consensus` (with its labels as gold), or anything that
            `read_crowd` reads.
        path: Where to; a name that ends in `.gz` is compressed. Nothing half-written is left.
        format: By default what the ending of the name says: `.tsv` wide, `.csv` long,
            `.jsonl` spans, `.parquet` parquet, `.conll` the gold only.
        text: Whether columns of tokens (conll, wide, long) come with the items' texts and offsets;
            other readers of such files may want neither.
        raw_csv: Whether cells of CSV stay as they are. By default an apostrophe goes before those
            that a spreadsheet may take for formulas; goldspan's reader takes it off.
        predicted: Ids of items whose gold nobody confirmed, such as labels of a method, with their
            confidence in [0, 1]. Label Studio gets them as predictions, Prodigy as ignored tasks,
            doccano with a field `predicted`, brat in a folder of their own; other formats have no
            place for it. Read back, they are neither answers nor gold, unless `read_crowd` is told
            `predicted=True`.
        soft: Confidences and probabilities of the gold, for formats that have a place for them;
            those of a `Consensus` by default.
        reading: How to read `crowd` if it is not one yet, as for `read_crowd`; its format is
            guessed.

    Returns:
        What of this crowd does not come back from the file, in words, with counts and first
        examples; empty if everything does.

    Raises:
        InputError: The format cannot be written, or the path cannot be.
    """
    if soft is None and hasattr(type(crowd), "as_gold"):
        soft = crowd.soft
    crowd = to_crowd(crowd, "crowd", **reading)
    name = format or _format_of(Path(path))
    module = get_writer(name)
    takes = signature(module.write).parameters
    if predicted is not None and "predicted" not in takes:
        raise InputError(
            f"format {name!r} cannot mark what nobody confirmed: it is for label-studio, prodigy, "
            "doccano and brat",
            parameter="predicted",
        )
    if not text and "text" not in takes:
        rule = "text=False (--no-text) is for conll, wide and long"
        raise InputError(f"format {name!r} always has the text: {rule}")
    given = {"text": text, "raw_csv": raw_csv, "predicted": predicted, "soft": soft}
    module.write(crowd, Path(path), **{key: given[key] for key in given if key in takes})
    unheld = [] if soft is None or "soft" in takes else soft.lost(crowd)
    return [*lost_in_file(_confirmed(crowd, predicted), Path(path), module), *unheld]


def _confirmed(crowd: Crowd, predicted: Mapping[str, float] | None) -> Crowd:
    """Return the crowd without the gold of items that are only predicted."""
    if crowd.gold is None or not predicted:
        return crowd
    is_predicted = [name in predicted for name in crowd.item_ids.to_pylist()]
    gold = crowd.gold.copy()
    gold[np.repeat(is_predicted, np.diff(crowd.offsets))] = -1
    return crowd.with_gold(gold if (gold >= 0).any() else None)


def write_unlabelled(
    crowd: Crowd,
    path: str | Path,
    format: str | None = None,  # noqa: A002 - the word users know
    *,
    raw_csv: bool = False,
) -> None:
    """Write items without labels and answers, for somebody to label: see `AuditPlan.write`."""
    ending = Path(path).suffix.lower()
    name = format or {".json": "label-studio"}.get(ending, ending.removeprefix("."))
    if name in {"jsonl", "spans"}:
        write_text(path, [json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(crowd)])
    elif name == "csv" and crowd.is_classification:
        cells = [[row["item"], row.get("text", ""), ""] for row in _rows(crowd)]
        write_text(path, [csv_text(["item", "text", "label"], cells, raw=raw_csv)])
    elif name in {"label-studio", "doccano", "prodigy", "parquet"}:
        write_crowd(crowd, path, format=name)
    else:
        table = ", a .csv table" if crowd.is_classification else ""
        raise InputError(
            f"{path}: {name or 'this'} cannot hold items without labels: write .jsonl{table}, "
            "or choose the format label-studio, doccano, prodigy or parquet"
        )


def _rows(crowd: Crowd) -> Iterator[dict[str, Any]]:
    """Yield a row per item, as `read_crowd` reads it; its `gold` is left open."""
    groups = [None] * crowd.n_items if crowd.groups is None else crowd.groups.to_pylist()
    ids, texts = crowd.item_ids.to_pylist(), known_texts(crowd)
    each = zip(ids, groups, texts, crowd.tokens_list, item_texts(crowd), strict=True)
    for name, group, text, tokens, own in each:
        head = {"item": name, "doc": group, "text": text}
        row = {key: value for key, value in head.items() if value is not None}
        row |= {"gold": None, "tokens": tokens}
        if own.is_own and not crowd.is_classification:
            row |= {"token_start": [start for start, _ in own.bounds], "unit": "char"}
        yield row


def write_to_stdout(
    crowd: Crowd,
    format: str,  # noqa: A002 - the word users know
    **how: Any,
) -> list[str]:
    """Write a crowd to standard output as `write_crowd` does; returns what is lost."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd"
        lost = write_crowd(crowd, path, format=format, **how)
        if path.is_dir():
            raise InputError(f"format {format!r} is a folder: pass -o FOLDER")
        sys.stdout.flush()
        sys.stdout.buffer.write(path.read_bytes())
        sys.stdout.buffer.flush()
    return lost


def _format_of(path: Path) -> str:
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    for name, one in FORMATS.items():
        if suffix in one.endings:
            return name
    raise InputError(f"{path}: the ending does not name a format: pass format=…")


# --------------------------------------------------------------------------------------------------
# A crowd in another encoding.


def convert_crowd(crowd: Crowd, encoding: str, policy: str = "raise") -> Crowd:
    r"""Rewrite the gold and every answer in another encoding.

    Args:
        crowd: The crowd.
        encoding: The target encoding.
        policy: What to do with malformed tags: "raise" rejects them all; "conlleval", "strict"
            and "boundaries" read them that way and write what was read.

    Raises:
        FaultsError: Malformed tags with policy "raise"; every one is listed.
        InputError: One of the two encodings is PLAIN.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"token\tann\nAnn\tB-PER\n")
    >>> convert_crowd(crowd, "IOBES").answers_of("1")
    {'ann': ['S-PER']}
    """
    target = Codec.from_types(crowd.tagset.types, get_encoding(encoding))
    if target.rules.is_plain != crowd.tagset.rules.is_plain:
        raise InputError("PLAIN labels hold no spans: they cannot be converted to another encoding")
    if policy == "raise":
        faults = encoding_faults(crowd)
        if faults:
            raise FaultsError(
                faults,
                f"{len(faults)} tags break the rules of {crowd.tagset.encoding}: fix them, or "
                "read them by a policy, such as policy='conlleval' (--repair conlleval)",
            )
        policy = "conlleval"
    answers = crowd.answers
    codes = _rewrite(Tagged(answers.codes, answers.offset), crowd.tagset, target, policy)
    gold = None
    if crowd.gold is not None:
        gold = _rewrite(crowd.gold_tagged, crowd.tagset, target, policy)
    return replace(crowd, tagset=target, answers=replace(answers, codes=codes), gold=gold)


def encoding_faults(crowd: Crowd) -> list[Fault]:
    """List every tag of the gold and of the answers that breaks the rules of the encoding."""
    faults: list[Fault] = []
    ids, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    file = crowd.import_report.source
    if crowd.gold is not None:
        found = find_errors(crowd.gold_tagged, crowd.tagset)
        for fault in found.describe(crowd.gold_tagged, crowd.tagset):
            item = ids[int(fault.item)]
            faults.append(replace(fault, file=file, item=item, worker="gold"))
    tagged = Tagged(crowd.answers.codes, crowd.answers.offset)
    for fault in find_errors(tagged, crowd.tagset).describe(tagged, crowd.tagset):
        answer = int(fault.item)
        item, who = ids[crowd.answers.item[answer]], workers[crowd.answers.worker[answer]]
        faults.append(replace(fault, file=file, item=item, worker=who))
    return faults


def all_faults(crowd: Crowd) -> list[Fault]:
    """List the tags that are not in the encoding, and those that break its rules, in one."""
    unknown = [f for f in crowd.import_report.faults if f.kind == "unknown-label"]
    items = {name: n for n, name in enumerate(crowd.item_ids.to_pylist())}
    columns = {name: n for n, name in enumerate(crowd.worker_ids.to_pylist())}

    def place(fault: Fault) -> tuple[int, int, int]:
        return items.get(fault.item, len(items)), fault.token, columns.get(fault.worker, -1)

    return sorted([*unknown, *encoding_faults(crowd)], key=place)


def _rewrite(tagged: Tagged, source: Codec, target: Codec, policy: str) -> NDArray[np.int16]:
    spans = find_spans(tagged, source, policy)
    codes = write_codes(spans, tagged.offsets, target)
    return np.where(tagged.codes < 0, np.int16(-1), codes)
