"""Folders that other libraries train on: a project of spaCy, and the data of GLiNER.

The folder has the labels of train and dev, cut by document, and a README.md that says how to train.
Nothing is trained here. spaCy's has a `config.cfg` as `spacy init config` makes it, for the CPU:
`ner` for spans, `textcat` for single labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from goldspan import __version__
from goldspan._arrays import count_in_rows
from goldspan.aggregation.splits import assign_splits
from goldspan.crowd import Crowd, write_crowd
from goldspan.crowd.atomic import write_folder
from goldspan.errors import InputError, MissingExtraError, UnknownNameError

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
    """Write a folder that another library trains on.

    >>> import json, tempfile, goldspan
    >>> crowd = goldspan.aggregate("examples/crowd.tsv", "mv-token").as_gold()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counts = write_project(crowd, f"{folder}/ner", "gliner")
    ...     rows = json.loads(Path(f"{folder}/ner/train.json").read_text())
    >>> counts["train"] == len(rows), rows[0]["ner_labels"]
    (True, ['LOC', 'MISC', 'ORG', 'PER'])
    """
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
