"""Reading and writing crowds in any format."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.crowd.detection import read_source
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.losses import lost_in_file
from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions, reading_options
from goldspan.crowd.registry import FORMATS, get_writer
from goldspan.errors import FormatError, InputError, UnknownNameError

READING = frozenset(reading_options())
"""The names of the options of `read_crowd`."""


def read_crowd(source: Any, **options: Any) -> Crowd:
    r"""Read a crowd: items, workers, their answers, and gold if there is some.

    Args:
        source: A path (plain or `.gz`), a folder, a `.zip`, "-" for standard input, bytes, a
            binary file; a DataFrame of any make, a Hugging Face `Dataset`, or a list of dicts.
        options: The fields of `ReadOptions`: format, gold, encoding, columns, workers, labels,
            missing, altered, repeated, unknown, strict, offsets, tokens, cut, overlapping,
            unlabelled, strip, rename_workers, delimiter, text_encoding, max_decompressed and
            progress. A DataFrame is of the format "long", "span-table", "tag-columns" or "wide".

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


def _check_options(names: Iterable[str]) -> None:
    """Reject what is not an option of a reader."""
    for name in sorted(names):
        if name not in READING:
            raise UnknownNameError("reading option", name, sorted(READING))


def to_crowd(data: Any, argument: str = "crowd", **reading: Any) -> Crowd:
    r"""Return whatever a public function was given as a `Crowd`.

    Args:
        data: A `Crowd`, a `Consensus` (its crowd, with the consensus in the place of the gold), or
            anything that `read_crowd` reads.
        argument: Name of the argument, for messages.
        reading: Options of `read_crowd`; of a crowd that is there already only `gold` can be set.

    Raises:
        InputError: It cannot be read, or there is nothing to read that options could be for.

    >>> to_crowd(b"task,worker,label\n1,a,x\n").n_workers
    1
    """
    reading = {name: value for name, value in reading.items() if value is not None}
    _check_options(reading)
    if hasattr(type(data), "as_gold"):
        data = data.as_gold()
    if not isinstance(data, Crowd):
        return _read_argument(data, argument, reading)
    gold = reading.pop("gold", None)
    if reading:
        raise InputError(
            f"{argument}: this is a {type(data).__name__} already, {', '.join(reading)}=… say how "
            "to read a file or a table: pass them to read_crowd"
        )
    if gold is None:
        return data
    return attach_gold(data, gold, ReadOptions(), refine=True)


def _read_argument(data: Any, argument: str, reading: Mapping[str, Any]) -> Crowd:
    """Read a crowd; what is wrong is told with the name of the argument."""
    try:
        return read_crowd(data, **reading)
    except FormatError as error:
        headline = f"{argument} cannot be read" + (f": {error.headline}" if error.headline else ":")
        raise FormatError(error.faults, headline, hint=error.hint) from None
    except InputError as error:
        if type(error) is not InputError:
            raise
        raise InputError(f"{argument}: {error.message}", hint=error.hint) from None


def write_crowd(
    crowd: Any,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word users know
    text: bool = True,
    raw_csv: bool = False,
    predicted: Mapping[str, float] | None = None,
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
            place for it. Read back, they are neither answers nor gold.
        reading: How to read `crowd` if it is not one yet, as for `read_crowd`; its format is
            guessed.

    Returns:
        What of this crowd does not come back from the file, in words, with counts and first
        examples; empty if everything does.

    Raises:
        InputError: The format cannot be written, or the path cannot be.
    """
    crowd = to_crowd(crowd, "crowd", **reading)
    name = format or _format_of(Path(path))
    module = get_writer(name)
    takes = signature(module.write).parameters
    given: dict[str, Any] = {"raw_csv": True} if raw_csv and "raw_csv" in takes else {}
    if predicted is not None:
        if "predicted" not in takes:
            raise InputError(
                f"format {name!r} cannot mark what nobody confirmed: it is for label-studio, "
                "prodigy, doccano and brat",
                parameter="predicted",
            )
        given["predicted"] = predicted
    if text:
        module.write(crowd, Path(path), **given)
    elif "text" in takes:
        module.write(crowd, Path(path), text=False, **given)
    else:
        rule = "text=False (--no-text) is for conll, wide and long"
        raise InputError(f"format {name!r} always has the text: {rule}")
    return lost_in_file(_confirmed(crowd, predicted), Path(path), module)


def _confirmed(crowd: Crowd, predicted: Mapping[str, float] | None) -> Crowd:
    """Return the crowd without the gold of items that are only predicted."""
    if crowd.gold is None or not predicted:
        return crowd
    is_predicted = [name in predicted for name in crowd.item_ids.to_pylist()]
    gold = crowd.gold.copy()
    gold[np.repeat(is_predicted, np.diff(crowd.offsets))] = -1
    return crowd.with_gold(gold if (gold >= 0).any() else None)


def write_to_stdout(
    crowd: Crowd,
    format: str,  # noqa: A002 - the word users know
    *,
    text: bool = True,
    raw_csv: bool = False,
) -> list[str]:
    """Write a crowd to standard output; returns what the format cannot hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd"
        lost = write_crowd(crowd, path, format=format, text=text, raw_csv=raw_csv)
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
