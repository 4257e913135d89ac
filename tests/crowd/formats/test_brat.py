"""brat's folders: a document per text, an item per line, a worker per folder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowd_strategies import folder_of, read_as
from goldspan.crowd import CrowdBuilder
from goldspan.crowd.formats import brat
from goldspan.crowd.losses import losses
from goldspan.errors import FormatError, InputError

ANN = {"alice__doc_txt": "Ann sang\n", "alice__doc_ann": "T1\tPER 0 3\tAnn\n"}
TEXT = "Ann Lee sang\nin 東京 😀 well\n\nlast\n"


def read(*, top: str = "folder", options: dict | None = None, **files):
    source = folder_of(**{f"{name}_DOT_{ending}": data for name, ending, data in _files(files)})
    return read_as(brat, replace(source, name=top), **(options or {}))


def _files(files):
    """`alice__doc_ann` is the file alice/doc.ann."""
    for name, data in files.items():
        stem, _, ending = name.rpartition("_")
        yield stem, ending, data


def message(**files) -> str:
    with pytest.raises(FormatError) as caught:
        read(**files)
    return str(caught.value)


def test_the_texts_stand_beside_the_annotations(tmp_path):
    files = {"doc_txt": TEXT, "alice__doc_ann": "T1\tPER 0 7\tAnn Lee\n", "bob__doc_ann": ""}
    brat.write(read(**files), tmp_path / "out")
    found = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_text(encoding="utf-8")
        for path in (tmp_path / "out").rglob("*.*")
    }
    assert found == {
        "doc.txt": TEXT,
        "alice/doc.txt": TEXT,
        "alice/doc.ann": "T1\tPER 0 7\tAnn Lee\n",
        "bob/doc.txt": TEXT,
        "bob/doc.ann": "",
    }


def test_names_that_are_no_file_names_are_written_with_percent_signs(tmp_path):
    builder = CrowdBuilder()
    item = builder.add_item("a/b-1", ["x"], group="a/b", text="x", token_start=[0])
    builder.add_answer(item, "..", ["B-big X"])
    crowd = builder.build()
    brat.write(crowd, tmp_path / "out")
    assert (tmp_path / "out" / "%2E%2E" / "a%2Fb.ann").read_text() == "T1\tbig_X 0 1\tx\n"
    lost = losses(crowd, "brat")
    assert lost[0] == "ids of 1 item: 'a/b-1' comes back as 'a%2Fb-1'"
    assert "1 worker: '..' is missing" in lost


def test_a_name_that_is_too_long_for_a_file_is_refused(tmp_path):
    builder = CrowdBuilder()
    item = builder.add_item("a", ["x"], group="a" * 300, text="x", token_start=[0])
    builder.add_answer(item, "w", ["O"])
    with pytest.raises(InputError, match=r"cannot write a+\.txt: File name too long"):
        brat.write(builder.build(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# Folders, documents and workers.


def test_every_line_is_an_item_and_every_folder_a_worker():
    crowd = read(
        doc_txt=TEXT,
        alice__doc_ann="T1\tPER 0 7\tAnn Lee\nT2\tLOC 16 18\t東京\n",
        bob__doc_ann="T7\tX 27 31\tlast\n",
    )
    assert crowd.item_ids.to_pylist() == ["doc-1", "doc-2", "doc-4"]
    assert set(crowd.groups.to_pylist()) == {"doc"}
    assert crowd.texts.to_pylist() == ["Ann Lee sang", "in 東京 😀 well", "last"]
    assert crowd.answers_of("doc-1") == {"alice": ["B-PER", "I-PER", "O"], "bob": ["O"] * 3}
    assert crowd.answers_of("doc-2")["alice"] == ["O", "B-LOC", "I-LOC", "O", "O"]
    assert crowd.answers_of("doc-4") == {"alice": ["O"], "bob": ["B-X"]}
    assert crowd.import_report.faults == ()


def test_texts_may_stand_beside_the_annotations():
    files = {"alice__a_txt": "Ann", "alice__a_ann": "", "bob__a_txt": "Ann", "bob__a_ann": ""}
    assert read(**files).answers_of("a-1") == {"alice": ["O"], "bob": ["O"]}
    text = message(**{**files, "bob__a_txt": "Bob"})
    assert text == (
        "folder/bob/a.txt: not the text that folder/alice/a.txt has: annotators must share a text"
    )


def test_a_flat_folder_has_one_worker_who_is_called_like_it():
    assert read(top="data/alice.v2", a_txt="Ann", a_ann="").worker_ids.to_pylist() == ["alice.v2"]
    assert read(top="alice.zip", a_txt="Ann", a_ann="").worker_ids.to_pylist() == ["alice"]


def test_the_annotations_of_gold_are_gold():
    crowd = read(a_txt="Ann", gold__a_ann="T1\tPER 0 3\tAnn\n", bob__a_ann="")
    assert crowd.tagged_by_id() == {"a-1": ["B-PER"]}
    assert crowd.worker_ids.to_pylist() == ["bob"]


def test_empty_files_beside_the_texts_are_no_answers_where_there_are_folders():
    crowd = read(a_txt="Ann", a_ann="", bob__a_ann="")
    assert crowd.worker_ids.to_pylist() == ["bob"]
    assert crowd.import_report.notes == ("1 empty .ann files in the top folder are not answers",)
    crowd = read(a_txt="Ann", a_ann="T1\tX 0 3\tAnn", bob__a_ann="")
    assert crowd.worker_ids.to_pylist() == ["folder", "bob"]


def test_documents_that_nobody_annotated_are_items():
    crowd = read(a_txt="Ann", b_txt="Bob", w__b_ann="")
    assert crowd.item_ids.to_pylist() == ["a-1", "b-1"]
    assert len(crowd.answers) == 1


# Annotations.


def test_other_annotations_are_counted_with_their_places():
    crowd = read(
        a_txt="Ann Lee",
        w__a_ann="T1\tPER 0 7\tAnn Lee\nR1\tx Arg1:T1 Arg2:T1\n#1\tAnnotatorNotes T1\thm\n"
        "A1\tSure T1\nE1\tX:T1\nN1\tReference T1 W:1\tx\n*\tEquiv T1 T1\n"
        "#2\tAnnotatorNotes T1\tso\n",
    )
    assert crowd.import_report.notes == (
        "1 attributes are not read (folder/w/a.ann line 4, worker w)",
        "1 events are not read (folder/w/a.ann line 5, worker w)",
        "1 normalisations are not read (folder/w/a.ann line 6, worker w)",
        "2 notes are not read (folder/w/a.ann line 3, worker w; folder/w/a.ann line 8, worker w)",
        (
            "2 relations are not read (folder/w/a.ann line 2, worker w; "
            "folder/w/a.ann line 7, worker w)"
        ),
    )
    assert crowd.import_report.faults == ()


def test_spans_of_several_pieces_or_lines_are_listed_and_counted():
    crowd = read(
        a_txt="Ann Lee\nsang\n",
        w__a_ann="T1\tX 0 3;8 12\tAnn sang\nT2\tY 4 12\tLee sang\nT3\tZ 3 4\t \n"
        "T4\tOK 8 13\tsang\n",
    )
    # Tokens of what is left out have no label
    assert crowd.answers_of("a-1") == {"w": [None, None]}
    assert crowd.answers_of("a-2") == {"w": ["B-OK"]}
    report = crowd.import_report
    assert report.reasons == {"of several pieces": 1, "crosses a line end": 1, "covers no token": 1}
    assert report.adds_up
    assert [(fault.line, fault.item, fault.worker) for fault in report.faults] == [
        (1, "a-1", "w"),
        (2, "a-1", "w"),
        (3, "a-1", "w"),
    ]


def test_cuts_and_overlaps_are_listed_with_file_and_line():
    files = {"a_txt": "x\nAnn Lee", "w__a_ann": "T1\tX 2 7\tAnn L\nT2\tY 2 5\tAnn\n"}
    crowd = read(**files, options={"overlapping": "longest"})
    assert crowd.tokens_list[1] == ["Ann", "L", "ee"]
    assert crowd.answers_of("a-2") == {"w": ["B-X", "I-X", "O"]}
    (overlap,) = map(str, crowd.import_report.faults)
    place = "folder/w/a.ann, item a-2 token 0, worker w: "
    assert overlap == f"{place}span Y [0, 3) overlaps span X [0, 5), which stays"


@pytest.mark.parametrize(
    ("offsets", "place"), [("codepoint", "2 5"), ("utf16", "3 6"), ("utf8", "5 8")]
)
def test_offsets_count_what_they_are_said_to_count(offsets, place):
    files = {"a_txt": "😀 Ann", "w__a_ann": f"T1\tPER {place}\tAnn\n"}
    crowd = read(**files, options={"offsets": offsets})
    assert crowd.answers_of("a-1") == {"w": ["O", "B-PER"]}
    other = "utf8" if offsets == "codepoint" else "codepoint"
    with pytest.raises(FormatError, match=f"with offsets='{offsets}' it fits: pass that"):
        read(**files, options={"offsets": other})


@pytest.mark.parametrize("counted", [True, False])
def test_byte_order_marks_and_windows_line_ends_are_counted_or_not(counted):
    data = b"\xef\xbb\xbfAnn\r\nBob sang\r\n"
    marks = ["T1\tPER 1 4\tAnn\r\nT2\tPER 6 9\tBob", "T1\tPER 0 3\tAnn\r\nT2\tPER 4 7\tBob"]
    crowd = read(a_txt=data, w__a_ann=marks[0 if counted else 1])
    assert crowd.texts.to_pylist() == ["Ann", "Bob sang"]
    assert crowd.answers_of("a-1") == {"w": ["B-PER"]}
    assert crowd.answers_of("a-2") == {"w": ["B-PER", "O"]}


def test_without_their_text_offsets_count_the_text_as_it_is_read():
    crowd = read(a_txt=b"Ann\r\nBob\r\n", w__a_ann="T1\tPER 4 7")
    assert crowd.answers_of("a-2") == {"w": ["B-PER"]}


def test_places_of_tokens_that_follow_from_the_text_are_no_loss():
    crowd = replace(read(**ANN), token_start=None)
    assert losses(crowd, "brat") == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("T1\tPER 0 3\tBob", 'span PER [0, 3) covers the string "Ann" in the text, but its own'),
        ("T1\tPER 0 99", "span PER [0, 99) is empty, outside the text"),
        ("T1\tPER 3 3", "is empty, outside the text"),
        ("T1\tPER 3 0", "is empty, outside the text"),
        ("T1\tPER -1 3\tAnn", "expected T1<TAB>TYPE START END<TAB>TEXT, found the string"),
        ("T1\tPER 0.0 3\tAnn", "expected T1<TAB>"),
        ("T1\tPER 0\tAnn", "expected T1<TAB>"),
        ("T1\tPER 0 1 2\tAnn", "expected T1<TAB>"),
        ("T1\tPER ٠ ٣\tAnn", "expected T1<TAB>"),
        ("T1\tPER 0 3;\tAnn", "expected T1<TAB>"),
        ("T1\t 0 3\tAnn", "expected T1<TAB>"),
        ("T1 PER 0 3 Ann", "expected T1<TAB>"),
        ("PER\tPER 0 3\tAnn", "expected T1<TAB>"),
        ("\tPER 0 3\tAnn", "expected T1<TAB>"),
        ("T0\tX 0 3\tAnn", "id 'T0' appears twice"),
        ("T1\tPER 0 " + "9" * 5000 + "\tAnn", "expected T1<TAB>"),
    ],
)
def test_a_wrong_line_is_refused_with_its_place(line, said):
    text = message(a_txt="Ann", w__a_ann=f"T0\tX 0 3\tAnn\n{line}\n")
    assert text.replace(", item a-1", "").startswith("folder/w/a.ann line 2, worker w: ")
    assert said in text
    assert len(text) < 300


def test_what_is_missing_is_said():
    assert "no .ann file in the folder" in message(a_txt="Ann")
    assert "no text for it: w/b.txt is neither beside it nor" in message(a_txt="Ann", w__b_ann="")
    assert "the file is empty" in message(a_txt="", w__a_ann="")
    with pytest.raises(FormatError, match=r"no \.ann file"):
        read_as(brat, b"T1\tPER 0 3\tAnn")


def test_a_line_without_a_token_is_refused_with_its_own_line():
    text = message(d_txt="Ann\n\u200b\n", a__d_ann="")
    assert "d.txt line 2, item d-2: the text has no token" in text


def test_other_ann_files_are_not_claimed():
    assert not brat.sniff(folder_of(a_DOT_ann="just words"))
    assert brat.sniff(folder_of(a_DOT_txt="x", a_DOT_ann=""))


def test_items_without_answers_are_lost_with_the_whole_folder():
    crowd = read(**ANN)
    bare = replace(crowd, answers=crowd.answers.take(np.zeros(1, np.bool_)))
    (lost,) = losses(bare, "brat")
    assert lost.startswith("everything: the file is rejected when it is read back (no .ann file")


def test_pieces_that_only_white_space_separates_are_one_span():
    crowd = read(a_txt="Sea of Ice", w__a_ann="T1\tX 0 3;4 6;7 10\tSea of Ice\n")
    assert crowd.answers_of("a-1") == {"w": ["B-X", "I-X", "I-X"]}
    assert crowd.import_report.faults == ()


def test_a_place_outside_the_text_of_one_annotator_leaves_that_answer_out():
    files = {f"w{n}__a_ann": "T1\tX 0 3\tSea\n" for n in range(3)}
    files["w1__a_ann"] += "T2\tX 4 99\tIce\n"
    crowd = read(a_txt="Sea Ice", **files)
    assert crowd.answers_of("a-1") == {"w0": ["B-X", "O"], "w2": ["B-X", "O"]}
    (fault,) = crowd.import_report.faults
    assert (fault.line, fault.item, fault.worker) == (2, "a-1", "w1")
    assert "this answer is left out until it is fixed" in str(fault)
