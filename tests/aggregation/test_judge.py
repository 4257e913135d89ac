"""The judge without gold: what is hidden, the likelihood of hidden labels, and weights."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.judge import (
    POPULATION,
    TELLING,
    TEMPERATURES,
    Candidate,
    Judge,
    choice_words,
    error_of_mean,
    hold_out,
    weigh,
)


def _crowd(seed=0, n_items=40, n_workers=6, per_item=4):
    """Make spans of one type, each worker wrong in his own way, some tokens skipped."""
    rng = np.random.default_rng(seed)
    rows = ["doc\tsent\ttoken\t" + "\t".join(f"w{w}" for w in range(n_workers))]
    for item in range(n_items):
        length = int(rng.integers(2, 9))
        begin = int(rng.integers(0, length))
        true = ["O"] * length
        true[begin] = "B-PER"
        if begin + 1 < length:
            true[begin + 1] = "I-PER"
        who = set(rng.choice(n_workers, per_item, replace=False).tolist())
        answers = []
        for w in range(n_workers):
            own = true if rng.random() > 0.1 + 0.1 * w else ["O"] * length
            answers.append(own if w in who else ["?"] * length)
        rows += [
            f"d{item}\t1\tt{n}\t" + "\t".join(answer[n] for answer in answers)
            for n in range(length)
        ]
        rows.append("")
    return goldspan.read_crowd("\n".join(rows).encode())


def test_hidden_and_shown_answers_are_all_answers_and_every_item_keeps_one():
    crowd = _crowd()
    shown, hidden = hold_out(crowd, share=0.2, seed=3)
    both = [(i, w) for a in (shown.answers, hidden) for i, w in zip(a.item, a.worker, strict=True)]
    every = zip(crowd.latest.item, crowd.latest.worker, strict=True)
    assert sorted(both) == sorted(every)
    assert len(np.unique(hidden.item)) == len(hidden)  # at most one of an item
    assert set(np.unique(shown.answers.item)) == set(range(crowd.n_items))
    assert 0.1 < len(hidden) / len(crowd.latest) < 0.3
    again, _ = hold_out(crowd, share=0.2, seed=3)
    assert np.array_equal(again.answers.worker, shown.answers.worker)
    other, _ = hold_out(crowd, share=0.2, seed=4)
    assert not np.array_equal(other.answers.worker, shown.answers.worker)


def test_a_family_is_hidden_as_a_whole_and_a_single_answer_is_not():
    crowd = _crowd()
    family = np.array([0, 0, 0, 1, 2, 3])
    shown, hidden = hold_out(crowd, share=0.3, family=family, seed=1)
    left = {(i, family[w]) for i, w in zip(shown.answers.item, shown.answers.worker, strict=True)}
    gone = {(i, family[w]) for i, w in zip(hidden.item, hidden.worker, strict=True)}
    assert gone
    assert not left & gone
    # One of a family is asked, each of them sometimes: copies would else count many times.
    assert len(hidden) == len(gone)
    assert {0, 1, 2} <= set(hidden.worker.tolist())
    alone = _crowd(per_item=1)
    assert not len(hold_out(alone, share=0.3)[1])


def _labels(crowd, answers):
    """List (token, worker, label before, label) one by one."""
    for n in range(len(answers)):
        codes = answers.codes[answers.offset[n] : answers.offset[n + 1]].tolist()
        before = crowd.tagset.outside
        for at, code in enumerate(codes):
            if code >= 0:
                yield crowd.offsets[answers.item[n]] + at, answers.worker[n], before, code
            before = code if code >= 0 else crowd.tagset.outside


@pytest.mark.parametrize("seed", range(3))
def test_hidden_labels_are_scored_at_the_temperature_that_suits_those_of_other_items(seed):
    crowd = _crowd(seed)
    shown, hidden = hold_out(crowd, seed=seed)
    rng = np.random.default_rng(seed)
    n_labels = len(crowd.tagset.tags)
    probs = rng.dirichlet(np.ones(n_labels), crowd.n_tokens)
    known = list(_labels(crowd, shown.answers))
    item_of = np.searchsorted(crowd.offsets, np.arange(crowd.n_tokens), side="right") - 1

    def logs_of(temperature):
        found = []
        for token, worker, before, label in _labels(crowd, hidden):
            q = probs[token] ** (1 / temperature)
            q /= q.sum()
            p = 0.0
            for j in range(n_labels):
                own = np.zeros(n_labels)
                habits = np.zeros(n_labels)
                plain = np.full(n_labels, 0.1)
                for t, w, b, c in known:
                    plain[c] += probs[t, j]
                    if b == before:
                        habits[c] += probs[t, j]
                        own[c] += probs[t, j] * (w == worker)
                habits += plain / plain.sum()
                own += POPULATION * habits / habits.sum()
                p += q[j] * own[label] / own.sum()
            found.append(np.log(p))
        return np.array(found)

    items = np.array([item_of[token] for token, *_ in _labels(crowd, hidden)])
    logs = {temperature: logs_of(temperature) for temperature in TEMPERATURES}
    expected = []
    for n, item in enumerate(items):
        best = max(TEMPERATURES, key=lambda one: logs[one][items != item].sum())
        expected.append(logs[best][n])
    found = Judge(shown, hidden).judge(probs)
    np.testing.assert_allclose(np.log(found.likelihood), expected)
    assert found.score == pytest.approx(np.mean(expected))
    assert found.temperature == max(TEMPERATURES, key=lambda one: logs[one].sum())
    assert found.score <= logs[found.temperature].mean() + 1e-12


def test_a_single_hidden_item_is_scored_as_it_is():
    """Nothing else chooses a temperature for it."""
    crowd = goldspan.read_crowd([{"task": 1, "worker": w, "label": w} for w in "abc"])
    shown, hidden = hold_out(crowd)
    probs, label = np.array([[0.7, 0.2, 0.1]]), hidden.codes[0]
    expected = 0.0
    for q in probs[0]:
        plain = 0.1 + q * np.isin(np.arange(3), shown.latest.codes)
        habits = plain - 0.1 + plain / plain.sum()
        expected += q * habits[label] / habits.sum()
    found = Judge(shown, hidden).judge(probs)
    assert found.likelihood == pytest.approx([expected])
    assert found.score == pytest.approx(np.log(expected))


def test_noise_is_judged_worse_and_what_is_too_sure_gets_a_temperature():
    crowd = _crowd(1, n_items=150)
    shown, hidden = hold_out(crowd)
    good = goldspan.aggregate(shown, "bsc-cm").token_probs
    sure = good.astype(float) ** 2
    sure /= sure.sum(axis=1, keepdims=True)
    judge = Judge(shown, hidden)
    assert judge.judge(good).score > judge.judge(np.roll(good, 1, axis=0)).score
    assert judge.judge(sure).temperature > judge.judge(good).temperature


def test_weights_fall_with_the_loss_and_are_the_prior_without_hidden_answers():
    prior = np.array([0.0, 0.5, 0.5])
    nothing = [np.zeros(0)] * 3
    assert weigh(nothing, np.zeros(0, int), prior).tolist() == prior.tolist()
    # Constant differences are certain: only `TELLING` counts, here 2 % of the best one's loss.
    base = np.random.default_rng(0).uniform(-0.3, -0.1, 1000)
    base += -0.2 - base.mean()
    logs = [base, base - 0.02 * 0.2, base - 0.5]
    found = weigh([np.exp(one) for one in logs], np.arange(1000), prior)
    assert found[0] / found[1] == pytest.approx(np.e)
    assert found[2] == 0
    assert found.sum() == pytest.approx(1)


def test_losses_count_by_their_size_and_what_costs_is_subtracted():
    base = np.random.default_rng(0).uniform(-0.3, -0.1, 1000)
    items, prior = np.arange(1000), np.ones(2)
    weights = [  # a hundredth of the loss tells as much
        weigh([np.exp(scale * base), np.exp(1.05 * scale * base)], items, prior)
        for scale in (1, 0.01)
    ]
    assert weights[0] == pytest.approx(weights[1])
    same = weigh([np.exp(base)] * 2, items, prior, np.array([0, -base.mean() * TELLING]))
    assert same[0] / same[1] == pytest.approx(np.e)


def test_words_name_what_was_tried_and_where_to_look():
    tried = [Candidate("ds", -0.2, 1.0, 1.0), Candidate("votes", -0.3, 1.0, 0.0)]
    assert choice_words(tried, 1.0, []) == (
        "tried 2 methods; best: ds (100%); the labels of all of them agree on 100% of the items"
    )
    found = choice_words(tried, 0.9999, ["d1: Ann"], "spans")
    assert found.endswith("agree on 99% of the spans; look at this one: d1: Ann")


def test_candidates_that_few_items_cannot_tell_apart_share_the_weight():
    rng = np.random.default_rng(1)
    logs = rng.normal(-1, 0.3, (2, 40))
    logs[1] += logs[0].mean() - logs[1].mean() - 0.05
    few = weigh(list(np.exp(logs)), np.arange(40), np.ones(2))
    many = weigh(list(np.exp(np.tile(logs, 100))), np.arange(4000), np.ones(2))
    one_item = weigh(list(np.exp(np.tile(logs, 100))), np.tile(np.arange(40), 100), np.ones(2))
    assert 0.5 < few[0] < many[0]
    assert one_item == pytest.approx(few)  # the same items again are no new evidence


def test_the_error_is_that_of_the_mean_over_items_and_of_labels_where_there_is_one():
    values = np.random.default_rng(2).normal(0, 1, 60)
    place = np.repeat(np.arange(20), 3)
    sums = values.reshape(20, 3).sum(axis=1)
    expected = sums.std(ddof=1) / np.sqrt(20) / 3
    assert error_of_mean(values, place) == pytest.approx(expected)
    alone = values.std(ddof=1) / np.sqrt(60)
    assert error_of_mean(values, np.zeros(60, int)) == pytest.approx(alone)
    assert error_of_mean(values[:1], np.zeros(1, int)) == 0
    assert error_of_mean(values[:0], np.zeros(0, int)) == 0
