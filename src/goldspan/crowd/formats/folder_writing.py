"""Writing folders of one file per worker and document."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from goldspan.crowd.atomic import write_folder
from goldspan.crowd.formats.folder_documents import GOLD
from goldspan.crowd.grid import cell_text
from goldspan.crowd.model import Crowd
from goldspan.errors import InputError

_MAX_NAME = 200


def write(crowd: Crowd, path: Path) -> None:
    """Write `answers/<worker>/<document>.txt` and `gold/<document>.txt` into a new folder.

    Raises:
        InputError: The id of a worker or of a document cannot be the name of a file.
    """
    if bad := _bad_names(crowd):
        shown = ", ".join(repr(name) for name in bad[:10])
        raise InputError(
            f"cannot write {path}: {shown} cannot be the name of a file, as the ids of workers and "
            "documents must be: choose another format, such as parquet"
        )
    write_folder(path, lambda folder: _fill(crowd, folder))


def _fill(crowd: Crowd, folder: Path) -> None:
    """Write every document of a worker whole, so that each line finds its token again."""
    tags = [*map(_shown, crowd.tagset.tags), ""]
    workers, answers = crowd.worker_ids.to_pylist(), crowd.latest
    documents: dict[str, list[int]] = {}
    for n, name in enumerate(_document_names(crowd)):
        documents.setdefault(name, []).append(n)
    tokens = [[_shown(token) for token in row] for row in crowd.tokens_list]
    for name, items in documents.items():
        files: dict[str, dict[int, list[int]]] = {}
        for n in items:
            if crowd.gold is not None:
                codes = crowd.gold[crowd.offsets[n] : crowd.offsets[n + 1]].tolist()
                files.setdefault("gold", {})[n] = codes
            for a in crowd.by_item[n].tolist():
                codes = answers.codes[answers.offset[a] : answers.offset[a + 1]].tolist()
                files.setdefault(f"answers/{workers[answers.worker[a]]}", {})[n] = codes
        for holder, known in files.items():
            blocks = []
            for n in items:
                codes = known.get(n, [-1] * len(tokens[n]))
                rows = zip(tokens[n], codes, strict=True)
                blocks.append("".join(f"{token}\t{tags[code]}\n" for token, code in rows))
            target = folder / holder / f"{name}.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(blocks), encoding="utf-8")


def _document_names(crowd: Crowd) -> list[str]:
    groups = ["items"] * crowd.n_items if crowd.groups is None else crowd.groups.to_pylist()
    return [group or "" for group in groups]


def _bad_names(crowd: Crowd) -> list[str]:
    """Ids of workers and documents that cannot be names of folders and files."""
    used = crowd.worker_ids.take(pa.array(np.unique(crowd.latest.worker))).to_pylist()
    bad = {name for name in used if name.lower() in GOLD}
    for name in {*used, *_document_names(crowd)}:
        hidden = not name or name.startswith((".", "__MACOSX"))
        if hidden or set(name) & set("/\\\0\n\r") or len(name.encode()) > _MAX_NAME:
            bad.add(name)
    return sorted(bad)


def _shown(word: str) -> str:
    return cell_text(word).strip().removeprefix("\ufeff")
