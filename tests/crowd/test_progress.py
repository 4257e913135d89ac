"""How far readers are: all of them tell it, in order, to the end, and not too often."""

from __future__ import annotations

import json

import pytest

import goldspan
from goldspan.crowd.source import Progress, counted

WORKERS = ("ann", "bob")
LINES = [
    {"id": f"s{n}", "text": "Ann sang", "label": [[0, 3, "PER"]], "annotator": who}
    for n in range(3)
    for who in WORKERS
]
SPANS = [{"item": one["id"], "text": one["text"], "worker": one["annotator"]} for one in LINES]
PRODIGY = [
    {"text": f"Ann sang {n}", "_annotator_id": "ann", "answer": "accept", "spans": []}
    for n in range(6)
]
REGION = {"type": "labels", "value": {"start": 0, "end": 3, "text": "Ann", "labels": ["PER"]}}
TASKS = [
    {
        "id": n,
        "data": {"text": "Ann sang"},
        "annotations": [{"completed_by": 1, "result": [REGION]}],
    }
    for n in range(6)
]


def jsonl(rows):
    return "\n".join(json.dumps(row) for row in rows).encode()


FILES = {
    "spans": jsonl([{**one, "spans": [[0, 3, "PER"]]} for one in SPANS]),
    "doccano": jsonl(LINES),
    "prodigy": jsonl(PRODIGY),
    "label-studio": json.dumps(TASKS).encode(),
}


def told(source, kind):
    seen = []
    goldspan.read_crowd(source, format=kind, progress=lambda *so_far: seen.append(so_far))
    return seen


@pytest.mark.parametrize("kind", FILES)
def test_readers_of_spans_tell_how_far_they_are(kind):
    assert told(FILES[kind], kind) == [(n, 6) for n in range(1, 7)]


def test_the_reader_of_brat_tells_how_many_files_it_has_read(tmp_path):
    for n in range(3):
        (tmp_path / f"d{n}.txt").write_text("Ann sang\n")
        (tmp_path / f"d{n}.ann").write_text("T1\tPER 0 3\tAnn\n")
    assert told(tmp_path, "brat") == [(1, 3), (2, 3), (3, 3)]


def test_of_a_folder_of_files_the_lines_of_all_are_counted(tmp_path):
    for who in WORKERS:
        (tmp_path / f"{who}.jsonl").write_bytes(FILES["spans"].replace(b"s0", who.encode()))
    assert told(tmp_path, "spans")[-1] == (12, 12)


@pytest.mark.parametrize("total", [1, 99, 101, 12_345])
def test_progress_is_told_at_most_two_hundred_times_and_to_the_end(total):
    seen = []
    assert list(counted(range(total), lambda *so_far: seen.append(so_far))) == list(range(total))
    assert len(seen) <= 200
    assert seen == sorted(set(seen))
    assert seen[-1] == (total, total)


def test_nobody_need_be_told():
    Progress(None, 3).at(3)
    assert list(counted("ab", None)) == ["a", "b"]
