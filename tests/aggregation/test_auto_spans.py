"""Right spans are told from wrong ones by hidden answers: counted and fitted another way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import goldspan
from goldspan.aggregation import auto, auto_spans
from goldspan.aggregation.auto_spans import (
    BELIEVED,
    RIGHT,
    SHRINK,
    UNSURE,
    WRONG,
    Case,
    Confirmation,
    Evidence,
    Keys,
    Spans,
    given_spans,
    log_odds,
    support_of,
)
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.machines import answer_everything, split
from goldspan.spans import Tagged, find_spans


@pytest.fixture(scope="module")
def crowd():
    crowd = goldspan.read_crowd("examples/crowd.tsv").select_items(np.arange(80))
    return crowd.select_workers(np.unique(crowd.answers.worker).astype(np.intp))


def test_who_gave_a_span_is_counted_as_by_hand(crowd):
    keys = np.unique(given_spans(crowd, crowd.latest)[0])
    rng = np.random.default_rng(0)
    mass = rng.random((len(keys), 3))
    rows = Keys(crowd).rows(keys)
    spans = Spans(keys, rows, mass, mass > 0.5, np.zeros(len(keys)))
    support = support_of(Case(crowd, FitContext(), None, None, looks_for_missed=False), spans)
    by_item: dict[int, list[set]] = {}
    answers = crowd.latest
    for n, item in enumerate(answers.item.tolist()):
        codes = answers.codes[answers.offset[n] : answers.offset[n + 1]]
        one = find_spans(Tagged(codes, np.array([0, len(codes)])), crowd.tagset)
        by_item.setdefault(item, []).append(
            set(zip(one.start.tolist(), one.end.tolist(), one.type.tolist(), strict=True))
        )
    for n, (item, begin, stop, kind) in enumerate(rows.tolist()):
        given = [(begin, stop, kind) in said for said in by_item[item]]
        touching = [{k for a, b, k in said if a < stop and b > begin} for said in by_item[item]]
        assert support.n_answers[n] == len(given)
        assert support.given[n] == sum(given)
        assert support.alike[n] == sum(kind in kinds for kinds in touching) - sum(given)
        assert support.other[n] == sum(bool(kinds) and kind not in kinds for kinds in touching)
    assert np.array_equal(Keys(crowd).of(*rows.T), keys)


def made_up(n=3_000, seed=0, *, right=0.7, wrong=0.1):
    """Make spans of which half are right, a feature that tells, and one that does not."""
    rng = np.random.default_rng(seed)
    is_right = rng.random(n) < 0.5
    features = np.stack([is_right + rng.normal(size=n), rng.normal(size=n)], axis=1)
    given = rng.random(n) < np.where(is_right, right, wrong)
    mass, share = np.tile([0.5, 0.4, 0.6], (n, 1)), rng.random(n)
    mass[:, 2] = np.where(rng.random(n) < 0.7, is_right, 0.5)  # the third knows more
    return is_right, Evidence(
        features, mass, np.zeros(n), share, given, np.ones(n), np.zeros(n, bool)
    )


def test_what_is_learned_is_the_least_of_the_loss_written_down_plainly():
    _, cut = made_up(200)
    fitted = Confirmation.of([cut])
    z = (cut.features - cut.features.mean(axis=0)) / cut.features.std(axis=0)
    weight = BELIEVED / (BELIEVED + 200)

    def loss(theta):
        total = SHRINK / 2 * (theta[:3] ** 2).sum() + (theta[3:6] ** 2).sum() / 2
        total += ((theta[6:8] - RIGHT) ** 2).sum() / 2 + ((theta[8:] - WRONG) ** 2).sum() / 2
        shares = np.exp(theta[3:6]) / np.exp(theta[3:6]).sum()
        for n in range(200):
            mean = min(max(cut.mass[n] @ shares, UNSURE), 1 - UNSURE)
            p = expit(np.log(mean / (1 - mean)) + theta[0] + z[n] @ theta[1:3])
            r = expit(theta[6] + theta[7] * (cut.share[n] - 0.5))
            e = expit(theta[8] + theta[9] * (cut.share[n] - 0.5))
            y = p * r + (1 - p) * e
            total -= weight * np.log(y if cut.is_given[n] else 1 - y)
        return total

    plain = minimize(loss, np.concatenate([np.zeros(6), RIGHT, WRONG]), method="BFGS").x
    plain[3:6] = np.exp(plain[3:6]) / np.exp(plain[3:6]).sum()
    own = np.concatenate([fitted.weights, fitted.shares, fitted.right, fitted.wrong])
    assert own == pytest.approx(plain, abs=2e-3)
    assert fitted.shares.argmax() == 2
    assert Confirmation.from_numbers(fitted.numbers, 3).numbers == fitted.numbers


def test_features_that_go_with_confirmation_raise_what_is_believed():
    is_right, cut = made_up()
    fitted = Confirmation.of([cut, made_up(seed=1)[1]])
    assert fitted.weights[1] > 5 * abs(fitted.weights[2])
    probs = fitted.probs(cut.features, cut.mass, cut.missed)
    assert probs[is_right].mean() > probs[~is_right].mean() + 0.1
    assert (fitted.confidence(probs, cut.share) < probs).all()


def test_where_annotators_give_every_right_span_shared_mistakes_cost_nothing():
    _, cut = made_up(right=1.0, wrong=0.0)
    sure = np.array([20.0, 0.0])
    fitted = Confirmation(
        np.zeros(2), np.ones(2), np.zeros(3), np.ones(3) / 3, sure, WRONG, np.ones(1)
    )
    probs = fitted.probs(cut.features, cut.mass, cut.missed)
    assert fitted.confidence(probs, cut.share) == pytest.approx(probs)


def test_a_span_of_one_of_two_annotators_is_as_probable_as_if_the_other_was_asked_later():
    rng = np.random.default_rng(4)
    is_right, cut = made_up(right=0.6)
    cut = replace(cut, is_alone=is_right & (cut.share > 0.5))
    fitted = Confirmation.of([cut])
    first = fitted.probs(cut.features, cut.mass, cut.missed)[cut.is_alone].mean()
    right, wrong = expit(fitted.right @ (1, 0.5)), expit(fitted.wrong @ (1, 0.5))
    is_right = rng.random(400_000) < first
    is_given = rng.random(400_000) < np.where(is_right, right, wrong)
    assert fitted.tied[0] == pytest.approx(max(0.5, is_right[~is_given].mean()), abs=0.01)
    is_tied = cut.share < 0.2
    probs = fitted.probs(cut.features, cut.mass, cut.missed, is_tied)
    before = fitted.probs(cut.features, cut.mass, cut.missed)
    assert np.array_equal(probs[~is_tied], before[~is_tied])
    assert np.all(np.diff(probs[is_tied][np.argsort(before[is_tied])]) >= -1e-12)


def test_what_one_of_two_annotators_gave_is_kept_where_nobody_invents_anything():
    rng = np.random.default_rng(0)
    rows = []
    for n in range(120):
        words = [f"w{k}" for k in rng.integers(50, size=8)]
        true = np.where(rng.random(8) < 0.2, "B-X", "O")
        for who in (n % 5, (n + 1) % 5):
            tags = np.where(rng.random(8) < 0.5, true, "O").tolist()
            rows.append({"item": str(n), "worker": str(who), "tokens": words, "tags": tags})
    votes = goldspan.aggregate(rows, "mv-token", ties="inside")
    found = goldspan.aggregate(rows, "auto", rounds=1)
    assert (found.codes == votes.codes).mean() > 0.97


def test_spans_that_are_known_to_be_wrong_are_not_named():
    rng = np.random.default_rng(0)
    rows, gold = [], {}
    for n in range(60):
        words = rng.choice(["Anna", "in", "Paris", "met"], 6).tolist()
        true = ["O", *("B-PER" if word == "Anna" else "O" for word in words[1:])]
        tags = ["B-ORG", *true[1:]] if n < 5 else true
        gold |= {f"s{n}": true} if n < 5 else {}
        rows += [{"item": f"s{n}", "worker": w, "tokens": words, "tags": tags} for w in "abc"]
    found = goldspan.aggregate(rows, "auto", gold=gold, rounds=1)
    assert not any("ORG" in note for note in found.notes)


def test_log_odds_are_finite():
    assert np.isfinite(log_odds(np.array([0.0, 0.5, 1.0]))).all()


def test_a_model_that_nobody_declared_does_not_teach_the_crf():
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in range(40)]
    lines = ["token\t" + "\t".join([*(f"p{n}" for n in range(8)), "model"])]
    gold = []
    for _ in range(120):
        people = rng.choice(8, 3, replace=False)
        for word in rng.choice(words, 6):
            true = "B-X" if int(word[1:]) < 6 else "O"
            always = "B-X" if int(word[1:]) in (0, 1, 6, 7, 8) else "O"  # wrong on some words
            said = [
                ("?" if w not in people else true if rng.random() < 0.8 else "O") for w in range(8)
            ]
            lines.append("\t".join([word, *said, always]))
            gold.append(true)
        lines.append("")
    crowd = goldspan.read_crowd("\n".join(lines).encode(), format="wide")
    found = goldspan.aggregate(crowd, "auto", rounds=2)
    assert any("model answered nearly everything" in note for note in found.notes)
    tags = [tag for tags in found.tags for tag in tags]
    assert np.mean([a == b for a, b in zip(tags, gold, strict=True)]) > 0.97
    declared = goldspan.aggregate(crowd, "auto", rounds=2, models=["model"])
    assert np.mean(declared.codes == found.codes) > 0.98


def test_who_answers_everything_counts_but_teaches_no_crf(crowd, monkeypatch):
    few = crowd.with_gold(None).select_items(np.arange(60))
    busy = answer_everything(few)
    others = split(few, busy)[0]
    taught, learn = [], auto_spans._taught
    monkeypatch.setattr(auto, "teaches_well", lambda *_: True)
    monkeypatch.setattr(auto_spans, "_taught", lambda *a: taught.append(a[0].crowd) or learn(*a))
    found = goldspan.aggregate(few, "auto", rounds=1)
    again = goldspan.aggregate(few, "auto", rounds=1, start=found)
    assert busy
    assert {len(one.latest) for one in taught} == {len(others.latest)}
    said = f"{', '.join(busy)} answered nearly everything: not used to fit the models of text"
    assert said in found.notes
    assert said in again.notes
    assert np.array_equal(again.codes, found.codes)


def test_results_are_the_same_bits_and_depend_on_the_seed_only_a_little(crowd):
    few = crowd.with_gold(None).select_items(np.arange(60))
    every = [goldspan.aggregate(few, "auto", rounds=1, random_state=n) for n in (0, 0, 1)]
    assert np.array_equal(every[0].span_confidence, every[1].span_confidence)
    assert (every[0].codes == every[2].codes).mean() > 0.98
