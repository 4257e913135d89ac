"""What every format obeys; what is peculiar to one has a file of its own.

A format is here by being in the registry. What it has a place for is said in `HOLDS`; a file with
two faults is in `FAULTY`. Those that need an extra run where it is installed (`make test-models`).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crowd_strategies import alike, common_crowds, crowds, lines_of, only_used, records
from crowd_tables import TABLE_TEXT, damaged, fitted, read_or_refuse, small, tree, written, zipped
from goldspan.crowd import Crowd, CrowdBuilder, read_crowd, write_crowd
from goldspan.crowd.model import ANSWER_COLUMNS
from goldspan.crowd.options import ReadOptions
from goldspan.crowd.registry import FORMATS, get_format, of_kind
from goldspan.crowd.source import Source, open_source
from goldspan.errors import FormatError, GoldspanError, InputError
from torture import FUZZED

EXTRAS = {"uima": "cassis", "spacy": "spacy"}
EVERY = [name for name, one in FORMATS.items() if not one.extra or find_spec(EXTRAS[one.extra])]
HERE = [name for name in EVERY if name != "texts"]  # which have no answers: see test_texts.py
READ_ONLY = {
    *("mturk", "tag-columns", "argilla", "potato", "spacy-json", "json-labels"),
    *("toloka", "appen", "sagemaker", "layers"),
}
GOLD_ONLY = {"conll", "gliner", "spacy-json", "layers"}
SINGLE = {"lewidi", "mace"}
"""Formats of single labels."""
WRITTEN = [name for name in HERE if name not in READ_ONLY]
ANSWERS = [name for name in HERE if name not in GOLD_ONLY]
FOLDERS = {"folder", "brat", "webanno", "datasets", "xmi", "cas-json"}
BINARY = {"parquet", "cleanlab", "datasets", "docbin", "xmi"}
TEXTUAL = [name for name in HERE if name not in BINARY]

every = pytest.mark.parametrize("name", HERE)
every_reader = pytest.mark.parametrize("name", EVERY)
every_writer = pytest.mark.parametrize("name", WRITTEN)
every_text = pytest.mark.parametrize("name", TEXTUAL)
with_answers = pytest.mark.parametrize("name", ANSWERS)


# A sound file of every format

TEXTS = ("Ann 😀 Lee sang", "in Rome")
MTURK = (
    '"HITId","AssignmentId","WorkerId","Input.text","Answer.taskAnswers"\n'
    '"d-1","1","ann","Ann sang","[{""names"":{""entities"":[{""startOffset"":0,""endOffset"":3,'
    '""label"":""PER""}]}}]"\n'
    '"d-1","2","bob","Ann sang","[{""names"":{""entities"":[]}}]"\n'
)
NAMES = [{"startOffset": 0, "endOffset": 3, "label": "PER"}]


def cells(*rows: list[Any], mark: str) -> bytes:
    """A table whose cells that are no strings hold JSON."""
    buffer = io.StringIO()
    written = [[one if isinstance(one, str) else json.dumps(one) for one in row] for row in rows]
    csv.writer(buffer, delimiter=mark, lineterminator="\n").writerows(written)
    return buffer.getvalue().encode()


READ = {
    "mturk": MTURK.encode(),
    "toloka": cells(
        ["INPUT:text", "OUTPUT:names", "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id"],
        ["Ann sang", NAMES, "d-1", "ann"],
        ["Ann sang", [], "d-1", "bob"],
        mark="\t",
    ),
    "appen": cells(
        ["_unit_id", "_worker_id", "names", "text"],
        ["d-1", "ann", NAMES, "Ann sang"],
        ["d-1", "bob", [], "Ann sang"],
        mark=",",
    ),
    "sagemaker": lines_of(
        {
            "datasetObjectId": "d-1",
            "dataObject": {"content": "Ann sang"},
            "annotations": [
                {"workerId": who, "annotationData": {"content": json.dumps({"x": {"entities": e}})}}
                for who, e in (("ann", NAMES), ("bob", []))
            ],
        }
    ),
    "texts": b"id,text\nd-1,Ann sang\nd-2,in Rome\n",
    "tag-columns": lines_of(
        {"id": "d-1", "tokens": ["Ann", "sang"], "ann": ["B-PER", "O"], "bob": ["O", "O"]},
        {"id": "d-2", "tokens": ["in", "Rome"], "ann": ["O", "O"], "bob": ["O", "B-LOC"]},
    ),
    "argilla": lines_of(
        *(
            {"id": name, "fields": {"text": text}, "responses": {"ner": [
                {"value": [{"start": 0, "end": 3, "label": "PER"}][:n], "user_id": who}
                for n, who in ((1, "ann"), (0, "bob"))]}}
            for name, text in (("d-1", "Ann sang"), ("d-2", "Bob too"))
        )
    ),
    "potato": lines_of(
        *(
            {"instance_id": "d-1", "user_id": who, "displayed_text": "Ann sang",
             "label_annotations": {}, "span_annotations": [
                 {"start": 0, "end": 3, "span": "Ann", "annotation": "PER"}][:n]}
            for n, who in ((1, "ann"), (0, "bob"))
        )
    ),
    "spacy-json": lines_of(
        {"id": "d-1", "text": "Ann sang", "cats": {}, "entities": [[0, 3, "PER"]]},
        {"id": "d-2", "text": "in Rome", "cats": {}, "entities": [[3, 7, "LOC"]]},
    ),
    "layers": lines_of(
        {"item": "d-1", "text": "Ann sang", "layers": {
            "ner": [{"type": "PER", "start": 0, "end": 3}], "mood": ["glad"]}},
        {"item": "d-2", "text": "in Rome", "layers": {
            "ner": [{"type": "LOC", "start": 3, "end": 7}], "mood": None}},
    ),
    "json-labels": lines_of(
        {"id": "d-1", "text": "Ann sang", "marks": {"ann": [[0, 3, "PER"]], "bob": []}},
        {"id": "d-2", "text": "in Rome", "marks": {"ann": [], "bob": [[3, 7, "LOC"]]}},
    ),
}  # fmt: skip


def sound() -> Crowd:
    """Two sentences of a document, two workers and gold: every format has a place for them."""
    builder = CrowdBuilder()
    tokens = (["Ann", "😀", "Lee", "sang"], ["in", "Rome"])
    starts = ([0, 4, 6, 10], [0, 3])
    gold = (["B-PER", "O", "O", "O"], ["O", "B-LOC"])
    for n, text in enumerate(TEXTS):
        item = builder.add_item(
            f"d-{n + 1}", tokens[n], text=text, token_start=starts[n], group="d", gold=gold[n]
        )
        builder.add_answer(item, "ann", gold[n])
        builder.add_answer(item, "bob", ["O"] * len(gold[n]))
    return builder.build()


def sound_single(*rows: list[str | None]) -> Crowd:
    """Single labels of numbered items and annotators."""
    builder = CrowdBuilder()
    for n, labels in enumerate(rows, start=1):
        item = builder.add_item(str(n), [str(n)])
        for worker, label in enumerate(labels, start=1):
            if label is not None:
                builder.add_answer(item, str(worker), [label])
    return builder.build(single=True)


def sound_of(name: str) -> Crowd:
    """The crowd of which the sample of a format is made."""
    if name in SINGLE:
        return sound_single(["PER", "PER", None], ["O", "O", "O"], ["O", "PER", "PER"])
    return sound()


@cache
def sample(name: str) -> dict[str, bytes]:
    """The files of a format by their paths; a format of one file has the path ""."""
    if name in READ:
        return {"": READ[name]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample"
        write_crowd(sound_of(name), path, format=name)
        return files_in(path)


def files_in(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    return {
        str(one.relative_to(path)): one.read_bytes()
        for one in sorted(path.rglob("*"))
        if one.is_file()
    }


def packed(files: Mapping[str, bytes]) -> bytes:
    """One file as it is, several as a zip archive."""
    return files[""] if "" in files else zipped(files)


def read(name: str, change: Callable[[bytes], bytes] = bytes, **options: Any) -> Crowd:
    files = {path: change(data) for path, data in sample(name).items()}
    return read_crowd(packed(files), format=name, **options)


# Content


@every
def test_a_file_is_recognised_and_all_its_labels_are_placed(name):
    crowd = read_crowd(packed(sample(name)))
    assert crowd.import_report.format == name
    assert crowd.import_report.adds_up
    assert crowd.import_report.faults == ()
    assert crowd == read(name)
    if name in SINGLE:
        assert crowd == sound_of(name)
        return
    assert crowd.item_ids.to_pylist()[0] in {"d-1", "d-1-1"}
    if name not in GOLD_ONLY:
        assert crowd.worker_ids.to_pylist() == ["ann", "bob"]
        assert [tags[0] for tags in crowd.answers_of(0).values()] == ["B-PER", "O"]
    if name not in READ_ONLY:
        assert crowd.tagged_by_id()["d-2"] == ["O", "B-LOC"]


@every_writer
def test_a_folder_and_its_archive_or_a_file_and_its_compression_are_one_crowd(name, tmp_path):
    files = sample(name)
    if "" in files:
        (tmp_path / "sample.gz").write_bytes(gzip.compress(files[""]))
        assert read_crowd(tmp_path / "sample.gz", format=name) == read(name)
    else:
        assert read_crowd(tree(tmp_path / "sample", files)) == read(name)


@every_text
def test_marks_and_line_ends_of_windows_change_nothing(name):
    wanted = read(name)
    for change in (
        lambda data: b"\xef\xbb\xbf" + data if data else data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.rstrip(b"\n"),
    ):
        assert read(name, change) == wanted


@with_answers
def test_workers_to_keep_are_named_once_or_twice_and_must_be_there(name):
    whole = read(name)
    bob = whole.worker_ids[1].as_py()
    for workers in ([bob], [bob, bob]):
        crowd = read(name, workers=workers)
        assert crowd.worker_ids.to_pylist() == [bob]
        assert crowd.item_ids == whole.item_ids
        assert crowd.answers_of(0) == {bob: whole.answers_of(0)[bob]}
        assert crowd.import_report.adds_up
    with pytest.raises(
        FormatError, match=r"there is no (worker|worker column|column of tags) 'zoe'"
    ):
        read(name, workers=["zoe"])


@pytest.mark.parametrize("name", [name for name in HERE if name != "parquet"])  # it has no labels
def test_labels_are_renamed_and_dropped(name):
    renamed = read(name, labels={"PER": "human"})
    assert ("human" if name in SINGLE else "B-human") in renamed.tagset.tags
    assert "B-PER" not in renamed.tagset.tags
    dropped = read(name, labels={"PER": ""}, unlabelled="keep")
    assert not {"PER", "human"} & {*dropped.tagset.types}
    assert dropped.import_report.adds_up


# What comes back


@st.composite
def documents(draw: st.DrawFn) -> Crowd:
    """Crowds of documents with one item per line, which all their workers answered."""
    crowd = once(draw(common_crowds(texts=True).filter(lambda c: not c.tagset.rules.is_plain)))
    answers = crowd.answers
    assume(len(answers))
    first = answers.item[answers.worker == answers.worker[0]]
    crowd = crowd.select_items(np.sort(first))
    answers = crowd.answers
    n_answers = np.bincount(answers.worker)
    answers = answers.take(n_answers[answers.worker] == crowd.n_items)
    groups = draw(st.sampled_from([["a", "b", "c"], ["a", "a", "b"], ["a"] * 3, ["a", "b", "b"]]))
    groups = groups[: crowd.n_items]
    ids = [f"{one}-{groups[: n + 1].count(one)}" for n, one in enumerate(groups)]
    crowd = replace(
        crowd,
        item_ids=pa.array(ids),
        groups=pa.array(groups),
        worker_ids=pa.array([f"w{n}" for n in range(crowd.n_workers)]),
        answers=answers,
        gold=None if crowd.gold is None or (crowd.gold < 0).any() else crowd.gold,
        texts=pa.array([text.lstrip() for text in crowd.texts.to_pylist()]),
        token_start=crowd.token_start - 1,  # every text began with one blank
    )
    return only_used(crowd, ["groups"])


def once(crowd: Crowd) -> Crowd:
    """Leave out repeated answers, and what they alone used."""
    first = crowd.answers.take(crowd.answers.attempt == 0)
    return only_used(replace(crowd, answers=first), ["groups", "attributes", *ANSWER_COLUMNS])


def clear(crowd: Crowd) -> Crowd | None:
    """Leave out single labels that all look like tags of spans."""
    tags = {*crowd.tagset.tags}
    return None if crowd.tagset.rules.is_plain and tags <= {"O", "B-PER"} else crowd


def spans_only(crowd: Crowd) -> Crowd | None:
    """Leave out labels and names that mean "none" in a table, which its writer refuses."""
    names = {*crowd.tagset.types, *crowd.worker_ids.to_pylist()}
    none = any(name.strip() in ReadOptions.missing for name in names)
    return None if crowd.tagset.rules.is_plain or none else crowd


def gold_spans(crowd: Crowd) -> Crowd | None:
    """Leave the gold alone, outside of spans where it is not known."""
    if crowd.tagset.rules.is_plain:
        return None
    gold = np.full(crowd.n_tokens, -1, np.int16) if crowd.gold is None else crowd.gold
    return fitted(crowd.with_gold(np.where(gold < 0, crowd.tagset.index["O"], gold)), "conll")


def labels_only(crowd: Crowd, *kept: str) -> Crowd:
    """Leave single labels alone, or with their texts and gold."""
    workers = pa.array([f"w{n}" for n in range(crowd.n_workers)], pa.string())
    crowd = replace(crowd, groups=None, worker_ids=workers)
    if "texts" not in kept:
        crowd = replace(crowd, texts=None, token_start=None, gold=None, attributes=None)
    elif crowd.token_start is None:
        crowd = replace(crowd, texts=None)
    return only_used(crowd, kept)


def matrix(crowd: Crowd) -> Crowd | None:
    """Leave single labels alone, of items and annotators that are called by their numbers."""
    crowd = once(labels_only(crowd))
    ids = [str(n + 1) for n in range(crowd.n_items)]
    workers = pa.array([str(n + 1) for n in range(crowd.n_workers)], pa.string())
    crowd = replace(crowd, item_ids=pa.array(ids), tokens=pa.array([[one] for one in ids]))
    return replace(crowd, worker_ids=workers) if crowd.n_workers > 1 else None


LABELLED = crowds(encodings=("PLAIN",), odd=False, single=True)
TABLES = ("wide", "long", "conll", "folder")
SUBMITTED = ("groups", "attributes", "submitted")
HOLDS: dict[str, st.SearchStrategy[Crowd | None]] = {
    "parquet": crowds(),
    "spans": crowds(),
    **{name: crowds(odd=False).map(lambda c, name=name: fitted(c, name)) for name in TABLES},
    "cleanlab": common_crowds(columns=("groups",)).map(once),
    "datasets": common_crowds(columns=("groups",)).map(once),
    "label-studio": common_crowds(columns=(*SUBMITTED, "started")).map(once).map(clear),
    "prodigy": common_crowds(columns=SUBMITTED, texts=True).map(clear),
    "doccano": common_crowds(columns=("groups", "attributes")).map(clear),
    "span-table": common_crowds(columns=("groups",), texts=True).map(spans_only),
    "gliner": common_crowds(texts=False).map(gold_spans),
    "brat": documents(),
    "webanno": documents(),
    "lewidi": LABELLED.map(lambda crowd: labels_only(crowd, "texts", "attributes")),
    "mace": LABELLED.map(matrix),
}
"""Crowds of which a format holds everything; the encoding may have to be named."""


@every_writer
@given(data=st.data())
def test_what_a_format_has_a_place_for_comes_back(name, data):
    crowd = data.draw(HOLDS[name])
    assume(crowd is not None)
    with tempfile.TemporaryDirectory() as folder:
        endings = ["", ".tsv", ".csv.gz"] if name == "long" else [""]
        path = Path(folder) / f"crowd{data.draw(st.sampled_from(endings))}"
        lost = write_crowd(crowd, path, format=name)
        assert [one for one in lost if not one.startswith("the encoding")] == []
        encoding = crowd.tagset.encoding if lost else None
        back = read_crowd(path, format=name, unlabelled="keep", encoding=encoding)
    assert alike(back, crowd)
    assert back.import_report.n_labels == int((crowd.answers.codes >= 0).sum())


@every_writer
@given(crowd=crowds() | common_crowds(columns=("submitted",)))
def test_a_loss_is_named_if_and_only_if_there_is_one(name, crowd):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd"
        try:
            lost = write_crowd(crowd, path, format=name)
        except GoldspanError:
            assert not path.exists()
            return
        try:
            back = read_crowd(path, format=name, unlabelled="keep")
        except GoldspanError:
            back = None
        assert alike(back, crowd) == (lost == [])


@with_answers
def test_of_repeated_answers_the_last_counts_or_the_first(name):
    if name not in REPEATED:
        pytest.skip("it has no place for them")
    crowd = small(item="d-1", group="d", again=["O", "O"])
    crowd = replace(crowd, texts=pa.array(["x y"]), token_start=np.array([0, 2], np.int32))
    with written(crowd, name) as (path, lost):
        assert lost == []
        assert read_crowd(path, format=name).answers_of(0) == {"w": ["O", "O"]}
        back = read_crowd(path, format=name, repeated="first")
        assert back.answers_of(0) == {"w": ["B-X", "I-X"]}
        assert len(back.answers) == 2


@every_writer
def test_writing_replaces_a_file_leaves_a_folder_alone_and_nothing_half_done(name, tmp_path):
    sound = sound_of(name)
    write_crowd(sound, tmp_path / "one", format=name)
    one = files_in(tmp_path / "one")
    if name in FOLDERS:
        with pytest.raises(InputError, match="exists already: remove it or choose another name"):
            write_crowd(sound, tmp_path / "one", format=name)
        assert files_in(tmp_path / "one") == one
    else:
        write_crowd(sound, tmp_path / "one", format=name)
        assert files_in(tmp_path / "one") == one
        if name not in BINARY:
            write_crowd(sound, tmp_path / "one.gz", format=name)
            assert gzip.decompress((tmp_path / "one.gz").read_bytes()) == one[""]
            (tmp_path / "one.gz").unlink()
        (tmp_path / "taken").mkdir()
        with pytest.raises(InputError, match="taken"):
            write_crowd(sound, tmp_path / "taken", format=name)
        (tmp_path / "taken").rmdir()
    with pytest.raises(InputError, match=r"cannot write .*nowhere"):
        write_crowd(sound, tmp_path / "nowhere" / "a", format=name)
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@every_writer
@pytest.mark.parametrize("worker", ["gold", "Gold", "truth"])
def test_a_worker_of_that_name_never_becomes_gold(name, worker):
    crowd = small(item="d-1", group="d", worker=worker)
    try:
        with written(crowd, name) as (path, lost):
            assert lost or read_crowd(path, format=name).worker_ids.to_pylist() == [worker]
    except InputError:
        return


# What is refused

FAULTY: dict[str, tuple[dict[str, str], dict[str, Any], list[tuple[str, int]]]] = {
    "wide": ({"": "token\tA\tB\nx\tO\tX-X\n\ny\tO\tO\nz\tQ\tO\n"}, {}, [("", 2), ("", 5)]),
    "long": ({"": "item,worker,token,label\n1,a,x,O\n1,a,y,X-X\n2,b,z,Q\n"}, {},
             [("", 3), ("", 4)]),
    "conll": ({"": "x X-X\ny O\n\nz Q\n"}, {}, [("", 1), ("", 4)]),
    "folder": ({"A/d.txt": "x X-X\ny O\n", "B/d.txt": "x O\ny Q\n"}, {},
               [("A/d.txt", 1), ("B/d.txt", 2)]),
    "brat": ({"d.txt": "Ann", "a/d.ann": "T1\tX 0 9\tAnn\n", "b/d.ann": "x\nT1\tX 2 1\tn\n"}, {},
             [("a/d.ann", 1), ("b/d.ann", 1), ("b/d.ann", 2)]),
    "span-table": (
        {"": "id,text,start,end,label,annotator\na,Ann,0,9,P,w\na,Ann,0,3,P,w\na,Ann,x,3,P,v\n"},
        {}, [("", 2), ("", 4)]),
    "toloka": ({"": READ["toloka"].decode().replace("\tann", "\t")}, {}, [("", 2)]),
    "appen": ({"": READ["appen"].decode().replace("d-1", "")}, {}, [("", 2), ("", 3)]),
    "mace": ({"": "B-X,O\nO\nO,O\nO,O,O\n"}, {}, [("", 1), ("", 2), ("", 3)]),
    "mturk": ({"": MTURK.replace('"ann"', '""').replace('"bob"', '""')}, {}, [("", 2), ("", 3)]),
    **{
        name: ({"": "".join(json.dumps(row) + "\n" for row in rows)}, {}, [("", 1), ("", 3)])
        for name, rows in {
            "spans": [{"id": 1, "text": "Ann", "spans": [[0, end, "P"]], "worker": "w"}
                      for end in (9, 3, 8)],
            "doccano": [{"id": n, "text": "Ann", "label": [[0, end, "P"]], "annotator": "w"}
                        for n, end in enumerate((9, 3, 8))],
            "prodigy": [{"text": "Ann", "_input_hash": n, "answer": "accept",
                         "spans": [{"start": 0, "end": end, "label": "P"}]}
                        for n, end in enumerate((9, 3, 8))],
            "sagemaker": [{"source": "Ann", "n-metadata": {}, "n": {"annotations": {"entities": [
                           {"startOffset": 0, "endOffset": end, "label": "P"}]}}}
                          for end in (9, 3, 8)],
            "argilla": [{"id": n, "fields": {"text": "Ann"}, "responses": {"q": [
                            {"user_id": "w", "value": [{"start": 0, "end": end, "label": "P"}]}]}}
                        for n, end in enumerate((9, 3, 8))],
            "potato": [{"id": n, "user_id": "w", "displayed_text": "Ann", "span_annotations": [
                           {"start": 0, "end": end, "annotation": "P"}]}
                       for n, end in enumerate((9, 3, 8))],
            "spacy-json": [["Ann", {"entities": [[0, end, "P"]]}] for end in (9, 3, 8)],
            "layers": [{"item": n, "text": "Ann",
                        "layers": {"q": [{"type": "P", "start": 0, "end": end}]}}
                       for n, end in enumerate((9, 3, 8))],
            "json-labels": [{"text": f"Ann {n}", "marks": {"w": [[0, end, "P"]]}}
                            for n, end in enumerate((9, 3, 8))],
            "gliner": [{"tokenized_text": ["Ann"], "ner": [[0, end, "P"]]} for end in (9, 0, 8)],
            "label-studio": [
                {"id": n, "data": {"text": "Ann"}, "annotations": [
                    {"completed_by": 1, "result": [{"type": "labels", "value":
                     {"start": 0, "end": end, "labels": ["P"]}}]}]}
                for n, end in enumerate((9, 3, 8))],
            "tag-columns": [{"id": n, "tokens": ["x"], "a": tags, "b": ["O"]}
                            for n, tags in enumerate((["O", "O"], ["O"], []))],
        }.items()
    },
}  # fmt: skip
"""Files with faults, how they are read, and the file and line of every fault."""


@pytest.mark.parametrize("name", FAULTY)
def test_all_faults_are_listed_at_once_with_file_and_line(name):
    files, options, places = FAULTY[name]
    data = packed({path: text.encode() for path, text in files.items()})
    with pytest.raises(FormatError) as caught:
        read_crowd(data, format=name, encoding="BIO", **options)
    found = [(fault.file.removeprefix("<bytes>").lstrip("/"), fault.line)
             for fault in caught.value.faults]  # fmt: skip
    assert found == places


@every_reader
def test_what_holds_nothing_is_refused(name):
    for data in (b"", b"\n\n", b"\0\0", b"\x81\xff\n"):
        for source in (data, zipped({"a/b.txt": data, "a/b.ann": data, "c.tsv": data})):
            with pytest.raises(GoldspanError):
                read_crowd(source, format=name)
    for data in (b"[]", b"{}", b"a,b\n1,2\n", b"\x78\x9cabc", b"PAR1", b"PK\3\4"):
        if name not in {"conll", "mace"} or b"," not in data:
            with pytest.raises(GoldspanError):
                read_crowd(data, format=name)


def starts(name: str) -> list[bytes]:
    """Nothing, and the first line of a sound file."""
    first = min(sample(name).items())[1]
    return [b"", first.partition(b"\n")[0][:300] + b"\n"]


@FUZZED
@every_reader
@given(data=st.binary(max_size=60) | TABLE_TEXT.map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_read_or_refused(name, data):
    if name in {"brat", *of_kind("records")}:
        sources = [Source("x", data)]
        with suppress(FormatError):  # the bytes may begin as an archive does
            sources.append(open_source(zipped({"a/d.txt": data, "b.ann": data})))
        for source in sources:
            assert get_format(name).sniff(source) in {True, False}
    for start in starts(name):
        read_or_refuse(start + data, format=name, unlabelled="keep")


def parquet(**columns: list[Any]) -> dict[str, bytes]:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return {"": buffer.getvalue()}


OTHERS: dict[str, list[dict[str, bytes]]] = {
    "wide": [
        {"": "token\tA\tB\nx\tO\tB-X\n".encode("utf-16")},
        {"": b'doc;sent;"token";A;B\r\nd;1;"x;y";NA;B-X\r\n'},
    ],
    "long": [
        {"": b"task,worker,label,gold\n1,a,x,x\n1,b,y,x\n2,a,,\n2,b,y,\n"},
        {"": b"item,worker,position,token,label,gold,attempt,submitted\n"
             b'1,a,0,"x",O,O,0,2024-01-01\n1,a,1,y,O,O,0,5\n1,b,0,x,B-X,O,1,\n'},
        parquet(task=[1, 2], worker=["a", "b"], label=["x", None], submitted=[1, 2]),
    ],
    "conll": [{"": b"-DOCSTART- -X- -X- O\n\nAnn NNP B-NP B-PER\nsang VB B-VP O\n"}],
    "folder": [{"gold/d.txt": b"Africans B-MISC\nsang O\n\nParis B-LOC\n",
                "A/d.txt": b"Africa B-MISC\nns O\nsang/LOC O\n\n B-LOC\nParis B-LOC\n"}],
    "tag-columns": [parquet(tokens=[["Ann", "sang"], ["So"]], a=[["B-X", "O"], None], b=[[], []])],
    "argilla": [
        {"": lines_of(
            {"id": "a", "text": "Ann sang", "q.responses": ["x", "y"], "metadata": {"k": 1},
             "q.responses.users": ["u", "v"], "q.responses.status": ["submitted", "draft"]},
            {"text": "Ann", "q": [{"user_id": "u", "value": "x", "status": "submitted"}]},
            {"text": "Ann", "q": {"user_id": ["u"], "value": ["x"], "status": [None]}},
        )},
        {"": lines_of(
            {"id": "a", "text": "Ann", "tokens": ["Ann"], "annotation": [["PER", 0, 3]],
             "annotation_agent": "w", "prediction": None, "status": "Validated"},
            {"id": "b", "inputs": {"text": "Ann"}, "annotation": "x", "prediction": [],
             "annotation_agent": "w", "status": "Discarded"},
            {"id": "c", "fields": {"text": "Ann"}, "responses": [
                {"user_id": "u", "status": "submitted", "values": {"q": {"value": "x"}}}]},
        )},
    ],
    "potato": [
        {"": lines_of(
            {"user_id": "u", "instance_id_to_label_to_value": {
                "a": [[{"schema": "q", "name": "x"}, "true"]], "b": {"q": {"labels": {"x": True}}}},
             "instance_id_to_span_to_value": {}},
            {"id": "a", "displayed_text": "Ann", "label_annotations": {"q": {"x": "1"}}},
            {"id": "b", "displayed_text": "Ann", "span_annotations": {
                "q": [[{"start": 0, "end": 3, "name": "x"}, "true"]]}},
        )}
    ],
    "spacy-json": [
        {"": lines_of(["Ann", {"entities": [[0, 3, "P"]]}], ["Ann", {"spans": {"sc": []}}])},
        {"": lines_of(
            {"annotations": [["Ann", {"entities": [[0, 3, "P"]]}], None]},
            {"paragraphs": [{"sentences": [{"tokens": [{"orth": "Ann", "ner": "U-P"}]}]}]},
            {"text": "Ann", "cats": {"x": 1.0, "y": 0.5}},
        )},
    ],
    "json-labels": [
        {"": lines_of(
            {"examples": [{"content": "Ann", "seen_by": [{"annotator": "w"}], "annotations": [
                {"start": 0, "end": 3, "tag": "P", "annotated_by": [{"annotator": "v"}]}]}]},
            {"text": "Ann", "annotations": [{"user": 1, "label": "x"}, {"user": 2, "value": "y"}]},
            {"text": "Ann", "annotation": [{"label": ["P"], "points": [{"start": 0, "end": 2}]}]},
        )},
        {"": lines_of(*({"post": n, "rater": who, "mood": who} for n in (1, 2) for who in "ab"))},
    ],
    "span-table": [parquet(id=["a"], text=["Ann"], start=[0], end=[3], label=["P"], worker=["w"])],
}  # fmt: skip
"""More files to damage: other shapes of a format."""


@FUZZED
@every_reader
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(name, data):
    files = data.draw(st.sampled_from([sample(name), *OTHERS.get(name, ())]))
    path = data.draw(st.sampled_from(sorted(files)))
    options = data.draw(st.sampled_from([{}, {"strict": True}, {"repeated": "first"}]))
    broken = packed({**files, path: data.draw(damaged(files[path]))})
    read_or_refuse(broken, format=name, unlabelled="keep", **options)
    read_or_refuse(broken)
    if path:
        read_or_refuse(data.draw(damaged(packed(files))), format=name)


def records_of(name: str) -> list[dict[str, Any]]:
    """JSON objects of spans and of single labels in this format."""
    labels = read_crowd(b"item,worker,label,gold,text\n1,ann,x,x,one\n2,bob,y,,two\n")
    files = [sample(name)[""]]
    if name not in {*READ_ONLY, "gliner"}:
        with written(labels, name) as (path, _):
            files.append(path.read_bytes())
    files += [one[""] for one in OTHERS.get(name, ()) if one.get("", b"").startswith(b"{")]
    found = []
    for data in files:
        whole = data.decode()
        rows = json.loads(whole) if whole[0] == "[" else map(json.loads, whole.split("\n")[:-1])
        found += rows
    return found


@FUZZED
@pytest.mark.parametrize("name", [*of_kind("records"), "tag-columns"])
@given(data=st.data())
def test_any_records_are_read_or_refused(name, data):
    good = records_of(name)
    keys = sorted({key for row in good for key in row} | MORE_KEYS)
    rows = data.draw(records(keys, good))
    read_or_refuse(lines_of(*rows), format=name, offsets=data.draw(UNITS))
    read_or_refuse(rows, format=name)


MORE_KEYS = {
    *("label", "labels", "entities", "tags", "skipped", "unit", "token_start", "attempt", "cost"),
    *("meta", "doc", "item", "accept", "predictions", "annotator", "Comments"),
}
UNITS = st.sampled_from(["codepoint", "utf16", "utf8"])
REPEATED = {"parquet", "label-studio", "prodigy", "doccano", "spans", "span-table", "long"}


@pytest.mark.parametrize("name", [name for name in HERE if name not in TABLES])
def test_only_its_own_files_are_claimed(name):
    for other in EVERY:
        claimed = get_format(name).sniff(open_source(packed(sample(other))))
        assert claimed == (name == other), other
