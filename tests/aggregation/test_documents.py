"""Spans that every worker passed over: against plain counting, and against the simulated truth."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.documents import Missed, _chao, _places, find_missed
from goldspan.aggregation.mixture import posterior_of_labels
from goldspan.crowd import CrowdBuilder
from goldspan.spans import Tagged, find_spans

N_DOCUMENTS = 80
SENTENCES = 4


def novel(*, seed=0, n_workers=4, found=0.5, is_name=True, n_answers=None, is_scattered=False):
    """Make documents with a person in every sentence, a bank in one, and its word in the others."""
    rng = np.random.default_rng(seed)
    names, banks = _words(rng), _words(rng)
    builder = CrowdBuilder()
    for d in range(N_DOCUMENTS):
        for s in range(SENTENCES):
            words = ["Then", names[d], "said", "that", "the", banks[d], "was", "far", "off"]
            gold = ["O"] * len(words)
            if is_name or s == 0:
                gold[1] = "B-PER"
            if s == 0:
                gold[5] = "B-ORG"
            order = rng.permutation(len(words)) if is_scattered else None
            shown = [words[i] for i in order] if order is not None else words
            truth = [gold[i] for i in order] if order is not None else gold
            item = builder.add_item(f"{d}-{s}", shown, gold=truth, group=f"d{d}")
            for w in range(n_workers if n_answers is None else n_answers):
                tags = [t if t == "O" or rng.random() < found else "O" for t in gold]
                if s == 0:  # somebody finds what the document is about
                    tags = gold if w < 2 else tags
                if order is not None:
                    tags = [tags[i] for i in order]
                builder.add_answer(item, f"w{w}", tags)
    return builder.build()


def _words(rng):
    """Make a word for every document that says nothing by how it is spelled."""
    letters = rng.integers(ord("a"), ord("z") + 1, size=(N_DOCUMENTS, 7))
    return ["".join(map(chr, row)) for row in letters.tolist()]


def fitted(crowd, method="bsc-cm"):
    return goldspan.aggregate(crowd.with_gold(None), method).posterior


def test_names_that_all_workers_missed_are_found_and_other_uses_of_a_word_are_not():
    crowd = novel()
    missed = find_missed(crowd, fitted(crowd), None)
    places = np.flatnonzero(missed.codes >= 0)
    gold = crowd.gold_tagged.codes
    assert len(places) == missed.n_places > 5
    assert (missed.codes[places] == gold[places]).all()
    assert missed.probability > 0.7


def test_a_word_that_means_something_else_elsewhere_is_left_alone():
    crowd = novel(is_name=False)
    assert find_missed(crowd, fitted(crowd), None) is None


def test_workers_who_miss_nothing_leave_nothing_to_be_found():
    crowd = novel(found=1.0)
    assert find_missed(crowd, fitted(crowd), None) is None


def test_what_nobody_ever_marks_but_in_known_items_is_not_looked_for_in_others():
    crowd = novel()
    known = np.full((crowd.n_items, 9), -1, np.int16)
    known[1::8] = crowd.gold_tagged.codes.reshape(-1, 9)[1::8]
    known[1::8, 2] = crowd.tagset.tags.index("B-PER")  # "said", which all others leave
    posterior = fitted(crowd)
    (shard,) = posterior.shards
    posterior = replace(posterior, shards=[replace(shard, gold=known.ravel())])
    missed = find_missed(crowd, posterior, None)
    assert (missed.codes.reshape(-1, 9)[:, 2] < 0).all()
    assert missed.n_places > 3


def test_one_answer_per_item_says_nothing_of_what_all_miss():
    crowd = novel(n_answers=1)
    assert find_missed(crowd, fitted(crowd), None) is None


def test_single_labels_and_tokens_without_words_have_no_documents():
    labels = goldspan.read_crowd(b"worker,item,label\na,1,x\nb,1,x\na,2,y\n", format="long")
    assert find_missed(labels, fitted(labels, "ds"), None) is None


def test_items_without_a_document_are_documents_of_their_own():
    crowd = novel()
    groups = [name if n % 8 < 4 else None for n, name in enumerate(crowd.groups.to_pylist())]
    some = replace(crowd, groups=pa.array(groups, crowd.groups.type))
    missed = find_missed(some, fitted(some), None)
    assert missed is not None
    item = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
    assert all(groups[n] is not None for n in item[missed.codes >= 0])


def test_chao_counts_as_the_formula_says():
    marks = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 3])
    answers = np.full(len(marks), 4.0)
    none = np.zeros(len(marks))
    assert _chao(marks, answers, none) == pytest.approx(3 / 4 * 4 * 3 / (2 * (2 + 1)))
    # One of those that a single worker marked would be by mistake; then all of them.
    assert _chao(marks, answers, none + 0.1) == pytest.approx(3 / 4 * 3 * 2 / (2 * (2 + 1)))
    assert _chao(marks, answers, none + 0.4) == 0


def test_chao_is_near_the_number_that_was_missed():
    rng = np.random.default_rng(1)
    marks = rng.binomial(5, 0.45, size=4000)
    seen, answers = marks[marks > 0], np.full(4000, 5.0)
    found = _chao(seen, answers, np.zeros(len(seen)))
    assert found == pytest.approx((marks == 0).sum(), rel=0.2)


def test_marks_that_are_mistakes_do_not_count_as_found():
    rng = np.random.default_rng(1)
    builder = CrowdBuilder()
    for n in range(10):
        truth = ["B-X" if k % 7 == 0 else "O" for k in range(30)]
        words = [f"x{k}" if tag != "O" else f"w{rng.integers(20)}" for k, tag in enumerate(truth)]
        item = builder.add_item(str(n), words, group="d")
        for w in range(4):
            tags = [("B-X" if t == "O" else "O") if rng.random() < 0.1 else t for t in truth]
            builder.add_answer(item, f"w{w}", tags)
    crowd = builder.build()
    votes = goldspan.aggregate(crowd, "mv-token", ties="inside").codes
    posterior = posterior_of_labels(crowd, votes, FitContext().runner)
    assert find_missed(crowd, posterior, None) is None


def test_places_are_those_that_a_plain_search_finds():
    crowd = novel(seed=3)
    gold = find_spans(Tagged(crowd.gold_tagged.codes, crowd.offsets), crowd.tagset)
    found = gold.take(np.arange(len(gold)) % 3 == 0)
    words, groups = crowd.tokens.flatten().to_pylist(), crowd.groups.to_pylist()
    item_of = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
    expected = set()
    for n, at in itertools.product(range(len(found)), range(crowd.n_tokens)):
        begin, kind = int(found.start[n]), int(found.type[n])
        same = groups[item_of[at]] == groups[found.item[n]] and words[at] == words[begin]
        if same and at != begin:
            expected.add((int(item_of[at]), at, at + 1, kind))
    places = _places(crowd, found)
    assert {tuple(row) for row in places.spans.tolist()} == expected
    answers = crowd.latest
    for (item, at, _, kind), marks, others in zip(
        places.spans.tolist(), places.marks, places.others, strict=True
    ):
        own = answers.codes[crowd.token_of == at]
        right = crowd.tagset.index[f"B-{crowd.tagset.types[kind]}"]
        assert (own == right).sum() == marks
        assert (own != crowd.tagset.outside).sum() == others
        assert item == item_of[at]
    # How often one worker alone gives a name to a word that is none of the words found.
    elsewhere = np.ones(crowd.n_tokens, np.bool_)
    elsewhere[[*found.start.tolist(), *places.spans[:, 1].tolist()]] = False
    for kind, name in enumerate(crowd.tagset.types):
        gave = answers.codes == crowd.tagset.index[f"B-{name}"]
        counts = np.bincount(crowd.token_of[gave], minlength=crowd.n_tokens)
        rate = (counts[elsewhere] == 1).sum() / elsewhere.sum()
        assert places.mistake[places.spans[:, 3] == kind] == pytest.approx(rate)


def test_beside_a_posterior_places_hold_their_spans_with_the_probability():
    crowd = novel(n_workers=3)
    before = fitted(crowd)
    codes = np.full(crowd.n_tokens, -1, np.int16)
    at = 1 + int(crowd.offsets[7])
    codes[at] = crowd.tagset.index["B-PER"]
    after = Missed(codes, 0.75, 1).beside(before).marginals(np.inf).probs
    plain = before.marginals(np.inf).probs
    forced = np.zeros(plain.shape[1])
    forced[codes[at]] = 1
    assert after[at] == pytest.approx(0.25 * plain[at] + 0.75 * forced, abs=1e-5)
    elsewhere = np.ones(crowd.n_tokens, np.bool_)
    elsewhere[crowd.offsets[7] : crowd.offsets[8]] = False
    assert np.allclose(after[elsewhere], plain[elsewhere], atol=1e-6)


def test_known_truth_is_never_overruled():
    crowd = novel()
    missed = find_missed(crowd, fitted(crowd), None)
    at = int(np.flatnonzero(missed.codes >= 0)[0])
    own = np.zeros(crowd.n_tokens, np.bool_)
    item = int(np.searchsorted(crowd.offsets, at, side="right")) - 1
    own[crowd.offsets[item] : crowd.offsets[item + 1]] = True
    known = Missed(np.where(own, crowd.tagset.outside, -1).astype(np.int16), 1.0, 0)
    posterior = known.beside(fitted(crowd)).parts[1]
    again = find_missed(crowd, posterior, None)
    assert again is not None
    assert (again.codes[own] == -1).all()


def test_a_method_finds_what_all_workers_missed():
    crowd = novel(seed=5, found=0.4, is_scattered=True)
    blind = crowd.with_gold(None)
    found = {d: goldspan.aggregate(blind, "bsc-seq+crf", documents=d) for d in ("auto", "none")}
    f1 = {d: goldspan.score(result, crowd).f1 for d, result in found.items()}
    assert f1["auto"] > f1["none"]
    assert "words of a span found elsewhere" in " ".join(found["auto"].notes)
    assert "words of a span found elsewhere" not in " ".join(found["none"].notes)


def test_the_answer_does_not_depend_on_the_order_of_items():
    crowd = novel(seed=2)
    missed = find_missed(crowd, fitted(crowd), None)
    order = np.random.default_rng(0).permutation(crowd.n_items)
    moved = crowd.select_items(order)
    again = find_missed(moved, fitted(moved), None)
    assert again.n_places == missed.n_places
    assert again.probability == pytest.approx(missed.probability)
    assert replace(again, codes=missed.codes).note == missed.note
