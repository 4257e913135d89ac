"""Train, dev and test by document, with a card that says where the labels come from.

Items of one document go into one split: sentences of a text resemble each other, and a test set
that shares documents with the training set flatters. Documents are drawn in random order, and each
goes where most items are missing of the share that was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan import __version__
from goldspan._arrays import count_in_rows, rows_of
from goldspan.aggregation.consensus import Consensus, without_answers
from goldspan.aggregation.machines import models_of
from goldspan.crowd import Crowd, agreement, write_crowd
from goldspan.crowd.atomic import write_folder
from goldspan.crowd.formats import datasets
from goldspan.crowd.formats.span_exports import SoftLabels
from goldspan.crowd.losses import UNUSED, lost_in_file
from goldspan.crowd.registry import FORMATS
from goldspan.errors import InputError, MissingExtraError, UnknownNameError
from goldspan.spans import find_spans
from goldspan.spans.notebook import counted

SPLITS = ("train", "dev", "test")
HUGGING_FACE = {"train": "train", "dev": "validation", "test": "test"}
"""What Hugging Face calls the splits."""
_ENDINGS = {
    "gliner": ".json",
    "span-table": ".csv",
    "label-studio": ".json",
    "prodigy": ".jsonl",
    "doccano": ".jsonl",
}
_SURE = (0.5, 0.8, 0.9, 0.95, 0.99)


def assign_splits(
    crowd: Crowd, shares: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 1
) -> NDArray[np.intp]:
    """Assign every item to a split, all items of a document to the same."""
    # returns int [n_items], 0 train, 1 dev, 2 test
    wanted = checked_shares(shares)
    document = crowd.document_of
    sizes = np.bincount(document)
    if len(sizes) < np.count_nonzero(wanted):
        raise InputError(f"split: there are only {len(sizes)} documents for the splits")
    left = wanted * len(document)
    chosen = np.zeros(len(sizes), np.intp)
    order = np.random.default_rng(seed).permutation(len(sizes))
    for n in order[np.argsort(-sizes[order], kind="stable")]:
        chosen[n] = int(np.argmax(np.where(wanted > 0, left, -np.inf)))
        left[chosen[n]] -= sizes[n]
    for part in np.flatnonzero((wanted > 0) & (np.bincount(chosen, minlength=len(SPLITS)) == 0)):
        # A small share of few documents: it gets the smallest one of a split that has others.
        n_documents = np.bincount(chosen, minlength=len(SPLITS))[chosen]
        chosen[int(np.argmin(np.where(n_documents > 1, sizes, np.inf)))] = part
    return chosen[document]


def checked_shares(shares: Sequence[float]) -> NDArray[np.float64]:
    """Return the shares of train, dev and test, float64 [3], which add up to 1.

    >>> checked_shares([80, 10, 10]).tolist()
    [0.8, 0.1, 0.1]
    """
    wanted = np.asarray(shares, np.float64)
    if wanted.shape != (len(SPLITS),) or not np.isfinite(wanted).all() or (wanted < 0).any():
        raise InputError("split: give three shares, of train, dev and test, such as 80,10,10")
    total = float(wanted.sum())
    if not any(abs(total - whole) < 1e-6 for whole in (1.0, 100.0)):
        raise InputError(f"split: the shares add up to {total:g}, and should to 1 or 100")
    return wanted / total


def write_splits(
    result: Consensus,
    path: str | Path,  # The folder, which must not exist
    *,
    shares: Sequence[float] = (0.8, 0.1, 0.1),  # As for `assign_splits`
    format: str = "datasets",  # noqa: A002 - the word users know
    seed: int = 1,  # As for `assign_splits`
    date: datetime | None = None,  # Of the card; now by default
) -> list[str]:
    """Write labels as a folder of train, dev and test with a dataset card, README.md."""
    kept = np.flatnonzero(count_in_rows(result.codes < 0, result.crowd.offsets) == 0)
    if not len(kept):
        raise InputError("split: nobody labelled an item")
    crowd = result.as_gold().select_items(kept)
    which = assign_splits(crowd, shares, seed)
    parts = {name: np.flatnonzero(which == n) for n, name in enumerate(SPLITS)}
    parts = {name: rows for name, rows in parts.items() if len(rows)}
    now = datetime.now(UTC) if date is None else date
    card = make_card(result, crowd, parts, seed=seed, format=format, date=now)
    lost: list[str] = []

    def chosen(name: str) -> tuple[Crowd, SoftLabels]:
        rows = parts[name]
        return crowd.select_items(rows), _of_items(result, kept[rows])

    if format == "datasets":
        tables = {HUGGING_FACE[name]: datasets.to_table(*chosen(name)) for name in parts}
        datasets.write_splits(Path(path), tables, card)
        for name in parts:
            folder = Path(path) / HUGGING_FACE[name]
            lost += _said(name, lost_in_file(chosen(name)[0], folder, datasets))
        return lost

    def fill(folder: Path) -> None:
        (folder / "README.md").write_text(card, encoding="utf-8")
        for name in parts:
            part, sure = chosen(name)
            target = folder / f"{name}{_ending(format)}"
            missing = write_crowd(without_answers(part), target, format=format, soft=sure)
            lost.extend(_said(name, missing))

    write_folder(path, fill)
    return lost


def make_card(
    result: Consensus,
    crowd: Crowd,  # The items that are written
    parts: dict[str, NDArray[np.intp]],
    *,
    seed: int,
    format: str,  # noqa: A002 - as above
    date: datetime,
) -> str:
    """Return the card of a data set in Markdown, with the header that Hugging Face reads."""
    task = "text-classification" if crowd.is_classification else "token-classification"
    origin = (
        f"Written {date:%Y-%m-%d} by goldspan {__version__}. The labels are an aggregation of "
        "several annotators' answers, not a single expert's. Licence and source are those of the "
        "texts: add them here."
    )
    head, models = "| split | documents | items | tokens | labels |", _models(result)
    lines = [
        *("---", "annotations_creators:", *creators(result.crowd, models), "task_categories:"),
        *(f"- {task}", "tags:", "- goldspan", "---", "", "# Labels", "", origin),
        *("", "## Splits", "", head, "|---|--:|--:|--:|--:|"),
    ]
    for name, rows in parts.items():
        part = crowd.select_items(rows)
        shown = HUGGING_FACE[name] if format == "datasets" else name
        n_documents = len(np.unique(part.document_of))
        counts = f"{n_documents} | {part.n_items} | {part.n_tokens} | {_n_labels(part)}"
        lines.append(f"| {shown} | {counts} |")
    n_left = result.crowd.n_items - crowd.n_items
    lines += ["", f"Documents were assigned as a whole (seed {seed})."]
    if n_left:
        lines.append(f"Left out: {counted(n_left, 'item')} without a label for every token.")
    lines += ["", "## Annotators", "", *of_annotators(result.crowd, models)]
    lines += ["", "## Method and confidence", ""]
    plain = (str, int, float, bool)
    params = {name: value for name, value in result.params.items() if isinstance(value, plain)}
    told = ", ".join(f"{name}={one!r}" for name, one in params.items() if len(str(one)) < 40)
    lines.append(f"Method: `{result.method}`{f' ({told})' if told else ''}.")
    lines += _of_confidence(result)
    for warning in result.warnings:
        lines += ["", f"Warning: {warning}"]
    return "\n".join(lines) + "\n"


def _models(result: Consensus) -> list[str]:
    """Return which annotators are models, as far as it is known."""
    there = {*result.crowd.worker_ids.to_pylist()}
    return [name for name in models_of(result.crowd, result.params.get("models")) if name in there]


def creators(crowd: Crowd, models: Sequence[str]) -> list[str]:
    """Return who annotated, in Hugging Face's words."""
    people = ["- crowdsourced"] if len(models) < crowd.n_workers else []
    return [*people, *(["- machine-generated"] if models else [])]


def annotators(crowd: Crowd, models: Sequence[str], noun: str) -> str:
    """Say how many annotators there are, and which of them are models."""
    if not models:
        return counted(crowd.n_workers, noun)
    people = counted(crowd.n_workers - len(models), "person").replace("persons", "people")
    found = f"{counted(len(models), 'model')} ({', '.join(models)})"
    return found if len(models) == crowd.n_workers else f"{people} and {found}"


def of_annotators(crowd: Crowd, models: Sequence[str]) -> list[str]:
    """Return what a card says of the annotators and how far they agree."""
    n_answers = len(crowd.latest)
    each = n_answers / max(1, crowd.n_items)
    who = annotators(crowd, models, "annotator")
    lines = [f"{who} gave {counted(n_answers, 'answer')}, {each:.2f} per item."]
    if crowd.n_workers < 2:
        return lines
    found = agreement(crowd)
    rows = [("Krippendorff's α (tokens)", found.alpha), ("share of equal labels", found.observed)]
    if found.pairwise_span_f1 is not None:
        rows.append(("span F1 between two annotators, mean", found.pairwise_span_f1))
    lines += ["", "| agreement | |", "|---|--:|"]
    return lines + [
        f"| {name} | {'–' if np.isnan(value) else f'{value:.3f}'} |" for name, value in rows
    ]


def _of_confidence(result: Consensus) -> list[str]:
    """What the card says of the confidences."""
    single = result.tagset.rules.is_plain
    sure = result.token_confidence[result.codes >= 0] if single else result.span_confidence
    if not len(sure):
        return []
    what, meaning = "labels" if single else "spans", "They are shares of votes, not probabilities."
    if result.posterior is not None or result.candidates:
        meaning = "They are the method's probabilities, as good as its model of the annotators."
    lines = [f"Mean confidence of {len(sure):,} {what}: {sure.mean():.3f}. {meaning}", ""]
    lines += [f"| confidence at least | share of {what} |", "|---|--:|"]
    return lines + [f"| {least:g} | {(sure >= least).mean():.3f} |" for least in _SURE]


def _of_items(result: Consensus, rows: NDArray[np.intp]) -> SoftLabels:
    """Return the confidences of some items, in their order."""
    bounds = np.searchsorted(result.span_array.item, np.arange(result.crowd.n_items + 1))
    return SoftLabels(
        result.token_probs[rows_of(result.crowd.offsets, rows)[1]],
        result.span_confidence[rows_of(bounds, rows)[1]],
        result.confidence[rows],
        result.method,
    )


def _n_labels(crowd: Crowd) -> int:
    if crowd.tagset.rules.is_plain:
        return crowd.n_tokens
    return len(find_spans(crowd.gold_tagged, crowd.tagset))


def _ending(name: str) -> str:
    known = FORMATS.get(name)
    return _ENDINGS.get(name) or (known.endings[0] if known and known.endings else "")


def _said(name: str, lost: Sequence[str]) -> list[str]:
    return [f"{name}: {one}" for one in lost if not one.startswith(UNUSED)]


# --------------------------------------------------------------------------------------------------
# Folders that other libraries train on: a project of spaCy, and the data of GLiNER.


KINDS = ("spacy", "gliner")
FILES = {"spacy": ("train.spacy", "dev.spacy"), "gliner": ("train.json", "dev.json")}
_FORMAT = {"spacy": "docbin", "gliner": "gliner"}
DEV = 0.1
"""Share of the items that goes to dev, where none are given."""


def write_project(
    crowd: Crowd,  # Items with gold
    path: str | Path,  # The folder, which must not exist
    kind: str,  # "spacy" or "gliner"
    *,
    dev: Crowd | None = None,  # Items with gold to evaluate on
    language: str = "en",  # Of the texts, as spaCy names it: "en", "de", or "xx" for any
    seed: int = 1,  # Of the documents that go to dev
) -> dict[str, int]:
    """Write a folder that another library trains on."""
    if kind not in KINDS:
        raise UnknownNameError("project", kind, KINDS)
    parts, n_left = _parts(crowd, dev, seed)
    config = _config(language, is_single=crowd.is_classification) if kind == "spacy" else None

    def fill(folder: Path) -> None:
        for part, name in zip(parts, FILES[kind], strict=True):
            write_crowd(part, folder / name, format=_FORMAT[kind])
        if config is not None:
            config.to_disk(folder / "config.cfg")
        (folder / "README.md").write_text(_readme(kind, parts, n_left), "utf-8")

    write_folder(path, fill)
    return {"train": parts[0].n_items, "dev": parts[1].n_items, "left_out": n_left}


def _parts(crowd: Crowd, dev: Crowd | None, seed: int) -> tuple[tuple[Crowd, Crowd], int]:
    """Return train and dev, and how many items were left out of both."""
    known = _known(crowd)
    n_left = crowd.n_items - known.n_items
    if dev is not None:
        held_out = _known(dev)
        return (known, held_out), n_left + dev.n_items - held_out.n_items
    which = assign_splits(known, (1 - DEV, DEV, 0.0), seed)
    train, rest = (known.select_items(np.flatnonzero(which == n)) for n in (0, 1))
    return (train, rest), n_left


def _known(crowd: Crowd) -> Crowd:
    """Return the items that are labelled completely."""
    if crowd.gold is None:
        raise InputError("no item has a known tag: give gold, or name a method that finds it")
    whole = (count_in_rows(crowd.gold < 0, crowd.offsets) == 0) & (np.diff(crowd.offsets) > 0)
    if not whole.any():
        raise InputError("no item is labelled completely: there is nothing to train on")
    return crowd if whole.all() else crowd.select_items(np.flatnonzero(whole))


def _config(language: str, *, is_single: bool) -> Any:
    """Return spaCy's own configuration for the CPU."""
    try:
        from spacy.cli.init_config import init_config
        from spacy.util import get_lang_class
    except ImportError:
        raise MissingExtraError("spacy", "spacy", "a project of spaCy") from None
    try:
        get_lang_class(language)
    except ImportError:
        raise InputError(
            f"spaCy has no language {language!r}: take its code, such as en or de, or xx for any"
        ) from None
    config = init_config(lang=language, pipeline=["textcat" if is_single else "ner"], silent=True)
    config["paths"]["train"], config["paths"]["dev"] = FILES["spacy"]
    return config


_HOW = {
    "spacy": """\
In this folder, with spaCy installed:

    python -m spacy train config.cfg --output model

`model/model-best` is then a pipeline (`spacy.load`). `config.cfg` was made as by `spacy init
config`, for the CPU and without word vectors.
""",
    "gliner": """\
`train.json` and `dev.json` are lists of items as GLiNER's training reads them: `tokenized_text`,
`ner` with [first token, last token, label], and `ner_labels`, all labels that are asked for, so
that an item without spans teaches that there are none:

    import json
    from gliner import GLiNER

    model = GLiNER.from_pretrained("…")  # the model to begin with
    model.train_model(
        train_dataset=json.load(open("train.json")), eval_dataset=json.load(open("dev.json")),
        output_dir="model",
    )
""",
}


def _readme(kind: str, parts: tuple[Crowd, Crowd], n_left: int) -> str:
    train, dev = parts
    left = f", {n_left} without a label for every token were left out" if n_left else ""
    return (
        f"# Data to train on\n\nWritten by goldspan {__version__}: {train.n_items} items in train, "
        f"{dev.n_items} in dev{left}. An item's whole document is in one of them.\n\n{_HOW[kind]}"
    )
