"""The judge without gold: what is hidden, the likelihood of hidden labels, and weights."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.judge import POPULATION, Judge, hold_out, weigh


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
    alone = _crowd(per_item=1)
    assert not len(hold_out(alone, share=0.3)[1])


@pytest.mark.parametrize("seed", range(3))
def test_the_score_is_the_mean_log_probability_of_the_hidden_labels(seed):
    crowd = _crowd(seed)
    shown, hidden = hold_out(crowd, seed=seed)
    rng = np.random.default_rng(seed)
    n_labels, outside = len(crowd.tagset.tags), crowd.tagset.outside
    probs = rng.dirichlet(np.ones(n_labels), crowd.n_tokens)

    def labels(answers):
        """List (token, worker, label before, label) one by one."""
        for n in range(len(answers)):
            codes = answers.codes[answers.offset[n] : answers.offset[n + 1]].tolist()
            before = outside
            for at, code in enumerate(codes):
                if code >= 0:
                    yield crowd.offsets[answers.item[n]] + at, answers.worker[n], before, code
                before = code if code >= 0 else outside

    def likelihood(temperature):
        total = []
        known = list(labels(shown.answers))
        for token, worker, before, label in labels(hidden):
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
            total.append(np.log(p))
        return float(np.mean(total))

    found = Judge(shown, hidden).judge(probs)
    assert found.score == pytest.approx(likelihood(found.temperature))
    assert found.score == pytest.approx(np.log(found.likelihood).mean())
    for other in (0.7, 1.0, 2.0):
        assert found.score >= likelihood(other) - 1e-12


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
    assert weigh(np.zeros(3), prior).tolist() == prior.tolist()
    found = weigh(np.array([-0.200, -0.204, -0.300]), prior)
    assert found[0] / found[1] == pytest.approx(np.e)
    assert found[2] == 0
    assert found.sum() == pytest.approx(1)
    # Only ratios of losses count: bits or nats, long items or short ones.
    assert np.allclose(weigh(np.array([-2.0, -2.04, -3.0]), prior), found)
