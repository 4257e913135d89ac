"""Wide tables: what is read, what is refused and where, and what comes back."""

from __future__ import annotations

import gzip
import tracemalloc

import pyarrow as pa
import pytest

import goldspan
from crowd_tables import assert_loses, faults_of, refusal, small, written
from goldspan.crowd.formats import wide
from goldspan.spans import find_spans

TABLE = (
    "doc\tsent\ttoken\tgold\tA1\tA2\n"
    "D1\t1\tAnn\tB-PER\tB-PER\t?\n"
    "D1\t1\tsang\tO\tO\t?\n"
    "\n"
    "D1\t2\tParis\tB-LOC\t?\tB-LOC\n"
    "D2\t1\tit\tO\tB-PER\tO\n"
)
SHEET = 'token;gold;A1;A2\r\n"Ann";B-PER;B-PER;NA\r\nsang;O;O;\r\n;;;\r\nParis;B-LOC;;B-LOC\r\n'


def read(text, **options):
    data = text.encode() if isinstance(text, str) else text
    return goldspan.read_crowd(data, format="wide", **options)


def table(*lines):
    return "".join("\t".join(line.split()) + "\n" for line in lines)


# What is read


def test_every_cell_of_a_table_finds_its_place():
    crowd = read(TABLE)
    assert crowd.item_ids.to_pylist() == ["D1-1", "D1-2", "D2-1"]
    assert crowd.groups.to_pylist() == ["D1", "D1", "D2"]
    assert crowd.tokens_list == [["Ann", "sang"], ["Paris"], ["it"]]
    assert crowd.worker_ids.to_pylist() == ["A1", "A2"]
    assert crowd.tagged_by_id() == {"D1-1": ["B-PER", "O"], "D1-2": ["B-LOC"], "D2-1": ["O"]}
    assert crowd.answers_of("D1-1") == {"A1": ["B-PER", "O"]}
    assert crowd.answers_of("D1-2") == {"A2": ["B-LOC"]}
    assert crowd.answers_of("D2-1") == {"A1": ["B-PER"], "A2": ["O"]}
    assert crowd.tagset.tags == ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")


def test_a_token_that_a_worker_skipped_is_a_question_mark_in_the_answer():
    crowd = read(table("token A", "x B-PER", "y ?", "z O"))
    assert crowd.answers_of("1") == {"A": ["B-PER", None, "O"]}


def test_a_gold_cell_may_be_unknown():
    assert read(table("token gold A", "x ? O", "y O O")).tagged_by_id() == {"1": [None, "O"]}


def test_blank_lines_part_items_without_ids():
    crowd = read("token\tA\nx\tO\n\n\n\ny\tO\nz\tO\n")
    assert crowd.item_ids.to_pylist() == ["1", "2"]
    assert crowd.tokens_list == [["x"], ["y", "z"]]


def test_items_of_a_document_without_numbers_are_counted_within_it():
    crowd = read("doc\ttoken\tA\nD\tx\tO\n\nD\ty\tO\n\nE\tz\tO\n\nD\tw\tO\n")
    assert crowd.item_ids.to_pylist() == ["D-1", "D-2", "E-1", "D-3"]


def test_a_column_of_items_names_them():
    crowd = read(table("item token A", "a x O", "a y O", "b z O"))
    assert crowd.item_ids.to_pylist() == ["a", "b"]
    assert crowd.groups is None


def test_a_new_sentence_starts_a_new_item_without_a_blank_line():
    crowd = read(table("sent token A", "1 x O", "2 y O"))
    assert crowd.tokens_list == [["x"], ["y"]]


def test_other_columns_before_the_workers_are_attributes():
    crowd = read(table("split pos token gold A", "val NN x O O", "val VB y O O"))
    assert crowd.attributes.to_pydict() == {"split": ["val"], "pos": [["NN", "VB"]]}


def test_lines_that_start_with_a_hash_and_a_blank_are_comments():
    crowd = read("# made by hand\ntoken\tA\nx\tO\n# another\n\ny\tO\n#\tO\n# \tO\n")
    assert crowd.tokens_list == [["x"], ["y", "#", "# "]]


def test_a_comment_does_not_part_items():
    assert read("token\tA\nx\tO\n# a word\ny\tO\n").tokens_list == [["x", "y"]]


def test_a_spreadsheet_export_is_read():
    crowd = read(SHEET)
    assert crowd.tokens_list == [["Ann", "sang"], ["Paris"]]
    assert crowd.answers_of("1") == {"A1": ["B-PER", "O"]}
    assert crowd.answers_of("2") == {"A2": ["B-LOC"]}
    line_ends, delimiter, missing = crowd.import_report.notes
    assert line_ends == "line ends replaced (they were not line feeds)"
    assert delimiter == "cells are separated by ';'"
    assert "1 cell 'NA' means no label" in missing


def test_labels_are_renamed_with_and_without_a_prefix():
    crowd = read(
        table("token A", "x B-person", "y person", "z O"),
        labels={"person": "PER", "O": ""},
        encoding="PLAIN",
    )
    assert crowd.answers_of("1") == {"A": ["B-PER", "PER", None]}


def test_columns_can_be_named():
    crowd = read(
        table("Satz Wort wahr A", "7 x B-PER O"),
        columns={"token": "Wort", "gold": "wahr", "item": "Satz"},
    )
    assert crowd.tokens_list == [["x"]]
    assert crowd.tagged_by_id() == {"7": ["B-PER"]}
    assert crowd.worker_ids.to_pylist() == ["A"]


def test_worker_columns_can_be_named_and_come_in_that_order():
    crowd = read(table("token gold A B C", "x O O ? B-X"), workers=["C", "A"])
    assert crowd.worker_ids.to_pylist() == ["C", "A"]
    assert crowd.answers_of("1") == {"C": ["B-X"], "A": ["O"]}


def test_a_worker_column_without_any_label_is_kept_and_said():
    crowd = read(table("token A B", "x O ?", "y O ?"))
    assert crowd.worker_ids.to_pylist() == ["A", "B"]
    assert len(crowd.answers) == 1
    assert crowd.import_report.notes == ("1 workers answered nothing: B",)


def test_workers_in_front_of_the_gold_are_missed_and_the_report_says_how_to_name_them():
    crowd = read(table("token A B gold", "x O O O"))
    assert crowd.n_workers == 0
    assert any("name others with workers=" in note for note in crowd.import_report.notes)


def test_the_encoding_is_seen():
    assert read(table("token A", "x B-PER", "y L-PER")).tagset.encoding == "BILOU"
    assert read(table("token A", "x I-PER", "y I-PER")).tagset.encoding == "IOB"
    assert read(table("token A", "x I-PER", "y I-PER"), encoding="BIO").tagset.encoding == "BIO"
    assert read(table("token A", "x NOUN", "y VERB")).tagset.encoding == "PLAIN"


@pytest.mark.parametrize(
    "header", ["token\tA", "doc\tsent\ttoken\tgold\tA", "Word,gold,w1", '"token";"A"', "Token;A;B"]
)
def test_a_header_with_a_token_and_more_behind_it_is_seen_as_wide(header):
    from goldspan.crowd.detection import guess_format
    from goldspan.crowd.source import open_source

    assert guess_format(open_source(f"# a comment\n{header}\n".encode())) == "wide"


@pytest.mark.parametrize(
    "header", ["token\ttag", "token\tpos\tner", "item,token,label", "A\ttoken"]
)
def test_a_header_with_a_column_of_tags_is_not_seen_as_wide(header):
    from goldspan.crowd.source import open_source

    assert not wide.sniff(open_source(f"{header}\nx\tO\n".encode()))


# What is refused


def test_an_unknown_label_is_refused_with_file_line_item_token_and_worker(tmp_path):
    path = tmp_path / "crowd.tsv"
    path.write_text(
        TABLE.replace("D2\t1\tit\tO\tB-PER\tO", "D2\t1\tit\tO\tX-PER\tO"), encoding="utf-8"
    )
    refusal(
        path,
        f"{path} line 6, item D2-1 token 0, worker A1: tag 'X-PER' is not in BIO",
        "allowed are B-TYPE, I-TYPE and O",
        "--label OLD=NEW",
    )


def test_an_unknown_label_in_the_gold_names_the_gold():
    found = faults_of(TABLE.replace("sang\tO", "sang\tB").encode())
    assert found == [(3, "D1-1", 1, "gold", "unknown-label")]


def test_a_label_of_another_encoding_is_refused_with_the_name_of_that_encoding():
    data = table("token A B", "x B-PER B-PER", "y I-PER U-PER")
    refusal(data.encode(), "worker A: tag 'I-PER'", encoding="BMEWO")
    refusal(
        data.encode(),
        "line 3, item 1 token 1, worker B: tag 'U-PER'",
        'pass encoding="BILOU"',
        encoding="BIO",
    )


def test_two_encodings_in_one_column_are_refused():
    refusal(
        table("token A", "x S-PER", "y U-PER", "z E-PER").encode(),
        "line 3, item 1 token 1, worker A",
        "two encodings seem to be mixed: convert one of them",
    )


def test_a_worker_with_another_encoding_than_the_others_is_named():
    rows = ["token gold A B", "x B-PER B-PER B-PER", "y E-PER E-PER I-PER"]
    refusal(
        table(*rows).encode(),
        "<bytes>: two encodings are mixed",
        "worker B never closes a span",
        "encoding='IOBES'",
    )
    assert read(table(*rows), encoding="IOBES").n_workers == 2


def test_an_empty_token_is_refused_with_its_line():
    refusal(
        b"token\tA\nx\tO\n\tO\n",
        "<bytes> line 3: the token is empty: remove the row, or write the token",
    )


def test_an_item_that_stands_twice_is_refused_with_both_lines():
    data = b"doc\tsent\ttoken\tA\nD\t1\tx\tO\nD\t2\ty\tO\nD\t1\tz\tO\n"
    refusal(
        data,
        "<bytes> line 4, item D-1: the item id appears twice (first in line 2): ids must be unique",
    )


def test_a_table_without_a_token_column_is_refused_with_the_way_to_name_it():
    refusal(
        b"wort\tA\nx\tO\n",
        "<bytes> line 1: no column for token",
        "--columns token=NAME",
        format="wide",
    )


def test_a_column_that_is_not_there_is_refused_with_the_header():
    refusal(
        TABLE.encode(),
        "there is no column 'Wort': the header has doc, sent, token",
        format="wide",
        columns={"token": "Wort"},
    )
    refusal(TABLE.encode(), "there is no worker column 'A9'", workers=["A9"])


# What comes back


@pytest.mark.parametrize("values", [[["a", "a"]], [["a"]], [[1, 2]], [None], [1.5]])
def test_other_attributes_are_written_as_text_and_the_loss_is_said(values):
    assert_loses(small(attributes=pa.table({"note": values})), "wide", "attribute 'note' of 1 item")


# The real crowd


@pytest.mark.realdata
def test_the_crowd_of_paper_000_has_the_numbers_of_its_page(data):
    crowd = goldspan.read_crowd(data / "ner_mturk" / "crowd.tsv.gz")
    assert (crowd.n_items, crowd.n_tokens, crowd.n_workers) == (5985, 79901, 47)
    assert len(crowd.answers) == 27990
    assert (crowd.answers.codes >= 0).sum() == crowd.import_report.n_placed == 366370
    assert len(set(crowd.groups.to_pylist())) == 398
    assert len(find_spans(crowd.gold_tagged, crowd.tagset)) == 9907
    assert crowd.answers.nbytes <= 2 * len(crowd.answers.codes) + 24 * len(crowd.answers)


@pytest.mark.realdata
def test_the_crowd_of_paper_000_comes_back_to_the_byte(data):
    path = data / "ner_mturk" / "crowd.tsv.gz"
    with written(goldspan.read_crowd(path), "wide", "crowd.tsv") as (copy, lost):
        assert lost == []
        assert copy.read_bytes() == gzip.decompress(path.read_bytes()).rstrip(b"\n") + b"\n"


@pytest.mark.parametrize("mark", ["\t", ","])
def test_a_table_of_many_columns_takes_few_times_its_size(mark):
    names, blank = mark.join(f"w{n}" for n in range(400)), mark.join(["?"] * 399)
    token = '"t"' if mark == "," else "t"
    rows = "".join(f"{token}{mark}B-X{mark}{blank}\n" for _ in range(5_000))
    data = f"token{mark}{names}\n{rows}".encode()
    goldspan.read_crowd(TABLE.encode(), format="wide")  # what is imported counts elsewhere
    tracemalloc.start()
    try:
        crowd = goldspan.read_crowd(data, format="wide")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert crowd.answers_of("1")["w0"] == ["B-X"] * 5_000
    assert peak < 7 * len(data)
