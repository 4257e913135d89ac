"""Several choices in one cell of a table of single labels, and lists in cells."""

from __future__ import annotations

import pandas as pd
import pytest

from goldspan.crowd import read_crowd
from goldspan.crowd.labels import choices_in
from goldspan.errors import FormatError


def table(*labels, **options):
    """Read a table of one answer per label, each of a worker of its own."""
    cells = (label.replace('"', '""') for label in labels)
    rows = "".join(f'1,w{n},"{cell}"\n' for n, cell in enumerate(cells))
    return read_crowd(f"item,worker,label\n{rows}".encode(), **options)


@pytest.mark.parametrize(
    "cell",
    [
        "hot|mild",
        "hot\nmild",
        "hot#mild",
        "['hot', 'mild']",
        '["hot","mild"]',
        "['hot' 'mild']",
        "[]",
    ],
)
def test_several_choices_are_listed_and_left_out(cell):
    crowd = table("hot", cell, "mild")
    assert crowd.answers_of("1") == {"w0": ["hot"], "w2": ["mild"]}
    kind = "no choice" if cell == "[]" else "several choices"
    assert crowd.import_report.reasons == {kind: 1}
    assert crowd.import_report.adds_up
    (fault,) = crowd.import_report.faults
    assert (fault.item, fault.worker, fault.kind) == ("1", "w1", kind)
    kept = table("hot", cell, labels={cell: cell})
    assert kept.answers_of("1")["w1"] == [cell]
    with pytest.raises(FormatError, match="but a single label is needed"):
        table("hot", cell, strict=True)


def test_a_list_of_one_is_that_label():
    assert table("['hot']", '["mild"]', "[3]", labels={"mild": "soft"}).tagset.tags == (
        "3",
        "hot",
        "soft",
    )


@pytest.mark.parametrize("sign", [", ", ";"])
def test_a_sign_that_labels_may_have_needs_evidence(sign):
    two, turned = sign.join(["hot", "mild"]), sign.join(["mild", "hot"])
    assert table(two, "other").import_report.faults == ()
    both = table(two, turned, several="leave-out")
    assert both.import_report.reasons == {"several choices": 2}
    assert table(two, "hot", "mild").import_report.reasons == {"several choices": 1}
    # What one cell shows of a sign holds for all
    third = sign.join(["sour", "sweet"])
    listed = table(two, "hot", "mild", third, several="leave-out")
    assert listed.import_report.reasons == {"several choices": 2}


def test_labels_that_only_look_like_lists_are_labels():
    labels = ["C#", "#1", "part #2", "|", "[other]", "[0, x]", "a b", "no, never", "I/O"]
    assert choices_in(labels) == {}


def test_gold_and_columns_of_annotators_have_choices_too():
    gold = read_crowd(b"item,label\n1,hot|mild\n2,hot\n")
    assert gold.tagged_by_id() == {"1": [None], "2": ["hot"]}
    assert [fault.worker for fault in gold.import_report.faults] == ["gold"]
    wide = b"item,text,ann,bob,gold\n1,a soup,hot,hot|mild,hot\n2,a tea,mild,mild,mild|hot\n"
    options = {"columns": {"item": "item", "gold": "gold"}, "workers": ["ann", "bob"]}
    crowd = read_crowd(wide, format="wide", **options)
    assert crowd.answers_of("1") == {"ann": ["hot"]}
    assert crowd.tagged_by_id() == {"1": ["hot"], "2": [None]}
    assert sorted(fault.worker for fault in crowd.import_report.faults) == ["bob", "gold"]


def test_answers_of_mechanical_turk_have_choices_too():
    head = "HITId,AssignmentId,WorkerId,Input.text,Answer.taste\n"
    crowd = read_crowd(f"{head}H,A,w,a soup,hot|mild\nH,B,v,a soup,hot\n".encode())
    assert crowd.answers_of("H") == {"v": ["hot"]}
    assert crowd.import_report.reasons == {"several choices": 1}


@pytest.mark.parametrize(
    ("head", "cells"),
    [
        ("id,tokens,ner_tags", ["0", "['Ada', 'swam']", "[1, 0]"]),
        ("text,labels,annotator", ["Ada swam", "['PER', 'O']", "ann"]),
        ("id,text,entities", ["7", "Ada swam", "[(0, 3, 'PER')]"]),
        ("id,text,spans", ["7", "Ada swam", "[{'start': 0}]"]),
    ],
)
def test_lists_of_tokens_tags_and_spans_in_cells_are_refused(head, cells):
    columns = head.split(",")
    frame = pd.DataFrame([cells, cells], columns=columns)
    for source in (frame.to_csv(index=False).encode(), frame):
        with pytest.raises(FormatError, match="write the data as Parquet or as JSON lines"):
            read_crowd(source)
