"""WebAnno TSV: what a file says against its own text, and what cannot be placed."""

from __future__ import annotations

import pytest

from crowd_tables import refusal
from goldspan.crowd import read_crowd
from goldspan.errors import FormatError

HEAD = (
    "#FORMAT=WebAnno TSV 3.3\n"
    "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value\n\n\n"
)


def rows(text, *tokens, number=1, at=0, head=""):
    """Make a sentence of tokens, each with its two cells; `at` is where its text begins."""
    lines, place = [f"{head}#Text={text}"], 0
    for n, (token, cells) in enumerate(tokens, start=1):
        place = text.index(token, place)
        end = place + len(token)
        lines.append(f"{number}-{n}\t{at + place}-{at + end}\t{token}\t{cells}\t")
        place = end
    return "\n".join(lines) + "\n\n"


def read(data, **options):
    return read_crowd((HEAD + data).encode(), format="webanno", **options)


def test_a_token_that_the_text_does_not_have_is_an_error():
    data = rows("Ann sang in Rome", ("Ann", "_\t_"), ("Rome", "*\tLOC"))
    shifted = (HEAD + data.replace("Ann sang", "Ann  sang")).encode()
    message = "the token at 12-16 is 'Rome', but the sentence's text has ' Rom' there"
    refusal(shifted, "line 7, item 1", message, format="webanno")
    refusal(shifted.replace(b"Rome\t*", b"ome\t*"), "is 'ome'", format="webanno")


def test_offsets_that_count_code_points_are_named():
    data = rows("\U0001f600 in Rome", ("\U0001f600", "_\t_"), ("in", "_\t_"), ("Rome", "*\tLOC"))
    data = data.replace("0-1\t", "0-2\t")
    refusal((HEAD + data).encode(), "if offsets count code points", format="webanno")


def test_white_space_before_the_first_token_belongs_to_the_text():
    data = rows(" Ann sang", ("Ann", "*\tPER"), ("sang", "_\t_"))
    data += rows("  So", ("So", "*\tX"), number=2, at=10)
    crowd = read(data)
    assert crowd.tokens_list == [["Ann", "sang"], ["So"]]
    assert crowd.texts.to_pylist() == [" Ann sang", "  So"]
    assert crowd.tagged_by_id() == {"1": ["B-PER", "O"], "2": ["B-X"]}


@pytest.mark.parametrize("token", ["a_b|c", r"a\_b\|c"])
def test_tokens_may_be_escaped_or_not(token):
    crowd = read(rows("a_b|c", ("a_b|c", "*\tX")).replace("\ta_b|c", f"\t{token}"))
    assert crowd.tokens_list == [["a_b|c"]]


@pytest.mark.parametrize("end", ["Rome\t*", "Rome\t*\t", "Rome\t", "Rome", "Ro"])
def test_a_row_that_was_cut_off_is_an_error(end):
    message = "where the layers (#T_) have 2 columns: was the file cut off"
    data = HEAD + rows("Ann sang in Rome", ("Ann", "_\t_"), ("Rome", "*\tLOC"))
    data = data[: data.rindex("Rome")] + end
    refusal(data.encode(), "line 7, item 1", message, format="webanno")


@pytest.mark.parametrize(
    "more", ["#Text=Bob in P", "#Text=Bob\n\n#Text=Cem\n2-1\t4-7\tCem\t_\t_\t\n"]
)
def test_a_sentence_without_rows_is_an_error(more):
    data = HEAD + rows("Ann", ("Ann", "_\t_")) + more
    refusal(data.encode(), "line 8", "the sentence 'Bob", "has no rows of tokens", format="webanno")


def test_spans_without_a_label_are_listed():
    data = rows(
        "Ann sang in Rome", ("Ann", "http://x/Q1[2]\t*[2]"), ("sang", "http://x/Q1[2]\t*[2]")
    )
    crowd = read(data)
    assert [fault.kind for fault in crowd.import_report.faults] == ["span without a label"]
    with pytest.raises(FormatError, match="a span without a label"):
        read(data, strict=True)
    bare = (
        "#FORMAT=WebAnno TSV 3.3\n#T_SP=webanno.custom.Quote|\n\n\n#Text=Ann\n1-1\t0-3\tAnn\t*\t\n"
    )
    crowd = read_crowd(bare.encode())
    assert [fault.kind for fault in crowd.import_report.faults] == ["span without a label"]
    starred = read(rows("Ann", ("Ann", "*\t\\*")))
    assert starred.tagged_by_id() == {"1": ["B-*"]}


def test_spans_across_sentences_are_listed(tmp_path):
    data = rows("Ann sang", ("Ann", "*\tPER"), ("sang", "*[1]\tEV[1]"))
    data += rows("so", ("so", "*[1]|*[2]\tEV[1]|A[2]"), number=2, at=9)
    data += rows("in Rome", ("in", "*[1]\tEV[1]"), ("Rome", "*[2]\tA[2]"), number=3, at=12)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "ann.tsv").write_text(HEAD + data, encoding="utf-8")
    crowd = read_crowd(tmp_path)
    said = {name: crowd.answers_of(name)["ann"] for name in crowd.item_ids.to_pylist()}
    assert said == {"d-1": ["B-PER", None], "d-2": ["B-A"], "d-3": [None, "B-A"]}
    assert crowd.import_report.reasons == {"span across sentences": 1}
    (fault,) = crowd.import_report.faults
    assert "item d-1" in str(fault)
    assert "span EV [1] goes on in the next sentence" in str(fault)
    with pytest.raises(FormatError, match="goes on in the next sentence"):
        read_crowd(tmp_path, strict=True)


def test_single_tokens_in_sentences_that_follow_each_other_are_spans_of_their_own():
    crowd = read(rows("Ann", ("Ann", "*\tPER")) + rows("Bob", ("Bob", "*\tPER"), number=2, at=4))
    assert crowd.tagged_by_id() == {"1": ["B-PER"], "2": ["B-PER"]}


SUB = (
    "#Text=Applepie is\n1-1\t0-8\tApplepie\t_\t_\t\n"
    "1-1.1\t0-5\tApple\t*\tX\t\n1-2\t9-11\tis\t_\t_\t\n"
)


def test_spans_within_tokens_follow_the_rule_for_cut_tokens():
    assert read(SUB).tokens_list == [["Apple", "pie", "is"]]
    crowd = read(SUB, cut="expand")
    assert crowd.tokens_list == [["Applepie", "is"]]
    assert crowd.tagged_by_id() == {"1": ["B-X", "O"]}
    with pytest.raises(FormatError, match="pass cut="):
        read(SUB, cut="error")


@pytest.mark.parametrize("offsets", ["utf16", "utf8", "codepoint"])
def test_the_rule_for_offsets_is_that_of_the_format(offsets):
    data = HEAD + "#Text=\U0001f600 ab\n1-1\t0-2\t\U0001f600\t_\t_\t\n1-2\t3-5\tab\t*\tX\t\n"
    crowd = read_crowd(data.encode(), offsets=offsets)
    assert crowd.tagged_by_id() == {"1": ["O", "B-X"]}


def test_a_span_of_no_width_is_an_error():
    data = SUB.replace("0-5\tApple", "3-3\t")
    refusal((HEAD + data).encode(), "span X [3, 3) is empty", format="webanno")


def test_equal_ids_of_sentences_begin_with_their_document(tmp_path):
    for document, word in (("one", "Ann"), ("two", "Bob")):
        (tmp_path / document).mkdir()
        data = HEAD + rows(word, (word, "*\tPER"), head="#Sentence.id=s1\n")
        for worker in ("ann", "bob"):
            (tmp_path / document / f"{worker}.tsv").write_text(data, encoding="utf-8")
    crowd = read_crowd(tmp_path)
    assert crowd.item_ids.to_pylist() == ["one-s1", "two-s1"]
    assert crowd.groups.to_pylist() == ["one", "two"]
    assert "every id begins with its document" in " ".join(crowd.import_report.notes)
    (tmp_path / "two" / "ann.tsv").unlink()
    (tmp_path / "two" / "bob.tsv").unlink()
    assert read_crowd(tmp_path).item_ids.to_pylist() == ["s1"]


def test_equal_ids_in_one_file_are_an_error():
    data = rows("Ann", ("Ann", "_\t_"), head="#Sentence.id=s1\n")
    data += rows("Ann", ("Ann", "_\t_"), head="#Sentence.id=s1\n", number=2, at=4)
    message = "the sentence id appears twice in this file (first in line 5)"
    refusal((HEAD + data).encode(), "line 9, item s1", message, format="webanno")


def test_files_with_spans_in_different_layers_are_rejected_until_one_is_named(tmp_path):
    entity = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
    other = HEAD.replace(entity, "webanno.custom.Pos")
    assert other != HEAD
    (tmp_path / "one").mkdir()
    for worker, start in (("ann", HEAD), ("bob", other)):
        data = start + rows("Ann", ("Ann", "*\tPER"))
        (tmp_path / "one" / f"{worker}.tsv").write_text(data, encoding="utf-8")
    with pytest.raises(FormatError, match=r"webanno\.custom\.Pos.*ann.*NamedEntity"):
        read_crowd(tmp_path)
