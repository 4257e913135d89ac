"""Folders of CoNLL files: which file is whose, how dirty answers are placed, what comes back."""

from __future__ import annotations

import zipfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from crowd_tables import assert_holds, assert_same, crowd_of, refusal, small, tree, written, zipped
from goldspan.cli import main
from goldspan.crowd import write_crowd
from goldspan.errors import GoldspanError, InputError

FILES = {
    "gold/d1.txt": "Ann B-PER\nsang O\n\nParis B-LOC\n",
    "gold/d2.txt": "it O\n",
    "answers/A1/d1.txt": "Ann B-PER\nsang O\n\nParis B-PER\n",
    "answers/A2/d1.txt": "Ann O\nsang O\n\nParis B-LOC\n",
    "answers/A2/d2.txt": "it B-MISC\n",
}
DIRTY = {
    "gold/d.txt": "Africans B-MISC\nsang O\n\nParis B-LOC\n",
    "answers/A/d.txt": "Africa B-MISC\nns O\nsang/LOC O\n\n B-LOC\nParis B-LOC\n",
}


def read(files, **options):
    return goldspan.read_crowd(zipped(files), format="folder", **options)


# What is read


def test_every_file_finds_its_worker_and_document():
    crowd = read(FILES)
    assert crowd.item_ids.to_pylist() == ["d1-1", "d1-2", "d2-1"]
    assert crowd.groups.to_pylist() == ["d1", "d1", "d2"]
    assert crowd.tokens_list == [["Ann", "sang"], ["Paris"], ["it"]]
    assert crowd.worker_ids.to_pylist() == ["A1", "A2"]
    assert crowd.answers_of("d1-2") == {"A1": ["B-PER"], "A2": ["B-LOC"]}
    assert crowd.answers_of("d2-1") == {"A2": ["B-MISC"]}
    assert crowd.tagged_by_id() == {"d1-1": ["B-PER", "O"], "d1-2": ["B-LOC"], "d2-1": ["O"]}


def test_the_word_answers_may_be_left_out():
    shorter = {name.replace("answers/", ""): text for name, text in FILES.items()}
    assert_same(read(shorter), read(FILES))


@pytest.mark.parametrize("name", ["truth", "Gold", "GOLD"])
def test_the_gold_may_have_another_name(name):
    assert_same(
        read({path.replace("gold/", f"{name}/"): text for path, text in FILES.items()}), read(FILES)
    )


def test_tabs_and_blanks_separate_and_comments_are_passed_over():
    others = {
        name: "# id = 1\n-DOCSTART- O\n" + text.replace(" ", "\t") for name, text in FILES.items()
    }
    assert_same(read(others), read(FILES))


@pytest.mark.parametrize("head", ["", " # webanno.custom.Food | kind\n"])
def test_old_versions_of_webanno_are_refused(head):
    data = f"{head}#id=1\n#text=Ann sang\n1-1\tAnn\tB-PER\n1-2\tsang\tO\n"
    for name in ("d.txt", "d.tsv"):
        refusal(zipped({f"ann/{name}": data}), "export as WebAnno TSV 3.3")
    refusal(data.encode(), "export as WebAnno TSV 3.3")


def test_what_lies_above_becomes_an_attribute():
    files = {"val/gold/d.txt": "x O\n", "val/answers/A/d.txt": "x O\n", "test/gold/e.txt": "y O\n"}
    assert read(files).attributes.to_pydict() == {"part": ["val", "test"]}


def test_a_document_in_two_parts_is_two_documents():
    files = {"val/gold/d.txt": "x O\n", "test/gold/d.txt": "y O\n"}
    assert read(files).item_ids.to_pylist() == ["test/d-1", "val/d-1"]


def test_without_gold_the_tokens_that_most_workers_show_are_the_reference():
    files = {"A/d.txt": "x O\ny O\n", "B/d.txt": "x O\ny B-X\n", "C/d.txt": "xy O\n"}
    crowd = read(files)
    assert crowd.gold is None
    assert crowd.tokens_list == [["x", "y"]]
    assert crowd.answers_of("d-1") == {"A": ["O", "O"], "B": ["O", "B-X"]}


def test_a_line_without_a_label_is_a_skipped_token():
    files = {"gold/d.txt": "x O\ny O\n", "A/d.txt": "x O\ny\n"}
    crowd = read(files)
    assert crowd.answers_of("d-1") == {"A": ["O", None]}
    assert "1 lines have no label" in crowd.import_report.notes


def test_a_sentence_in_which_all_is_skipped_is_no_answer():
    files = {"gold/d.txt": "x O\n\ny O\n", "A/d.txt": "x O\n\ny\n"}
    assert len(read(files).answers) == 1


def test_the_report_says_what_was_found():
    report = read(
        {**FILES, "gold/d3.txt": "x O\n", "README.txt": "hello", "A1/d1.json": "{}"}
    ).import_report
    assert report.notes[0].startswith("3 documents, 3 answer files, 0 of them with other tokens")
    assert "2 other files were not read: A1/d1.json, README.txt" in report.notes
    assert "1 documents have gold but no answer" in report.notes
    assert (report.n_labels, report.n_placed) == (7, 7)


def test_without_gold_what_workers_cut_and_glued_is_undone_and_the_report_says_so():
    cut = "the O\nRussia B-LOC\nn O\narmy/LOC O\n"
    crowd = read({"A/d.txt": cut, "B/d.txt": cut, "C/d.txt": "the O\nRussian O\narmy O\n"})
    assert crowd.tokens_list == [["the", "Russian", "army"]]
    assert crowd.answers_of("d-1")["A"] == ["O", None, "O"]
    assert crowd.import_report.kinds == {"cut-token": 4, "glued-suffix": 2}
    assert crowd.import_report.adds_up
    assert any(
        note.startswith("the answers to 1 documents differ in their tokens")
        for note in crowd.import_report.notes
    )
    assert len(read({"A/d.txt": cut, "B/d.txt": cut}).import_report.notes) == 1


# Texts from a second folder


BARE = {name: text for name, text in FILES.items() if not name.startswith("gold")}
TEXTS = {"d1.txt": "Ann\nsang\n\nParis\n", "some/where/d2.txt": "it\n"}


def test_texts_give_the_tokens(tmp_path):
    files = {"A/d1.txt": "An O\nn B-PER\nsang O\n", "A/d2.txt": "it/LOC O\n"}
    for texts in (zipped(TEXTS), tree(tmp_path, TEXTS), str(tmp_path)):
        crowd = read(files, texts=texts, altered="keep")
        assert crowd.tokens_list == [["Ann", "sang"], ["Paris"], ["it"]]
        assert crowd.answers_of("d1-1") == {"A": ["B-PER", "O"]}
        assert crowd.groups.to_pylist() == ["d1", "d1", "d2"]
        assert crowd.gold is None
        assert crowd.import_report.notes[0].startswith("texts of 2 documents from ")
        assert crowd.import_report.adds_up


def test_texts_like_the_gold_change_nothing_and_those_of_the_answers_only_the_report():
    assert_same(read(FILES, texts=zipped(TEXTS)), read(FILES))
    bare = read(BARE)
    assert_same(read(BARE, texts=zipped(TEXTS)), bare)


def test_documents_without_text_and_texts_without_document_are_named():
    texts = {"d2.txt": "it\n", "d7.txt": "x\n"}
    crowd = read(BARE, texts=zipped(texts))
    assert crowd.tokens_list == [["Ann", "sang"], ["Paris"], ["it"]]
    assert "1 documents have no text there: d1" in crowd.import_report.notes
    assert "1 texts are of no document: d7.txt" in crowd.import_report.notes


def test_documents_of_one_name_have_the_texts_of_their_parts():
    files = {"val/A/d.txt": "x O\n", "test/A/d.txt": "y O\n", "test/A/e.txt": "z O\n"}
    texts = {"val/d.txt": "x\n", "test/d.txt": "yy\n", "e.txt": "zz\n"}
    crowd = read(files, texts=zipped(texts))
    assert crowd.item_ids.to_pylist() == ["test/d-1", "val/d-1", "e-1"]
    assert crowd.tokens_list == [["yy"], ["x"], ["zz"]]
    with pytest.raises(
        GoldspanError, match=r"document e has several texts \(a/e.txt and b/e.txt\)"
    ):
        read(files, texts=zipped({"a/e.txt": "z\n", "b/e.txt": "z\n"}))
    with pytest.raises(GoldspanError, match=r"several texts \(test/e.conll and test/e.txt\)"):
        read(files, texts=zipped({"test/e.txt": "z\n", "test/e.conll": "z\n"}))


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("Ann\nsang loudly\n", 2, "'sang loudly'"),
        ("Ann\nsang\tO\n", 2, "'sang O'"),
        ("She sang in Paris.\n", 1, "running text is not read"),
        ("# only a comment here\n", 0, "the file holds no token"),
        (" \n", 0, "the file is empty"),
    ],
)
def test_a_text_that_is_not_a_token_per_line_is_refused_with_its_line(text, line, what):
    with pytest.raises(GoldspanError) as error:
        read(BARE, texts=zipped({"d1.txt": text}))
    (fault,) = error.value.faults
    assert (fault.file, fault.line) == ("<bytes>/d1.txt", line)
    assert what in fault.message


def test_a_token_with_a_blank_in_it_stands_before_a_tab():
    crowd = read({"A/d.txt": "New York\tB-LOC\n"}, texts=zipped({"d.txt": "New York\t\n"}))
    assert crowd.tokens_list == [["New York"]]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("Ann\nsings\n\nParis\n", 2, "the gold has 'sang' where"),
        ("Ann\nsang\nParis\n", 3, "the gold has '(end of sentence)' where"),
        ("Ann\nsang\n\nParis\n.\n", 5, "has '.': both must show the same"),
        ("Ann\nsang\n", 4, "has 'nothing more'"),
    ],
)
def test_gold_that_does_not_fit_its_text_is_refused_with_its_line(text, line, what):
    with pytest.raises(GoldspanError) as error:
        read(FILES, texts=zipped({"d1.txt": text}))
    (fault,) = error.value.faults
    assert (fault.file, fault.line, fault.kind) == ("<bytes>/gold/d1.txt", line, "tokens")
    assert what in fault.message


def test_gold_of_a_second_source_must_fit_the_texts_too(tmp_path):
    gold = tree(tmp_path, {"gold/d1.txt": FILES["gold/d1.txt"], "gold/d2.txt": "it O\n"})
    assert_same(read(BARE, texts=zipped(TEXTS), gold=gold), read(BARE, gold=gold))
    with pytest.raises(GoldspanError, match="item d2-1 token 0"):
        read(BARE, texts=zipped({"d2.txt": "bit\n"}), gold=gold)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (b"token\tann\nParis\tO\n", "of the format 'wide'"),
        ([{"item": "1", "worker": "a", "label": "x"}], "a Table"),
    ],
)
def test_texts_are_refused_where_the_answers_have_their_own(source, what):
    with pytest.raises(InputError, match=f"^texts is for answers of .*{what}"):
        goldspan.read_crowd(source, texts=zipped(TEXTS))


def test_texts_of_one_file_are_refused(tmp_path):
    (tmp_path / "d1.txt").write_text("Ann\n")
    with pytest.raises(InputError, match=r"texts must be a folder or a .zip"):
        read(BARE, texts=tmp_path / "d1.txt")


def test_the_command_reads_texts(tmp_path, monkeypatch):
    answers = tree(tmp_path / "crowd", {"A/d1.txt": "An O\nn O\n", "B/d1.txt": "Ann B-PER\n"})
    texts = tree(tmp_path / "texts", {"d1.txt": "Ann\n", "d2.txt": "x\n"})
    out = tmp_path / "out.tsv"
    words = ("convert", answers, "--texts", texts, "-o", out)
    monkeypatch.setattr("sys.argv", ["goldspan", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in {0, None}
    assert goldspan.read_crowd(out).tokens_list == [["Ann"]]


def test_progress_is_told_per_document():
    seen = []
    read(FILES, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


# Dirty answers


@pytest.mark.parametrize(
    ("altered", "first", "second"),
    [
        ("missing", {"A": [None, "O"]}, {"A": ["B-LOC"]}),
        ("keep", {"A": ["B-MISC", "O"]}, {"A": ["B-LOC"]}),
        ("drop-sentence", {}, {"A": ["B-LOC"]}),
    ],
)
def test_the_rule_for_altered_tokens_decides_what_counts(altered, first, second):
    crowd = read(DIRTY, altered=altered)
    assert crowd.answers_of("d-1") == first
    assert crowd.answers_of("d-2") == second


@pytest.mark.parametrize("altered", ["missing", "keep", "drop-sentence"])
def test_every_label_is_placed_or_has_a_reason(altered):
    report = read(DIRTY, altered=altered).import_report
    assert report.n_labels == 5
    assert report.adds_up
    assert sum(report.reasons.values()) == report.n_labels - report.n_placed > 0


def test_every_fault_says_where_it_is():
    archive = zipped(DIRTY)
    report = goldspan.read_crowd(archive, format="folder").import_report
    found = [(f.file, f.line, f.item, f.token, f.worker, f.kind) for f in report.faults]
    file = "<bytes>/answers/A/d.txt"
    assert found == [
        (file, 1, "d-1", 0, "A", "cut-token"),
        (file, 2, "d-1", 0, "A", "cut-token"),
        (file, 3, "d-1", 1, "A", "glued-suffix"),
        (file, 5, "d-2", -1, "A", "empty-token"),
    ]
    assert "seen 'Africa' B-MISC; the reference has 'Africans'" in str(report.faults[0])


def test_strict_refuses_dirty_answers_with_every_fault():
    message = refusal(
        zipped(DIRTY),
        "answers/A/d.txt line 1, item d-1 token 0, worker A: the line holds a part",
        strict=True,
    )
    assert len(message.splitlines()) == 4


# What is refused


def test_a_label_that_is_no_tag_is_refused_with_file_line_item_token_and_worker():
    files = {**FILES, "answers/A1/d1.txt": "Ann B-PER\nsang X-Y\n\nParis O\n"}
    refusal(
        zipped(files),
        "<bytes>/answers/A1/d1.txt line 2, item d1-1 token 1, worker A1: tag 'X-Y' is not in BIO",
        "--label OLD=NEW",
        encoding="BIO",
    )


def test_a_gold_label_that_is_no_tag_is_refused_with_its_line():
    files = {**FILES, "gold/d1.txt": "Ann B-PER\nsang X-Y\n\nParis O\n"}
    refusal(
        zipped(files),
        "<bytes>/gold/d1.txt line 2, item d1-1 token 1, worker gold: tag 'X-Y'",
        encoding="BIO",
    )


def test_a_worker_with_two_files_for_a_document_is_refused_with_both():
    files = {**FILES, "answers/A1/d1.conll": "x O\n"}
    refusal(
        zipped(files),
        "<bytes>/answers/A1/d1.txt, worker A1: the worker has two files for document d1",
        "<bytes>/answers/A1/d1.conll",
        "keep one",
    )


def test_a_document_with_two_gold_files_is_refused_with_both():
    files = {**FILES, "truth/d1.txt": "x O\n"}
    refusal(
        zipped(files), "<bytes>/truth/d1.txt: document d1 has two gold files (<bytes>/gold/d1.txt)"
    )


def test_gold_with_a_label_without_a_token_is_refused():
    files = {**FILES, "gold/d2.txt": "it O\n O\n"}
    refusal(zipped(files), "<bytes>/gold/d2.txt line 2: the gold has a label without a token")


def test_a_folder_without_files_of_workers_is_refused(tmp_path):
    refusal(
        tree(tmp_path, {"a.txt": "x O\n"}),
        f"{tmp_path}: the folder holds no <worker>/<document>.txt",
        format="folder",
    )


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "the file is empty"),
        (b"x\0 O\n", "a NUL byte"),
        (b"x O\n\xff\x81\n", "neither UTF-8 nor cp1252"),
    ],
)
def test_a_file_that_is_no_text_is_refused_by_its_name(tmp_path, data, what):
    path = tree(tmp_path, {**FILES, "answers/A1/d2.txt": data})
    refusal(path, f"{path}/answers/A1/d2.txt", what)


# What comes back


def document(**changes):
    """Make a crowd as a folder holds it."""
    return small(**{"item": "d-1", "group": "d", "gold": ["B-X", "I-X"], **changes})


def test_an_answer_to_the_second_of_two_equal_sentences_stays_there():
    crowd = crowd_of([{"v": ["O"]}, {"v": ["B-X"], "w": ["O"]}], groups=["d", "d"])
    crowd = replace(crowd, item_ids=pa.array(["d-1", "d-2"]))
    assert_holds(crowd, "folder")


def test_files_lie_where_the_architecture_says():
    with written(document(), "folder") as (path, _):
        files = {str(p.relative_to(path)): p.read_text() for p in path.rglob("*.txt")}
        assert files == {"gold/d.txt": "x\tB-X\ny\tI-X\n", "answers/w/d.txt": "x\tB-X\ny\tI-X\n"}


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "a\\b", "..", ".hidden", "", "x" * 201, "a\nb", "a\0b"]
)
def test_ids_that_cannot_be_names_of_files_are_refused_and_nothing_is_left(tmp_path, name):
    for crowd in (document(worker=name), document(group=name, item=f"{name}-1")):
        with pytest.raises(
            InputError, match="cannot be the name of a file, as the ids of workers"
        ) as caught:
            write_crowd(crowd, tmp_path / "out", format="folder")
        assert repr(name) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# The real answers


@pytest.fixture(scope="module")
def raw(data):
    """The answers as the workers left them, read from the archive."""
    return goldspan.read_crowd(data / "ner_mturk" / "raw.zip", altered="drop-sentence")


@pytest.mark.realdata
def test_the_raw_answers_have_the_numbers_of_their_page(raw):
    assert (raw.n_items, raw.n_tokens, raw.n_workers) == (6253, 82958, 47)
    assert len(set(raw.groups.to_pylist())) == 399
    notes = raw.import_report.notes
    assert notes[0].startswith("399 documents, 1964 answer files, 1158 of them with other tokens")
    assert notes[1] == "1 documents have gold but no answer"


@pytest.mark.realdata
def test_the_raw_answers_without_altered_sentences_are_the_crowd_of_paper_000(raw, data):
    crowd = goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz")
    answered = raw.select_items(np.unique(raw.latest.item))
    assert answered.groups.to_pylist() == crowd.groups.to_pylist()
    assert answered.offsets.tolist() == crowd.offsets.tolist()
    tokens = zip(
        answered.tokens.flatten().to_pylist(), crowd.tokens.flatten().to_pylist(), strict=True
    )
    different = [(one, other) for one, other in tokens if one != other]
    # What differs is the gold's own glue, which their makers took off, and the report says where.
    assert all(one.startswith(f"{other}/") for one, other in different)
    assert 0 < len(different) <= raw.import_report.kinds["glued-reference"]
    same = {"item_ids": answered.item_ids, "tokens": answered.tokens, "gold": None}
    assert_same(replace(answered, attributes=None, gold=None), replace(crowd, **same))


@pytest.fixture(scope="module")
def unpacked(data, tmp_path_factory):
    """The folder of the archive."""
    folder = tmp_path_factory.mktemp("raw")
    with zipfile.ZipFile(data / "ner_mturk" / "raw.zip") as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def lenient(unpacked):
    """The same answers, read from the folder; only labels of altered tokens are missing."""
    return goldspan.read_crowd(unpacked)


@pytest.mark.realdata
def test_the_unpacked_folder_gives_every_label_a_place_or_a_fault(raw, unpacked, lenient):
    report = lenient.import_report
    assert report.format == "folder"
    assert report.adds_up
    assert report.n_labels == raw.import_report.n_labels == 409_366
    assert (report.n_placed, raw.import_report.n_placed) == (404_006, 366_370)
    assert lenient.tokens == raw.tokens
    assert lenient.gold.tolist() == raw.gold.tolist()
    assert all(f.file.startswith(str(unpacked)) and f.line and f.worker for f in report.faults)
    whole = {"glued-suffix", "glued-reference"}
    lost = {(fault.file, fault.line) for fault in report.faults if fault.kind not in whole}
    assert len(lost) == sum(report.reasons.values()) == report.n_labels - report.n_placed == 5360
    assert report.kinds == raw.import_report.kinds == KINDS


KINDS = {
    "cut-token": 4018,
    "glued-suffix": 2838,
    "empty-token": 1230,
    "label-as-token": 74,
    "glued-reference": 37,
    "mangled-glue": 31,
    "replaced-token": 7,
}
ONLY_OURS = {
    # An empty line in the place of a `/`.
    *("A32 D184-16", "A32 D184-18", "A32 D329-21", "A33 D072-1", "A37 D341-10"),
    # Glued labels, cut: `/B-MI` `SC`, and `/B` `-` `/B` `-` `MISC` `LOC`.
    *(f"A26 D152-{n}" for n in (2, 3, 4, 5)),
    *(f"A34 D214-{n}" for n in (7, 10, 11)),
    *(f"A36 D214-{n}" for n in (8, 9, 10, 11)),
    *(f"A36 D062-{n}" for n in (5, 7)),
    # A glued label of the gold, cut: `County/` `B-MISC`.
    *("A20 D299-4", "A45 D299-4"),
}


@pytest.mark.realdata
def test_keeping_labels_gives_the_labels_of_the_makers_and_twenty_answers_more(data):
    """The makers left out answers of other letters than the gold, glued suffixes aside."""
    folder = data / "ner_mturk"
    crowd = goldspan.read_crowd(folder / "raw.zip", altered="keep")
    crowd = crowd.select_items(np.array([group != "D399" for group in crowd.groups.to_pylist()]))
    ours, theirs = (
        {
            f"{who} {crowd.item_ids[n].as_py()}": tags
            for n in range(crowd.n_items)
            for who, tags in answered.answers_of(n).items()
        }
        for answered in (crowd, goldspan.read_crowd(folder / "crowd_6056.tsv.gz"))
    )
    assert ours.keys() - theirs.keys() == ONLY_OURS
    assert {key: ours[key] for key in theirs} == theirs
    assert crowd.import_report.n_placed == 406_005
