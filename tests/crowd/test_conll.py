"""CoNLL columns: which column is what, comments and headers, what is refused, what comes back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from crowd_tables import assert_holds, assert_same, refusal, small, written
from goldspan.crowd import read_crowd, write_crowd
from goldspan.crowd.formats import conll
from goldspan.crowd.source import open_source
from goldspan.errors import FormatError, InputError
from goldspan.spans import find_spans

PLAIN_FILE = "Ann B-PER\nsang O\n\nParis B-LOC\n"
OWN = "# id = D1-1\nAnn\tB-PER\t0.9000\nsang\tO\t1.0000\n\n# id = D1-2\nParis\tB-LOC\t0.5000\n"
FULL = (
    "-DOCSTART- -X- -X- O\n\nAnn NNP B-NP B-PER\nsang VB B-VP O\n\n"
    "-DOCSTART- -X- -X- O\n\nParis NNP B-NP B-LOC\n"
)


def read(text, **options):
    data = text.encode() if isinstance(text, str) else text
    return goldspan.read_crowd(data, format="conll", **options)


def tags(text, **options):
    return list(read(text, **options).tagged_by_id().values())


# What is read


def test_tokens_and_tags_are_items_with_gold_and_no_answers():
    crowd = read(PLAIN_FILE)
    assert crowd.tokens_list == [["Ann", "sang"], ["Paris"]]
    assert crowd.tagged_by_id() == {"1": ["B-PER", "O"], "2": ["B-LOC"]}
    assert (len(crowd.answers), crowd.n_workers) == (0, 0)


@pytest.mark.parametrize("blank", [" ", "\t", "   ", " \t "])
def test_any_white_space_separates(blank):
    assert_same(read(PLAIN_FILE.replace(" ", blank)), read(PLAIN_FILE))


def test_a_token_may_hold_blanks_if_tabs_separate():
    assert read("New York\tB-LOC\n").tokens_list == [["New York"]]


def test_the_last_column_that_is_no_number_is_the_tag():
    assert tags(OWN) == [["B-PER", "O"], ["B-LOC"]]
    assert tags(FULL) == [["B-PER", "O"], ["B-LOC"]]
    assert tags("x NN B-X 1 0.5 1e-5\n") == [["B-X"]]


@pytest.mark.parametrize(("column", "wanted"), [("3", "B-NP"), ("-1", "B-PER"), ("2", "NNP")])
def test_a_column_can_be_picked_by_its_number(column, wanted):
    assert tags("Ann NNP B-NP B-PER\n", columns={"tag": column}) == [[wanted]]


def test_a_header_names_the_columns():
    text = "pos token chunk gold\n".replace("pos", "id") + "7 Ann B-NP B-PER\n"
    assert read(text).tokens_list == [["Ann"]]
    assert tags(text) == [["B-PER"]]
    assert tags(text, columns={"tag": "chunk"}) == [["B-NP"]]


@pytest.mark.parametrize(
    "text",
    ["Word O\nis O\n", "token\tO\nis\tO\n", "Word NN B-X\nis VB O\n", "# id = 1\nWord NN\nis V\n"],
)
def test_a_first_token_that_is_the_word_token_is_no_header(text):
    assert read(text).tokens_list[0][0].lower() in {"word", "token"}


CONLL_U = """# sent_id = s1
# text = Ann don't.
1\tAnn\tAnn\tPROPN\tNNP\t_\t2\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tsing\tsing\tVERB\tVB\t_\t_\t_\t_\t_
"""


@pytest.mark.parametrize("columns", [{}, {"token": "2"}, {"tag": "4"}])
def test_the_columns_of_conll_u_have_to_be_named(columns):
    refusal(CONLL_U.encode(), "line 3", "this is CoNLL-U", format="conll", columns=columns)


@pytest.mark.parametrize("role", ["tag", "label"])
def test_words_of_conll_u_are_read_by_named_columns(role):
    crowd = read(CONLL_U, columns={"token": "2", role: "4"})
    assert crowd.tokens_list == [["Ann", "do", "n't"]]
    assert crowd.tagged_by_id() == {"s1": ["PROPN", "AUX", "PART"]}
    assert "2 rows of several words" in " ".join(crowd.import_report.notes)


def test_comments_name_items_and_a_hash_may_be_a_token():
    crowd = read("# id = a b\nx O\n# a comment here\ny O\n\n# O\n# sent_id = c\nz\tO\n")
    assert crowd.item_ids.to_pylist() == ["a b", "c"]
    assert crowd.tokens_list == [["x", "y"], ["#", "z"]]


def test_items_without_a_name_are_numbered():
    assert read("x O\n\n# id = b\ny O\n\nz O\n").item_ids.to_pylist() == ["1", "b", "3"]


def test_docstart_lines_part_documents():
    crowd = read(FULL)
    assert crowd.groups.to_pylist() == ["1", "2"]
    assert crowd.n_items == 2


def test_question_marks_are_unknown_tags():
    assert tags("x ?\ny O\n") == [[None, "O"]]


def test_the_encoding_is_seen():
    assert read("x I-X\ny I-X\n\nz I-X\n").tagset.encoding == "IOB"
    assert read("x S-X\ny O\n").tagset.encoding == "IOBES"
    assert read("x NOUN\n").tagset.encoding == "PLAIN"


@pytest.mark.parametrize(
    "text", [PLAIN_FILE, OWN, FULL, "# a comment\nx O\n", "token\ttag\nAnn\tB-X\n"]
)
def test_columns_of_tokens_and_tags_are_recognised(text):
    assert goldspan.read_crowd(text.encode()).import_report.format == "conll"


@pytest.mark.parametrize(
    "text", ["just\nwords\n", "two words\nand three words\n", '{"text": "Ann sang"}\n']
)
def test_other_text_is_not_seen_as_columns(text):
    assert not conll.sniff(open_source(text.encode()))


# What is refused


def test_ragged_rows_are_refused_with_their_lines():
    message = refusal(
        b"x O\ny NN O\n\nz\n", "<bytes> line 2: 3 columns where the file has 2", format="conll"
    )
    assert "<bytes> line 4: 1 columns where the file has 2" in message


def test_an_empty_cell_is_refused_with_its_line():
    refusal(b"x\tO\n\tO\n", "<bytes> line 2: a cell is empty", format="conll")


def test_one_column_is_refused():
    refusal(
        b"\nx\ny\n",
        "<bytes> line 2: one column only: a CoNLL file has a token and a tag",
        format="conll",
    )


def test_an_item_id_that_stands_twice_is_refused():
    refusal(
        b"# id = a\nx O\n\n# id = a\ny O\n",
        "<bytes> line 5, item a: the item id appears twice",
        format="conll",
    )


def test_an_unknown_tag_is_refused_with_its_place():
    refusal(
        b"# id = a\nx O\ny X-X\n",
        "item a token 1, worker gold: tag 'X-X' is not in BIO",
        format="conll",
        encoding="BIO",
    )


def test_a_column_that_is_not_there_is_refused_with_those_that_are():
    refusal(
        b"x O\n",
        "<bytes>: there is no column '5': the file has 1 to 2",
        format="conll",
        columns={"tag": "5"},
    )
    refusal(
        b"token ner\nx O\n",
        "there is no column 'pos': the file has token, ner",
        format="conll",
        columns={"tag": "pos"},
    )


def test_a_file_without_items_is_refused():
    refusal(b"# only a comment\n", "<bytes>: the file holds no item", format="conll")


def test_a_crowd_without_gold_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="this crowd has no gold"):
        write_crowd(small(), tmp_path / "x.conll")
    assert list(tmp_path.iterdir()) == []


# What comes back


def known(**changes):
    """Make a crowd of gold alone."""
    crowd = small(gold=changes.pop("gold", ["B-X", "I-X"]), **changes)
    nobody = crowd.answers.take(np.zeros(0, np.int64))
    return replace(crowd, answers=nobody, worker_ids=pa.array([], pa.string()))


@pytest.mark.parametrize(
    "tokens",
    [
        ["#", "# x"],
        ["a\u00a0b", "\u2028"],
        ["token", "word"],
        ["{", "["],
        ["?", "NA"],
        ["-DOCSTART-", "y"],
    ],
)
def test_odd_tokens_come_back(tokens):
    assert_holds(known(tokens=tokens), "conll")


def test_a_file_is_written_as_the_architecture_says():
    with written(known(item="D001-1"), "conll") as (path, _):
        assert path.read_text(encoding="utf-8") == "# id = D001-1\nx\tB-X\ny\tI-X\n"


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("part", "items", "spans"),
    [("train", 14041, 23499), ("testa", 3250, 5942), ("testb", 3453, 5648)],
)
def test_the_corpus_of_the_shared_task_has_the_numbers_of_its_page(data, part, items, spans):
    crowd = goldspan.read_crowd(data / "conll2003" / f"{part}.tsv.gz")
    assert crowd.import_report.format == "conll"
    assert crowd.n_items == items
    assert len(find_spans(crowd.gold_tagged, crowd.tagset)) == spans


@pytest.mark.realdata
def test_the_tags_as_distributed_are_seen_as_iob(data):
    crowd = goldspan.read_crowd(data / "conll2003" / "testa.tsv.gz", columns={"tag": "ner"})
    assert crowd.tagset.encoding == "IOB"
    assert len(find_spans(crowd.gold_tagged, crowd.tagset)) == 5942


# Dialects


def tagged(text, **options):
    return goldspan.read_crowd(text.encode(), **options).tagged_by_id()


@pytest.mark.parametrize(
    "line", ["# id s-7\tdomain=en", "# id s-7", "#  id = s-7", "# sent_id = s-7", "#\tid s-7"]
)
@pytest.mark.parametrize("mark", ["\t", " "])
def test_a_comment_with_any_white_space_names_the_item(line, mark):
    rows = f"ada{mark}_{mark}B-PER\nswam{mark}_{mark}O\n"
    assert tagged(f"{line}\n{rows}\n{rows}") == {"s-7": ["B-PER", "O"], "2": ["B-PER", "O"]}


def test_a_hash_that_is_written_as_the_other_rows_is_a_token():
    crowd = goldspan.read_crowd(b"Ada NNP B-PER\n# NN O\n# a remark\nswam VBD O\n")
    assert crowd.tokens_list == [["Ada", "#", "swam"]]
    assert goldspan.read_crowd(b"Ada\tB-PER\n# 1\tO\n").tokens_list == [["Ada", "# 1"]]


ROWS_2012 = """d/a 0 0 Ada NNP (TOP(S* - - - s1 (PERSON* (A0* (0
d/a 0 1 Lovelace NNP *) - - - s1 *) *) 0)
d/a 0 2 saw VBD * see 01 1 s1 * (V*) -
d/a 0 3 London NNP *)) - - - s1 (GPE) (A1*) -
"""


def test_spans_of_conll_2012_stand_in_brackets():
    text = f"#begin document (d/a); part 000\n{ROWS_2012}\n{ROWS_2012}\n#end document\n"
    crowd = goldspan.read_crowd((text + text).encode())
    assert crowd.tokens_list[0] == ["Ada", "Lovelace", "saw", "London"]
    assert crowd.tagged_by_id()["1"] == ["B-PERSON", "I-PERSON", "O", "B-GPE"]
    assert crowd.groups.to_pylist() == ["1", "1", "2", "2"]
    with pytest.raises(FormatError, match="name one of"):
        goldspan.read_crowd(ROWS_2012.encode())
    assert list(tagged(ROWS_2012, format="conll").values()) == [crowd.tagged_by_id()["1"]]


def test_sentences_of_2012_may_have_columns_of_their_own():
    other = ROWS_2012.replace(" (A0*", " (A0* *").replace(" *) 0)", " *) * 0)")
    other = other.replace("(V*)", "(V*) *").replace("(A1*)", "(A1*) *")
    crowd = goldspan.read_crowd(f"#begin document (d)\n{ROWS_2012}\n{other}".encode())
    assert crowd.n_items == 2


def test_columns_with_the_tags_of_the_one_that_is_read_are_named():
    crowd = read_crowd(b"Mara B-PER O\nmet O O\nOslo B-LOC B-PER\n", format="conll")
    assert any("not read: 2; if each" in note for note in crowd.import_report.notes)
    other = read_crowd(b"Mara NNP B-NP B-PER\nmet VBD O O\n", format="conll")
    assert not any("not read" in note for note in other.import_report.notes)
