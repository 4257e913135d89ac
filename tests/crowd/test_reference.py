"""The tokens of documents without a reference: what is voted from altered files, and what stays."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.crowd.alignment import AnswerToken
from goldspan.crowd.reference import vote_tokens


def lines(text):
    """Lines of a file: `token tag` apart by commas, sentences by `|`; tags are O by default."""
    found = []
    for n, sentence in enumerate(text.split("|")):
        for cell in sentence.split(","):
            token, _, tag = cell.strip().partition(" ")
            found.append(AnswerToken(token, tag or "O", len(found) + 1, n))
    return found


def vote(*files, types=("LOC", "MISC")):
    return vote_tokens([[lines(file) for file in files]], types)[0]


WHOLE = "the,Russian MISC,army,won,.|it,was,late"
CUT = "the,Russia LOC,n,army,won,.|it,was,late"
TEXT = [["the", "Russian", "army", "won", "."], ["it", "was", "late"]]


def test_files_that_agree_are_left_as_they_are():
    odd = "Rome/LOC B-LOC,x/,|/LOC,n O"
    assert vote(odd, odd) == [["Rome/LOC", "x/", ""][:2], ["/LOC", "n"]]
    assert vote(odd) == vote(odd, odd, odd)


def test_documents_without_files_and_files_without_tokens_have_no_sentence():
    assert vote_tokens([], []) == []
    assert vote_tokens([[], [[]], [[AnswerToken("", "B-X", 1, 0)]]], []) == [[], [], []]


@pytest.mark.parametrize("n_cut", [1, 2, 3, 4])
def test_a_cut_at_a_label_is_undone_however_many_made_it(n_cut):
    assert vote(*[CUT] * n_cut, WHOLE) == TEXT


def test_a_cut_that_everybody_made_stays():
    assert vote(CUT, CUT, "the,Russia LOC,n,army,won,.|it,was,late/MISC")[0][1:3] == ["Russia", "n"]


def test_tokens_that_one_file_joins_are_apart_where_labels_go_on():
    joined = "the,Russian MISC,armywon,.|it,was,late"
    assert vote(joined, WHOLE, CUT) == TEXT


def test_what_most_files_join_is_never_cut():
    assert vote("today,x", "today,x", "to,day,x") == [["today", "x"]]


def test_glued_labels_are_taken_off_unless_all_show_them():
    assert vote("Rome/LOC,is,old", "Rome LOC,is,o LOC,ld") == [["Rome", "is", "old"]]
    assert vote("Rome/LOC,is,old", "Rome/LOC,is LOC,o,ld") == [["Rome/LOC", "is", "old"]]
    assert (
        vote("either/or,x", "either/or,x", "either/or,x LOC", "either/o,r,x")[0][0] == "either/or"
    )


def test_characters_are_those_that_most_files_show():
    assert vote("a,cat,sat", "a,cat,sat", "a,xx,cat,sat") == [["a", "cat", "sat"]]
    assert vote("a,cat,sat", "a,cat,sat", "a,sat") == [["a", "cat", "sat"]]
    assert vote("a,cat,sat", "a,bat,sat", "a,bat,sat") == [["a", "bat", "sat"]]
    assert vote("a,cat,sat", "a,bat,sat", "a,hat,sat")[0][::2] == ["a", "sat"]


def test_unfinished_files_take_nothing_away():
    begun = "the,Russian MISC,army,won,."
    assert vote(begun, begun, begun, WHOLE) == TEXT
    assert vote(begun, begun, CUT, WHOLE) == TEXT


def test_a_file_of_another_document_has_no_say():
    other = "nothing,like,this,stands,there,at,all,in,so,many,words,as,here"
    assert vote(other, WHOLE, CUT) == TEXT


def test_sentences_end_where_half_of_the_files_end_one():
    assert vote("a,b|c", "a,b,c", "a|b,c") == [["a", "b", "c"]]
    assert vote("a,b|c", "a,b,c") == [["a", "b"], ["c"]]
    assert vote("a,b|c", "a,b|c", "a|b,c") == [["a", "b"], ["c"]]


def test_how_cuts_look_is_learned_from_all_documents():
    # By itself the second document is undecided; in a crowd of joiners it is an end of a token.
    joiners = [[lines("a,b,c,d"), lines("a,b,c,d"), lines("a,bc,d")] for _ in range(30)]
    pair = [lines("e,f,g,h"), lines("e,fg,h")]
    assert vote_tokens([*joiners, pair], [])[-1] == [["e", "f", "g", "h"]]
    cutters = [[lines("aa,bb,cc"), lines("aa,bb,cc"), lines("aa,b X,b,cc")] for _ in range(30)]
    pair = [lines("aa,f X,g,cc"), lines("aa,fg,cc")]
    assert vote_tokens([*cutters, pair], [])[-1] == [["aa", "fg", "cc"]]


@pytest.mark.parametrize("n_files", [3, 5])
def test_the_text_is_found_under_random_damage(n_files):
    rng = random.Random(7)
    words = ["Russian", "Israeli", "the", "of", "army", "won", "Kurds", ".", "new", "against"]
    texts, documents = [], []
    for _ in range(20):
        text = [[rng.choice(words) for _ in range(12)] for _ in range(5)]
        texts.append(text)
        documents.append([damaged(text, rng) for _ in range(n_files)])
    found = vote_tokens(documents, {"LOC"})
    same = sum(
        a == b for one, two in zip(texts, found, strict=True) for a, b in zip(one, two, strict=True)
    )
    assert same >= 97


def damaged(text, rng):
    """A file that marks nationalities: cuts some where the country ends, glues labels on others."""
    found = []
    for n, sentence in enumerate(text):
        for token in sentence:
            parts = [(token, "B-LOC" if token[0].isupper() else "O")]
            chance = rng.random()
            if token[0].isupper() and chance < 0.2:
                parts = [(token[:-1], "B-LOC"), (token[-1], "O")]
            elif token[0].isupper() and chance < 0.3:
                parts = [(f"{token}/LOC", "B-LOC")]
            elif chance > 0.99:
                parts = []
            found += [AnswerToken(*part, 0, n) for part in parts]
    return found


TOKENS = st.text("ab/", min_size=0, max_size=3)
FILES = st.lists(
    st.tuples(TOKENS, st.sampled_from(["", "O", "B-a", "I-a", "b"]), st.booleans()), max_size=12
)


@given(st.lists(st.lists(FILES, max_size=4), max_size=3))
def test_whatever_the_files_show_the_same_tokens_come_of_it(drawn):
    documents = []
    for files in drawn:
        documents.append([])
        for cells in files:
            sentence, made = 0, []
            for n, (token, label, new) in enumerate(cells):
                sentence += new
                made.append(AnswerToken(token, label, n + 1, sentence))
            documents[-1].append(made)
    found = vote_tokens(documents, {"a"})
    assert found == vote_tokens(documents, {"a"})
    assert len(found) == len(documents)
    for files, sentences in zip(documents, found, strict=True):
        assert bool(sentences) == any(line.token for file in files for line in file)
        assert all(sentence and all(sentence) for sentence in sentences)
