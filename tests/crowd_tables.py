"""What the tests of tables share: crowds that a format can hold, damaged files, sharp checks."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from crowd_strategies import alike, only_used
from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions, read_crowd, write_crowd
from goldspan.crowd.model import ANSWER_COLUMNS
from goldspan.errors import FormatError, GoldspanError

TIMES = ANSWER_COLUMNS


def crowd_of(
    items: Sequence[Mapping[str, Sequence[str | None]]],
    *,
    gold: Sequence[Sequence[str | None] | None] | None = None,
    encoding: str = "BIO",
    groups: Sequence[str] | None = None,
) -> Crowd:
    """Make a crowd from one mapping of workers to tags per item; a list of tags is an attempt."""
    builder = CrowdBuilder(ReadOptions(encoding=encoding))
    for n, answers in enumerate(items):
        known = gold[n] if gold else None
        size = len(known if known is not None else next(iter(answers.values())))
        item = builder.add_item(
            f"s{n}", [f"t{i}" for i in range(size)], gold=known, group=groups[n] if groups else None
        )
        for worker, tags in answers.items():
            builder.add_answer(item, worker, tags)
    return builder.build()


def small(
    tokens: Sequence[str] = ("x", "y"),
    tags: Sequence[str | None] = ("B-X", "I-X"),
    *,
    worker: str = "w",
    item: str = "i",
    group: str | None = None,
    gold: Sequence[str | None] | None = None,
    encoding: str = "BIO",
    again: Sequence[str | None] | None = None,
    cost: int | None = None,
    **columns: Any,
) -> Crowd:
    """Make a crowd of one item and one worker, then change some of its columns."""
    builder = CrowdBuilder(ReadOptions(encoding=encoding, missing=()))
    place = builder.add_item(item, tokens, gold=gold, group=group)
    builder.add_answer(place, worker, tags, cost=cost)
    if again:
        builder.add_answer(place, worker, again)
    return replace(builder.build(), **columns)


def assert_loses(crowd: Crowd, kind: str, sentence: str) -> None:
    """Check that a loss is said, and that it is true: the crowd does not come back."""
    with written(crowd, kind) as (path, lost):
        assert any(one.startswith(sentence) for one in lost), lost
        try:
            back = read_crowd(path, format=kind, unlabelled="keep")
        except GoldspanError:
            return
        assert back != crowd


def fitted(crowd: Crowd, kind: str) -> Crowd | None:
    """Leave out of a crowd what a table of this format cannot hold; None if nothing is left.

    What stays is held if the encoding is named when it is read.
    """
    crowd = replace(crowd, texts=None, token_start=None)
    once = replace(crowd.latest, attempt=np.zeros(len(crowd.latest), np.int16))
    if kind == "wide":
        attributes = {} if crowd.attributes is None else crowd.attributes.to_pydict()
        shown = {f"a{n}": [ascii(v) for v in vs] for n, vs in enumerate(attributes.values())}
        crowd = replace(crowd, answers=once, attributes=pa.table(shown) if shown else None)
        crowd = replace(crowd, worker_ids=_renamed(crowd.worker_ids, "w"))
        return only_used(crowd, ())
    crowd = replace(crowd, attributes=None)
    if kind == "long":
        crowd = crowd.select_items(np.unique(crowd.answers.item))
        if crowd.is_classification:
            crowd = replace(crowd, tokens=pa.array([[i] for i in crowd.item_ids.to_pylist()]))
        return only_used(crowd, TIMES) if crowd.n_items else None
    if kind == "conll":
        nobody = crowd.answers.take(np.zeros(0, np.int64))
        crowd = only_used(replace(crowd, groups=None, answers=nobody), ())
        return None if crowd.gold is None else crowd
    if kind == "folder":
        documents = [f"d{n // 2}" for n in range(crowd.n_items)]
        known = crowd.gold is not None and (crowd.gold >= 0).any()
        return only_used(
            replace(
                crowd,
                item_ids=pa.array([f"{d}-{n % 2 + 1}" for n, d in enumerate(documents)]),
                groups=pa.array(documents),
                worker_ids=_renamed(crowd.worker_ids, "w"),
                answers=once,
                gold=crowd.gold if known else np.zeros(crowd.n_tokens, np.int16),
            ),
            (),
        )
    raise AssertionError(kind)


def _renamed(names: pa.Array, letter: str) -> pa.Array:
    return pa.array([f"{letter}{n}" for n in range(len(names))], pa.string())


@contextmanager
def written(crowd: Crowd, kind: str, name: str = "crowd") -> Iterator[tuple[Path, list[str]]]:
    """Write a crowd into a folder of its own; gives the path and what is said to be lost."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        yield path, write_crowd(crowd, path, format=kind)


def assert_same(found: Crowd, wanted: Crowd) -> None:
    """Compare two crowds and show only what differs."""
    if alike(found, wanted):
        return
    one, two = found.content(), wanted.content()
    different = {key: (one[key], two[key]) for key in two if one[key] != two[key]}
    assert not different, different


def assert_holds(crowd: Crowd, kind: str, name: str = "crowd") -> None:
    """Check that a crowd comes back whole, once the encoding is named."""
    with written(crowd, kind, name) as (path, lost):
        others = [loss for loss in lost if not loss.startswith("the encoding")]
        assert not others, others
        back = read_crowd(path, format=kind, unlabelled="keep", encoding=crowd.tagset.encoding)
        assert_same(back, crowd)
        if not lost:
            assert_same(read_crowd(path, format=kind, unlabelled="keep"), crowd)


def assert_says_losses(crowd: Crowd, kind: str, name: str = "crowd") -> list[str]:
    """Check that a crowd comes back whole unless a loss is said; gives the losses.

    What cannot be written at all, and what cannot be read back, is an error of goldspan's.
    """
    try:
        with written(crowd, kind, name) as (path, lost):
            try:
                back = read_crowd(path, format=kind, unlabelled="keep")
            except GoldspanError:
                assert lost
            else:
                if not lost:
                    assert_same(back, crowd)
            return lost
    except GoldspanError as error:
        return [str(error)]


def refusal(data: Any, *parts: str, **options: Any) -> str:
    """Read what must be refused with one message that holds these parts; gives the message."""
    with pytest.raises(GoldspanError) as caught:
        read_crowd(data, **options)
    message = str(caught.value)
    for part in parts:
        assert part in message, f"{part!r} is not in:\n{message}"
    return message


def faults_of(data: Any, **options: Any) -> list[tuple[int, str, int, str, str]]:
    """Read what must be refused; gives line, item, token, worker and kind of every fault."""
    with pytest.raises(FormatError) as caught:
        read_crowd(data, **options)
    return [(f.line, f.item, f.token, f.worker, f.kind) for f in caught.value.faults]


def read_or_refuse(data: Any, **options: Any) -> Crowd | None:
    """Read anything: a crowd that hangs together comes out, or an error of goldspan's."""
    try:
        crowd = read_crowd(data, **options)
    except GoldspanError:
        return None
    answers = crowd.answers
    assert len(crowd.tokens.flatten()) == crowd.n_tokens
    assert (np.diff(crowd.offsets) > 0).all()
    assert (answers.lengths == np.diff(crowd.offsets)[answers.item]).all()
    assert answers.codes.min(initial=-1) >= -1
    assert answers.codes.max(initial=-1) < len(crowd.tagset.tags)
    assert crowd.gold is None or len(crowd.gold) == crowd.n_tokens
    keys = zip(
        answers.item.tolist(), answers.worker.tolist(), answers.attempt.tolist(), strict=True
    )
    assert len(set(keys)) == len(answers)
    assert len(set(crowd.item_ids.to_pylist())) == crowd.n_items
    assert len(set(crowd.worker_ids.to_pylist())) == crowd.n_workers
    assert crowd.import_report.adds_up
    assert crowd.import_report.n_placed == (answers.codes >= 0).sum()
    crowd.content()
    return crowd


_INSERTS = [
    *(
        b"\t",
        b",",
        b";",
        b'"',
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b" ",
        b"# ",
        b"\n\n",
        b"?",
        b"NA",
        b"O",
    ),
    *(
        b"B-",
        b"-1",
        b"1e5",
        b"9" * 25,
        b"\xff",
        b"\x81",
        "ä".encode(),
        b"\xef\xbb\xbf",
        b"\xff\xfe",
    ),
    "\u2028".encode(),
]


@st.composite
def damaged(draw: st.DrawFn, *files: bytes) -> bytes:
    """One of some valid files, cut, with bytes flipped or put in, with lines swapped or doubled."""
    data = bytearray(draw(st.sampled_from(files)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(0, len(data) - 1)))
        end = place + draw(st.integers(1, 12))
        what = draw(st.sampled_from(["cut", "drop", "flip", "insert", "repeat", "swap", "double"]))
        if what == "cut":
            del data[place:]
        elif what == "drop":
            del data[place:end]
        elif what == "flip" and data:
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif what == "insert":
            data[place:place] = draw(st.sampled_from(_INSERTS))
        elif what == "repeat":
            data[place:place] = data[place:end]
        else:
            lines = bytes(data).split(b"\n")
            one, two = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            if what == "swap":
                lines[one], lines[two] = lines[two], lines[one]
            else:
                lines.insert(one, lines[two])
            data = bytearray(b"\n".join(lines))
    return bytes(data)


TABLE_TEXT = st.text(
    st.sampled_from(list("aO?BI-,;\t\n\r\"'# 01é\ufeff\u2028")) | st.characters(), max_size=80
)
"""Text that looks a little like a table."""


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of some files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tree(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write some files into a folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder
