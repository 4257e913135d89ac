"""The data of Rodrigues et al. 2013: CoNLL-2003, its noun phrases, and the real crowd."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from goldspan.crowd import Crowd, read_crowd
from goldspan.crowd.model import list_array
from goldspan.errors import InputError
from goldspan.spans import Codec

DOCSTART = "-DOCSTART-"
PHRASES = Codec(("O", "I-NP"), "IOB")
"""In or out of a noun phrase (section 4.1.2 of the paper): phrases that touch are one."""


def read_entities(data: Path, part: str) -> Crowd:
    """Read "train", "testa" or "testb" of CoNLL-2003 with its names as gold.

    Raises:
        InputError: The file is not there.
    """
    return with_docstarts(_read(data, part, "ner_bio"))


def read_phrases(data: Path, part: str) -> Crowd:
    """Read a part of CoNLL-2003 with noun phrases as gold, in or out.

    Raises:
        InputError: The file is not there.
    """
    crowd = with_docstarts(_read(data, part, "chunk_bio"))
    is_inside = np.array([tag.endswith("-NP") for tag in crowd.tagset.tags])
    codes = is_inside[crowd.gold_tagged.codes].astype(np.int16)
    return replace(crowd, tagset=PHRASES, gold=codes)


def read_workers(data: Path) -> Crowd:
    """Read the real crowd as the paper's authors left it.

    Raises:
        InputError: The file is not there.
    """
    return read_crowd(_there(data / "ner_mturk" / "crowd.tsv.gz"))


def _read(data: Path, part: str, column: str) -> Crowd:
    path = _there(data / "conll2003" / f"{part}.tsv.gz")
    return read_crowd(path, format="conll", columns={"tag": column})


def _there(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path} is not there: studies rodrigues-… need it (--data DIR)")
    return path


def with_docstarts(crowd: Crowd) -> Crowd:
    """Put back what begins a document: an item of one token that is no name.

    The paper counts these blocks as sentences: 14,987 and 3,466.
    """
    if crowd.groups is None:
        return crowd
    groups = np.asarray(crowd.groups.to_pylist(), object)
    names, first = np.unique(groups.astype(str), return_index=True)
    words = pa.concat_arrays([crowd.tokens.flatten(), pa.array([DOCSTART] * len(names))])
    offsets = np.concatenate([crowd.offsets, crowd.offsets[-1] + 1 + np.arange(len(names))])
    ids = [*crowd.item_ids.to_pylist(), *(f"{DOCSTART}{name}" for name in names.tolist())]
    outside = np.full(len(names), crowd.tagset.index["O"], np.int16)
    longer = replace(
        crowd,
        item_ids=pa.array(ids, pa.string()),
        tokens=list_array(words, offsets),
        groups=pa.array([*groups.tolist(), *names.tolist()], pa.string()),
        gold=np.concatenate([crowd.gold_tagged.codes, outside]),
        attributes=None,
    )
    place = np.concatenate([np.arange(crowd.n_items), first - 0.5])
    return longer.select_items(np.argsort(place, kind="stable"))


def some_documents(crowd: Crowd, n_sentences: int | None) -> Crowd:
    """Take documents from everywhere in the file, with about so many sentences; None takes all."""
    if n_sentences is None or crowd.groups is None or n_sentences >= crowd.n_items:
        return crowd
    names = list(dict.fromkeys(crowd.groups.to_pylist()))
    n_kept = max(1, round(len(names) * n_sentences / crowd.n_items))
    kept = {names[i * len(names) // n_kept] for i in range(n_kept)}
    return crowd.select_items(np.array([name in kept for name in crowd.groups.to_pylist()]))
