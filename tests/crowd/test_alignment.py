"""A worker's dirty file comes back to the tokens of the reference, and no label is lost unsaid."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.crowd.alignment import (
    ALTERING,
    FAULT_KINDS,
    Alignment,
    AnswerToken,
    Kind,
    LabelRepair,
    Placed,
    Placement,
    align,
    match,
    place,
    speakers,
)
from goldspan.crowd.options import ALTERED

Reference = Sequence[Sequence[str]]


def lines(*cells: str, sentence: int = 0) -> list[AnswerToken]:
    """Read `token label` cells as the lines of an answer; `|` starts a new sentence."""
    answer: list[AnswerToken] = []
    for number, cell in enumerate(cells, 1):
        if cell == "|":
            sentence += 1
            continue
        token, _, label = cell.rpartition(" ")
        answer.append(AnswerToken(token, label, number, sentence))
    return answer


def placed(
    reference: Reference, answer: Sequence[AnswerToken], altered: str = "missing", **options: object
) -> tuple[Alignment, Placed]:
    """Align and place in one go."""
    found = align(reference, answer, **options)
    offsets = np.array([0, *accumulate(map(len, reference))], np.int64)
    return found, place(found, offsets, [line.label for line in answer], altered)


def labels_of(answer: Sequence[AnswerToken], result: Placed) -> list[str]:
    """Return the label of every reference token, `?` for none."""
    return [answer[n].label if n >= 0 else "?" for n in result.source.tolist()]


def words(found: Alignment) -> list[str]:
    """Return the kinds of all lines."""
    return [Kind(code).word for code in found.kind.tolist()]


# ---------------------------------------------------------------------------------------------
# One fault at a time: reference, answer, kinds of the lines, labels under "missing" and "keep".
# ---------------------------------------------------------------------------------------------

CASES: dict[str, tuple[list[list[str]], list[str], str, str, str]] = {
    "a token cut in two": ([["Maltese", "won"]], ["Malt B-LOC", "ese O", "won O"],
        "cut-token cut-token exact", "? O", "B-LOC O"),
    "the first part that is not outside speaks for the token": ([["x-Alpha-Beta", "won"]],
        ["x- O", "Alpha B-ORG", "-Beta B-LOC", "won O"], "cut-token cut-token cut-token exact",
        "? O", "B-ORG O"),
    "a type glued onto a token": ([["Valletta", "won"]], ["Valletta/LOC B-LOC", "won O"],
        "glued-suffix exact", "B-LOC O", "B-LOC O"),
    "a tag glued onto a token of the reference": ([["Valletta/B-LOC", "won"]],
        ["Valletta B-LOC", "won O"], "glued-reference exact", "B-LOC O", "B-LOC O"),
    "other labels glued onto both sides": ([["Valletta/B-LOC", "won"]],
        ["Valletta/LOC B-LOC", "won O"], "glued-suffix exact", "B-LOC O", "B-LOC O"),
    "a glued tag that was cut": ([["President", "won"]],
        ["President/B-MI B-PER", "SC B-ORG", "/B-MI O", "SC B-ORG", "won B-MISC"],
        "mangled-glue label-as-token label-as-token label-as-token exact", "? B-MISC",
        "B-PER B-MISC"),
    "labels glued into labels": ([["Valletta", "won"]],
        ["Valletta/B O", "- B-LOC", "/B O", "- B-LOC", "MISC O", "LOC B-MISC", "won O"],
        "mangled-glue" + " label-as-token" * 5 + " exact", "? O", "O O"),
    "a label glued into the middle of a cut token": ([["high-profile"]],
        ["high B-MISC", "-/B-MISC O", "profile O"], "cut-token cut-token cut-token", "?", "B-MISC"),
    "a reference whose glued tag was cut": ([["Valletta/B-LOC", "won"]],
        ["Valletta/ B-LOC", "B-LOC O", "won O"], "cut-token cut-token exact", "? O", "B-LOC O"),
    "a slash that glues nothing": ([["US/UK", "and/or"]],
        ["US B-LOC", "/ O", "UK B-LOC", "and/or O"], "cut-token cut-token cut-token exact", "? O",
        "B-LOC O"),
    "tokens merged": ([["New", "York", "won"]], ["NewYork B-LOC", "won O"], "merged-tokens exact",
        "? ? O", "B-LOC ? O"),
    "tokens merged with a slash between them": ([["US", "/", "UK", "won"]],
        ["US/UK B-LOC", "won O"], "merged-tokens exact", "? ? ? O", "B-LOC ? ? O"),
    "tokens merged and cut elsewhere": ([["New", "York", "won"]],
        ["NewYo B-LOC", "rk I-LOC", "won O"], "merged-tokens cut-token exact", "? ? O",
        "B-LOC I-LOC O"),
    "a line with a label only": ([["Malta", "won"]], ["Malta B-LOC", " B-LOC", "won O"],
        "exact empty-token exact", "B-LOC O", "B-LOC O"),
    "a line with a label only where a token is missing": ([["US", "/", "UK"]],
        ["US B-LOC", " I-LOC", "UK B-LOC"], "exact replaced-token exact", "B-LOC ? B-LOC",
        "B-LOC I-LOC B-LOC"),
    "another token in its place": ([["Malta", "``", "won"]], ["Malta B-LOC", '" O', "won O"],
        "exact replaced-token exact", "B-LOC ? O", "B-LOC O O"),
    "a letter changed": ([["Netanyahu", "won"]], ["Netanyaho B-PER", "won O"],
        "altered-token exact", "? O", "B-PER O"),
    "another case": ([["Malta", "won"]], ["MALTA B-LOC", "won O"], "altered-token exact", "? O",
        "B-LOC O"),
    "a label typed as a token": ([["Malta", "won"]], ["Malta B-LOC", "B-LOC O", "won O"],
        "exact label-as-token exact", "B-LOC O", "B-LOC O"),
    "a token put in": ([["Malta", "won"]], ["Malta B-LOC", "hurriedly B-MISC", "won O"],
        "exact inserted-token exact", "B-LOC O", "B-LOC O"),
    "a token left out": ([["Malta", "narrowly", "won"]], ["Malta B-LOC", "won O"], "exact exact",
        "B-LOC ? O", "B-LOC ? O"),
    "a part that equals the next token": ([["won", "New-York", "York", "lost"]],
        ["won O", "New- B-LOC", "York O", "York B-ORG", "lost O"],
        "exact cut-token cut-token exact exact", "O ? B-ORG O", "O B-LOC B-ORG O"),
    "a part that equals the next token, and a token left out": (
        [["narrowly", "won", "New-York", "York"]], ["won O", "New- B-LOC", "York O", "York B-ORG"],
        "exact cut-token cut-token exact", "? O ? B-ORG", "? O B-LOC B-ORG"),
    "a word that shares a letter by chance": ([["Germany", "won"]], ["in O", "won O"],
        "replaced-token exact", "? O", "O O"),
    "tokens merged with a slash, and a token left out": ([["narrowly", "US", "/", "UK", "won"]],
        ["US/UK B-LOC", "won O"], "merged-tokens exact", "? ? ? ? O", "? B-LOC ? ? O"),
    "an empty reference token": ([["Malta", "", "won"]], ["Malta B-LOC", " O", "won/LOC O"],
        "exact exact glued-suffix", "B-LOC O O", "B-LOC O O"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_fault_has_its_kind_and_its_labels(name: str) -> None:
    reference, cells, kinds, missing, keep = CASES[name]
    answer = lines(*cells)
    found, by_default = placed(reference, answer)
    assert words(found) == kinds.split()
    assert labels_of(answer, by_default) == missing.split()
    assert labels_of(answer, placed(reference, answer, "keep")[1]) == keep.split()
    is_spoilt = "?" in missing or name in {"a label typed as a token", "a token put in"}
    want = ["?"] * len(keep.split()) if is_spoilt else keep.split()
    assert labels_of(answer, placed(reference, answer, "drop-sentence")[1]) == want


def test_only_the_spoilt_sentence_drops() -> None:
    reference = [["Malta", "won"], ["Maltese", "won"], ["It", "lost"]]
    answer = lines("Malta B-LOC", "won O", "|", "Malt O", "ese O", "won O", "|", "It O", "lost O")
    result = placed(reference, answer, "drop-sentence")[1]
    assert labels_of(answer, result) == ["B-LOC", "O", "?", "?", "O", "O"]
    assert result.reasons() == {Placement.DROPPED_SENTENCE.text: 3}


def test_sentences_cut_and_joined_elsewhere_keep_their_labels() -> None:
    reference = [["Malta", "won"], ["It", "lost"]]
    answer = lines("Malta B-LOC", "|", "won O", "It O", "lost O")
    found, result = placed(reference, answer, "drop-sentence")
    assert labels_of(answer, result) == ["B-LOC", "O", "O", "O"]
    assert [(f.kind, f.line, f.sentence, f.position) for f in found.faults] == [
        ("sentence-cut", 3, 0, 1),
        ("sentence-join", 4, 1, 0),
    ]


def test_a_sentence_without_an_answer_is_one_fault() -> None:
    reference = [["Malta", "won"], ["It", "lost"], ["Much", "later"]]
    found = align(reference, lines("Malta B-LOC", "won O", "|", "Much O", "later O"))
    assert [(f.kind, f.line, f.sentence, f.reference) for f in found.faults] == [
        ("missing-sentence", 2, 1, "It lost")
    ]
    assert not found.altered.any()


def test_a_fault_says_where_and_what() -> None:
    reference = [["It", "won"], ["Maltese", "of", "Malta"]]
    answer = lines(
        *("It O", "won O", " I-PER", "|", " B-PER"),
        *("Malt B-LOC", "ese O", "hey O", "Malta B-LOC", "|", " B-ORG"),
    )
    assert [tuple(fault) for fault in align(reference, answer).faults] == [
        ("empty-token", 3, 0, 1, "", "I-PER", ""),
        ("empty-token", 5, 1, -1, "", "B-PER", ""),
        ("cut-token", 6, 1, 0, "Malt", "B-LOC", "Maltese"),
        ("cut-token", 7, 1, 0, "ese", "O", "Maltese"),
        ("replaced-token", 8, 1, 1, "hey", "O", "of"),
        ("empty-token", 11, 1, 2, "", "B-ORG", ""),
    ]


def test_a_missing_token_names_the_line_that_it_should_follow() -> None:
    reference = [["It", "narrowly", "won"], ["Oh", "lost"]]
    faults = align(reference, lines("It O", "won O", "|", "lost O")).faults
    assert [tuple(fault) for fault in faults] == [
        ("missing-token", 2, 1, 0, "", "", "Oh"),
        ("missing-token", 1, 0, 1, "", "", "narrowly"),
    ][::-1]


def test_parts_that_lose_are_told_apart() -> None:
    answer = lines("Malt B-LOC", "e O", "s B-LOC", "e B-MISC")
    result = placed([["Maltese"]], answer, "keep")[1]
    assert [Placement(code) for code in result.placement.tolist()] == [
        Placement.PLACED,
        Placement.OTHER_PART,
        Placement.OTHER_PART,
        Placement.OVERRULED_PART,
    ]


def test_a_line_without_a_label_is_unlabelled() -> None:
    answer = [AnswerToken("Malta", "", 1, 0), AnswerToken("won", "O", 2, 0)]
    result = placed([["Malta", "won"]], answer)[1]
    assert labels_of(answer, result) == ["?", "O"]
    assert result.reasons() == {Placement.UNLABELLED.text: 1}


def test_a_part_without_a_label_does_not_speak_for_the_token() -> None:
    answer = [AnswerToken("Malt", "", 1, 0), AnswerToken("ese", "O", 2, 0)]
    assert labels_of(answer, placed([["Maltese"]], answer, "keep")[1]) == ["O"]


def test_the_name_of_the_outside_label_is_free() -> None:
    answer = lines("Malt none", "ese LOC")
    found = align([["Maltese"]], answer, outside="none")
    result = place(found, np.array([0, 1]), ["none", "LOC"], "keep", outside="none")
    assert result.source.tolist() == [1]


def test_types_that_do_not_show_themselves_can_be_given() -> None:
    answer = lines("Malta/B-MI O", "SC O")
    assert words(align([["Malta"]], answer)) == ["altered-token", "inserted-token"]
    assert words(align([["Malta"]], answer, types=["MISC"])) == ["mangled-glue", "label-as-token"]


def test_a_glued_type_is_never_read_as_a_label() -> None:
    answer = lines("Malta/LOC O")
    assert labels_of(answer, placed([["Malta"]], answer, types=["LOC"])[1]) == ["O"]


def test_a_token_of_both_sides_keeps_a_type_at_its_end() -> None:
    repair = LabelRepair.learn(["port/LOC", "port"], ["port/LOC", "port"], ["B-LOC"])
    assert repair.strip("port/LOC") == "port/LOC"


@given(st.text("LOC/B-x"))
def test_no_token_is_stripped_to_nothing(token: str) -> None:
    repair = LabelRepair.learn([], [], [], types=["LOC", "B", ""])
    assert bool(repair.strip(token)) == bool(token)


# ---------------------------------------------------------------------------------------------
# Mutations: clean documents made dirty in known ways.
# ---------------------------------------------------------------------------------------------


@dataclass
class Piece:
    """A line in the making: its text, and the token in which its first letter lies (-1 none)."""

    text: str
    token: int
    whole: bool


def clean_pieces(reference: Reference) -> list[Piece]:
    return [Piece(t, n, whole=True) for n, t in enumerate(t for s in reference for t in s)]


def glued(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    tails = ["", "", "", "/LOC", "/B-MISC"]
    return [Piece(p.text + rng.choice(tails), p.token, p.whole) for p in pieces]


def cut(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    """Cut lines anywhere, also inside a glued label; what holds only a label has no token."""
    out: list[Piece] = []
    for piece in pieces:
        at = rng.randrange(1, len(piece.text)) if len(piece.text) > 1 and rng.random() < 0.3 else 0
        if not at:
            out.append(piece)
            continue
        n_letters = len(piece.text.partition("/")[0])
        bare = piece.whole and at == n_letters  # only the glued label is cut off
        out.append(Piece(piece.text[:at], piece.token, whole=bare))
        out.append(Piece(piece.text[at:], piece.token if at < n_letters else -1, whole=False))
    return out


def merged(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    out = pieces[:1]
    for piece in pieces[1:]:
        if rng.random() < 0.15:
            text = out[-1].text + piece.text
            token = out[-1].token if out[-1].token >= 0 else piece.token
            out[-1] = Piece(text, token, whole=False)
        else:
            out.append(piece)
    return out


def with_empty(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    out: list[Piece] = []
    for piece in pieces:
        out += [Piece("", -1, whole=False)] * (rng.random() < 0.1)
        out.append(piece)
    return out


def deleted(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    return [piece for piece in pieces if rng.random() < 0.9]


def with_strangers(pieces: list[Piece], rng: random.Random) -> list[Piece]:
    out: list[Piece] = []
    for piece in pieces:
        out += [Piece("#####", -1, whole=False)] * (rng.random() < 0.1)
        out.append(piece)
    return out


def as_answer(pieces: Sequence[Piece], rng: random.Random) -> list[AnswerToken]:
    """Return every line a label of its own, and sentences cut anywhere."""
    numbers = accumulate(int(rng.random() < 0.2) for _ in pieces)
    return [
        AnswerToken(p.text, f"B-{n}", n + 1, s)
        for n, (p, s) in enumerate(zip(pieces, numbers, strict=True))
    ]


def dirty(
    reference: Reference, steps: Sequence[Callable[..., list[Piece]]], rng: random.Random
) -> tuple[list[Piece], list[AnswerToken]]:
    pieces = clean_pieces(reference)
    for step in steps:
        pieces = step(pieces, rng)
    return pieces, as_answer(pieces, rng)


few_letters = st.lists(
    st.lists(st.text("abC", min_size=1, max_size=5), min_size=1, max_size=8), min_size=1, max_size=6
)
distinct = st.builds(
    lambda sizes: [
        [f"<{start + n}-{start + n}>" for n in range(size)]
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
    ],
    st.lists(st.integers(1, 12), min_size=1, max_size=8),
)
seeds = st.builds(random.Random, st.integers(0, 2**32))
TYPES = ["LOC", "MISC"]


@given(few_letters, seeds)
def test_cuts_merges_glue_and_empty_lines_never_move_a_label(
    reference: list[list[str]], rng: random.Random
) -> None:
    """Where all letters are there, every line lands where it begins, repeated tokens or not."""
    pieces, answer = dirty(reference, [glued, cut, with_empty], rng)
    found = align(reference, answer, types=TYPES)
    assert found.target.tolist() == [piece.token for piece in pieces]
    glueless = clean_pieces(reference)
    pieces, answer = dirty(reference, [cut, merged, cut, with_empty], rng)
    starts = [*accumulate((len(p.text) for p in glueless), initial=0)]
    begins = accumulate((len(p.text) for p in pieces), initial=0)
    want = [
        int(np.searchsorted(starts, at, side="right")) - 1 if p.text else -1
        for p, at in zip(pieces, begins, strict=False)
    ]
    assert align(reference, answer).target.tolist() == want


@given(few_letters, seeds)
def test_a_whole_line_keeps_its_label_and_a_cut_one_is_listed(
    reference: list[list[str]], rng: random.Random
) -> None:
    pieces, answer = dirty(reference, [glued, cut, with_empty], rng)
    found, result = placed(reference, answer, types=TYPES)
    assert [code == Placement.PLACED for code in result.placement.tolist()] == [
        p.whole for p in pieces
    ]
    listed = {fault.line for fault in found.faults}
    assert {n + 1 for n, p in enumerate(pieces) if not p.whole} <= listed


@given(distinct, seeds)
def test_no_label_lands_on_a_wrong_token_whatever_was_cut_left_out_or_put_in(
    reference: list[list[str]], rng: random.Random
) -> None:
    steps = [deleted, glued, cut, with_strangers, with_empty]
    pieces, answer = dirty(reference, steps, rng)
    found, result = placed(reference, answer, types=TYPES)
    for token, line in enumerate(result.source.tolist()):
        assert line < 0 or pieces[line].token == token
    placed_or_listed = {f.line for f in found.faults} | {
        answer[n].line for n in result.source.tolist() if n >= 0
    }
    assert {line.line for line in answer} <= placed_or_listed


@given(distinct, seeds)
def test_what_is_left_out_or_put_in_costs_no_other_token_its_label(
    reference: list[list[str]], rng: random.Random
) -> None:
    pieces, answer = dirty(reference, [deleted, glued, with_strangers, with_empty], rng)
    result = placed(reference, answer, types=TYPES)[1]
    assert {n for n in result.source.tolist() if n >= 0} == {
        n for n, piece in enumerate(pieces) if piece.whole
    }


@given(distinct, seeds)
def test_every_sentence_that_was_touched_drops_and_no_other(
    reference: list[list[str]], rng: random.Random
) -> None:
    pieces, answer = dirty(reference, [deleted, cut, glued, with_empty], rng)
    result = placed(reference, answer, "drop-sentence", types=TYPES)[1]
    whole = {piece.token: n for n, piece in enumerate(pieces) if piece.whole}
    want: list[int] = []
    for start, sentence in zip(accumulate(map(len, reference), initial=0), reference, strict=False):
        tokens = range(start, start + len(sentence))
        intact = all(token in whole for token in tokens)
        want += [whole[token] if intact else -1 for token in tokens]
    assert result.source.tolist() == want


# ---------------------------------------------------------------------------------------------
# Any input at all.
# ---------------------------------------------------------------------------------------------

tokens = st.one_of(
    st.text("abC/B-LO ", max_size=6), st.sampled_from(["", "/", "a/LOC", "B-LOC"]), st.text()
)
anything = st.lists(st.lists(tokens, max_size=6), max_size=6)
any_answer = st.lists(
    st.builds(
        AnswerToken,
        tokens,
        st.sampled_from(["O", "B-LOC", "I-LOC", "", "x", "B-"]),
        st.integers(0, 20),
        st.integers(),
    ),
    max_size=20,
)


@given(anything, any_answer, st.lists(st.text(max_size=3), max_size=3))
def test_no_input_raises_and_everything_adds_up(
    reference: list[list[str]], answer: list[AnswerToken], types: list[str]
) -> None:
    found = align(reference, answer, types=types)
    n_tokens = sum(map(len, reference))
    assert len(found.altered) == n_tokens
    assert len(found.target) == len(found.kind) == len(answer)
    known = [token for token in found.target.tolist() if token >= 0]
    assert known == sorted(known)
    chosen = speakers(found.target, [line.label for line in answer], n_tokens, "O")
    for token, line in enumerate(chosen.tolist()):
        assert (line >= 0) == (token in known)
        assert line < 0 or found.target[line] == token
    faults = Counter(fault.kind for fault in found.faults)
    assert set(faults) <= set(FAULT_KINDS)
    assert Counter(w for w in words(found) if w != "exact") == Counter(
        {kind.word: faults[kind.word] for kind in Kind if faults[kind.word]}
    )
    offsets = np.array([0, *accumulate(map(len, reference))], np.int64)
    for rule in ALTERED:
        result = place(found, offsets, [line.label for line in answer], rule)
        used = [line for line in result.source.tolist() if line >= 0]
        assert len(set(used)) == len(used) == Counter(result.placement.tolist())[Placement.PLACED]
        assert len(used) + sum(result.reasons().values()) == len(answer)


@given(anything)
def test_an_identical_document_places_every_label(reference: list[list[str]]) -> None:
    answer = [
        AnswerToken(token, "O", 1, number)
        for number, sentence in enumerate(reference)
        for token in sentence
    ]
    for rule in ALTERED:
        found, result = placed(reference, answer, rule)
        assert found.faults == ()
        assert result.source.tolist() == list(range(len(answer)))
        assert result.reasons() == {}


@given(anything, any_answer)
def test_altered_tokens_have_a_line_that_says_so_or_none(
    reference: list[list[str]], answer: list[AnswerToken]
) -> None:
    found = align(reference, answer)
    for target, code in zip(found.target.tolist(), found.kind.tolist(), strict=True):
        if target >= 0 and Kind(code) in ALTERING:
            assert found.altered[target]
    for fault in found.faults:
        if fault.kind == "missing-token":
            start = sum(map(len, reference[: fault.sentence]))
            assert found.altered[start + fault.position]


# ---------------------------------------------------------------------------------------------
# Equal runs.
# ---------------------------------------------------------------------------------------------


@given(st.text("ab"), st.text("ab"))
def test_blocks_are_equal_runs_in_order(a: str, b: str) -> None:
    blocks = match(a, b)
    for i, j, size in blocks:
        assert size > 0
        assert a[i : i + size] == b[j : j + size]
    for one, two in pairwise(blocks):
        assert one.i + one.size <= two.i
        assert one.j + one.size <= two.j


@given(seeds)
def test_long_sequences_lose_only_what_differs(rng: random.Random) -> None:
    """Repeated tokens and 600 of them: too many to compare all with all."""
    a = [rng.choice("abcdefgh") + str(rng.randrange(40)) for _ in range(600)]
    gone = set(rng.sample(range(600), 5))
    b = [token for n, token in enumerate(a) if n not in gone]
    assert sum(block.size for block in match(a, b)) == len(b)


def test_what_nothing_splits_and_is_too_large_stays_unmatched() -> None:
    a, b = ["x", *["a", "b"] * 600], ["y", *["b", "b", "a"] * 600]
    assert sum(block.size for block in match(a, b)) <= 1
