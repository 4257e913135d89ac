"""Uncertainty: against all labels and, for taggers, against all tag sequences, one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import goldspan
from goldspan.errors import InputError
from goldspan.selection import select_items
from goldspan.selection.greedy import Spending
from goldspan.selection.schedule import get_selector
from goldspan.selection.uncertainty import fill
from goldspan.tagger import CRF, HMM, Text

NAMES = ("least-confidence", "margin", "entropy", "mnlp", "token-entropy", "span-change")


@pytest.fixture(scope="module")
def crowd(root):
    return goldspan.read_crowd(root / "examples" / "crowd.tsv")


@pytest.fixture(scope="module")
def tagger(crowd):
    some = crowd.select_items(np.arange(30))
    tags = crowd.tagset.decode(some.gold_tagged)
    return CRF(templates=["lower", "kind"], max_iter=15).fit(some.tokens_list, tags)


SHORT = ["Kestrel Bay", "Ana sings", "the council met", "Bo", "Bay Ana of"]


def every_path(tagger, words):
    """Return all tag sequences of an item with their probabilities."""
    p = tagger.log_potentials([words])
    paths, scores = [], []
    for codes in product(range(len(p.start)), repeat=len(words)):
        score = p.start[codes[0]] + p.end[codes[-1]]
        score += sum(p.unary[t, c] for t, c in enumerate(codes))
        score += sum(p.step[a, b] for a, b in pairwise(codes))
        paths.append(codes)
        scores.append(score)
    probs = np.exp(np.array(scores) - np.logaddexp.reduce(scores))
    return paths, probs


def spans_of(tagger, codes):
    tags = [tagger.codec_.tags[code] for code in codes]
    return {(s.type, s.start, s.end) for s in goldspan.spans.parse(tags, tagger.codec_.encoding)}


def by_hand(name, tagger, words):
    paths, probs = every_path(tagger, words)
    ordered = np.sort(probs)[::-1]
    if name == "least-confidence":
        return 1 - ordered[0]
    if name == "margin":
        return 1 - (ordered[0] - ordered[1])
    if name == "entropy":
        return -sum(p * np.log(p) for p in probs if p > 0)
    if name == "mnlp":
        return -np.log(ordered[0]) / len(words)
    if name == "token-entropy":
        total = 0.0
        for t in range(len(words)):
            marginal = np.zeros(len(tagger.codec_.tags))
            for path, p in zip(paths, probs, strict=True):
                marginal[path[t]] += p
            total -= sum(p * np.log(p) for p in marginal if p > 0)
        return total / len(words)
    best = spans_of(tagger, paths[int(np.argmax(probs))])
    return sum(
        p * len(best ^ spans_of(tagger, path))
        for path, p in zip(paths, probs, strict=True)
        if p > 0
    )


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_sequences_are_those_of_all_paths_written_out(name, tagger):
    found = get_selector(name).select(SHORT, model=tagger)
    scores = dict(zip(found.item.tolist(), found.gain.tolist(), strict=True))
    # Spans below 0.001 are not listed: at most a few of them per item.
    close = {"abs": 0.02} if name == "span-change" else {"rel": 1e-9, "abs": 1e-12}
    for n, text in enumerate(SHORT):
        assert scores[n] == pytest.approx(by_hand(name, tagger, text.split()), **close)


def test_an_hmm_is_a_tagger_too(crowd):
    some = crowd.select_items(np.arange(30))
    model = HMM().fit(some.tokens_list, crowd.tagset.decode(some.gold_tagged))
    assert len(select_items(crowd, "mnlp", model=model, n=5, labelled=np.arange(30))) == 5


def test_a_long_sentence_s_best_path_does_not_underflow(tagger):
    long = ["Zzz"] * 3000
    found = select_items([long, ["Zzz"]], "mnlp", model=tagger)
    assert np.isfinite(found.gain).all()


def test_scores_do_not_depend_on_the_blocks(tagger, crowd, monkeypatch):
    whole = select_items(crowd, "mnlp", model=tagger)
    monkeypatch.setattr("goldspan.selection.uncertainty.BLOCK_TOKENS", 40)
    parts = select_items(crowd, "mnlp", model=tagger)
    assert parts.item.tolist() == whole.item.tolist()
    assert parts.gain == pytest.approx(whole.gain, rel=1e-12)


def test_a_tagger_that_never_saw_documents_sees_none(crowd):
    some = crowd.select_items(np.arange(30))
    model = CRF(templates=["lower", "doc_lower|kind"], max_iter=5)
    model.fit(some.tokens_list, crowd.tagset.decode(some.gold_tagged))
    assert crowd.groups is not None
    alone = replace(crowd, groups=None)
    grouped, single = (select_items(pool, "mnlp", model=model) for pool in (crowd, alone))
    assert grouped.gain == pytest.approx(single.gain, rel=1e-12)


def test_a_tagger_of_documents_sees_them_whole(crowd):
    groups = np.asarray(crowd.groups.to_pylist())
    text = Text.of(crowd.tokens_list, groups)
    model = CRF(templates=["lower", "doc_lower|kind"], max_iter=5)
    model.fit(text, crowd.tagset.decode(crowd.gold_tagged))
    whole = select_items(crowd, "mnlp", model=model)
    alone = replace(crowd, groups=None)
    assert select_items(alone, "mnlp", model=model).gain.tolist() != whole.gain.tolist()
    part = select_items(crowd, "mnlp", model=model, labelled=np.arange(100))
    scores = dict(zip(whole.item.tolist(), whole.gain.tolist(), strict=True))
    assert part.gain == pytest.approx([scores[item] for item in part.item.tolist()], rel=1e-12)


PROBS = np.array([[0.7, 0.2, 0.1], [0.45, 0.45, 0.1], [0.4, 0.3, 0.3], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("name", "scores"),
    [
        ("least-confidence", [0.3, 0.55, 0.6, 0.0]),
        ("margin", [0.5, 1.0, 0.9, 0.0]),
        ("entropy", [0.8018185525, 0.9489149993, 1.0888999753, 0.0]),
        ("token-entropy", [0.8018185525, 0.9489149993, 1.0888999753, 0.0]),
        ("mnlp", [-np.log(0.7), -np.log(0.45), -np.log(0.4), 0.0]),
    ],
)
def test_scores_of_labels_are_the_written_ones(name, scores):
    found = select_items(np.eye(4), name, model=PROBS)
    assert dict(zip(found.item.tolist(), found.gain, strict=True)) == pytest.approx(
        dict(enumerate(scores))
    )


def test_a_classifier_is_asked_about_the_unlabelled_rows_only():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    model = LogisticRegression().fit(rows, rows[:, 0] > 0)
    found = select_items(rows, "margin", model=model, n=5, labelled=np.arange(30))
    probs = model.predict_proba(rows[30:])
    best = 30 + np.argsort(np.abs(probs[:, 0] - probs[:, 1]))[:5]
    assert found.item.tolist() == best.tolist()


@pytest.mark.parametrize(
    ("budget", "most", "kept"),
    [(5, 9, [0, 3]), (6, 9, [0, 2]), (7, 9, [0, 2, 3]), (7, 1, [0]), (7, 0, []), (1, 9, [3])],
)
def test_a_ranking_is_taken_while_the_purse_lasts(budget, most, kept):
    order, spend = np.array([0, 1, 2, 3]), np.array([4.0, 9.0, 2.0, 1.0])
    assert fill(order, Spending(most, spend, float(budget))).tolist() == kept


def test_the_score_may_be_divided_by_the_cost():
    found = select_items(np.eye(2), "entropy(by_cost=True)", model=PROBS[1:3], costs=[1, 2], n=1)
    assert found.item.tolist() == [0]


def test_density_prefers_what_is_like_others():
    texts = ["a b", "a b c", "a b d", "x"]
    probs = np.full((4, 2), 0.5)
    found = select_items(texts, "margin(density=1)", model=probs)
    assert found.item_ids[-1] == "3"
    assert found.gain[0] < 1


def test_a_diverse_batch_does_not_hold_the_same_thing_twice():
    table = pl.DataFrame({"x": ["a", "a", "a", "b"]})
    probs = np.array([[0.5, 0.5], [0.51, 0.49], [0.52, 0.48], [0.6, 0.4]])
    plain = select_items(table, "margin", model=probs, n=2)
    diverse = select_items(table, "margin(top=2)", model=probs, n=2)
    assert plain.item.tolist() == [0, 1]
    assert sorted(diverse.item.tolist())[1] == 3
    assert diverse.facts["diverse"] == 2
    assert len(select_items(table, "margin(top=2)", model=probs)) == 4


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (None, "give one"),
        (object(), "not object"),
        (np.ones((2, 2)), "2 rows, one per item|add up to 1"),
        (np.full((3, 2), 0.5), "2 rows, one per item"),
        (np.array([[2.0, -1.0], [0.5, 0.5]]), "not be negative"),
        ([LogisticRegression(), LogisticRegression()], "asks one model"),
    ],
)
def test_what_is_no_model_is_refused(model, words):
    with pytest.raises(InputError, match=words):
        select_items(np.eye(2), "margin", model=model)


def test_spans_need_a_tagger_with_spans(tagger):
    with pytest.raises(InputError, match="needs a tagger"):
        select_items(np.eye(4), "span-change", model=PROBS)
    plain = CRF(encoding="PLAIN", templates=["lower"], max_iter=3).fit(
        [["a"], ["b"]], [["x"], ["y"]]
    )
    with pytest.raises(InputError, match="PLAIN tags have none"):
        select_items(["a"], "span-change", model=plain)
    with pytest.raises(InputError, match="reads words"):
        select_items(np.eye(4), "mnlp", model=tagger)


@pytest.mark.parametrize("params", [{"top": 0.5}, {"density": -1}, {"top": float("nan")}])
def test_parameters_out_of_range_are_refused(params):
    with pytest.raises(InputError, match="must be a number"):
        get_selector("margin", **params).select(np.eye(4), model=PROBS)
