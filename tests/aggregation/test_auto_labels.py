"""The mixture of methods for single labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.auto_labels import AutoLabels, _unexcused, combine_labels
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.votes import vote_counts
from goldspan.crowd import Crowd, read_crowd


def simulated(
    matrices: np.ndarray, n_items: int, per_item: int, shares: list[float], seed: int = 0
) -> tuple[Crowd, np.ndarray]:
    """Let workers with these confusion matrices [n_workers, J, J] answer."""
    rng = np.random.default_rng(seed)
    n_workers, n_labels = matrices.shape[:2]
    truth = rng.choice(n_labels, n_items, p=shares)
    rows = []
    for item, label in enumerate(truth):
        for worker in rng.choice(n_workers, per_item, replace=False):
            given = rng.choice(n_labels, p=matrices[worker, label])
            rows.append({"task": f"{item:05d}", "worker": f"w{worker}", "label": f"l{given}"})
    rows += [{"task": "00000", "worker": f"all{j}", "label": f"l{j}"} for j in range(n_labels)]
    crowd = read_crowd(rows)
    order = [int(name[1:]) for name in crowd.tagset.tags]
    place = np.argsort(order)
    return crowd, place[truth[[int(name) for name in crowd.item_ids.to_pylist()]]]


def coins(right: np.ndarray, n_labels: int) -> np.ndarray:
    """Return matrices of workers who are right so often whatever the label."""
    wrong = (1 - right) / (n_labels - 1)
    tables = np.repeat(wrong, n_labels * n_labels).reshape(-1, n_labels, n_labels)
    tables[:, np.arange(n_labels), np.arange(n_labels)] = right[:, None]
    return tables


def accuracy(probs: np.ndarray, truth: np.ndarray) -> float:
    return float((probs.argmax(axis=1) == truth).mean())


def shares(crowd: Crowd) -> np.ndarray:
    counts = vote_counts(crowd).astype(float)
    return counts / counts.sum(axis=1, keepdims=True)


def loss(probs: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.log(np.maximum(probs[np.arange(len(truth)), truth], 1e-4)).mean())


def check(found: AutoLabels, crowd: Crowd) -> None:
    assert found.probs.shape == (crowd.n_items, len(crowd.tagset.tags))
    assert found.probs.dtype == np.float64
    np.testing.assert_allclose(found.probs.sum(axis=1), 1)
    weights = [one.weight for one in found.candidates]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)


def test_workers_of_unequal_skill() -> None:
    right = np.r_[np.full(4, 0.95), np.full(8, 0.4)]
    crowd, truth = simulated(coins(right, 4), 200, 5, [0.25] * 4)
    found = combine_labels(crowd, FitContext(), 0)
    check(found, crowd)
    assert accuracy(found.probs, truth) > accuracy(shares(crowd), truth) + 0.08
    assert loss(found.probs, truth) < loss(shares(crowd), truth) - 0.1
    best = found.candidates[0]
    assert best.name != "votes"
    assert {one.name: one.weight for one in found.candidates}["votes"] < 0.1


def test_workers_with_opposite_habits() -> None:
    """Votes are lost where most workers see one label everywhere; matrices are not."""
    timid, keen = [[0.95, 0.05], [0.6, 0.4]], [[0.9, 0.1], [0.05, 0.95]]
    crowd, truth = simulated(np.array([timid] * 8 + [keen] * 3), 150, 8, [0.5, 0.5])
    found = combine_labels(crowd, FitContext(), 0)
    check(found, crowd)
    assert accuracy(found.probs, truth) > accuracy(shares(crowd), truth) + 0.1


def test_a_rare_label_is_not_given_up() -> None:
    crowd, truth = simulated(coins(np.full(30, 0.8), 2), 200, 3, [0.92, 0.08])
    found = combine_labels(crowd, FitContext(), 0)
    assert accuracy(found.probs, truth) >= accuracy(shares(crowd), truth) - 0.005
    rare = int(np.bincount(truth).argmin())
    assert (found.probs.argmax(axis=1) == rare).sum() >= 0.5 * (truth == rare).sum()


def test_many_who_always_say_one_thing_are_seen_through() -> None:
    """The shares of the labels are theirs, and a method that differs from them is right to."""
    gain = []
    for seed in range(4):
        right = np.random.default_rng(seed).uniform(0.55, 0.95, 20)
        tables = coins(right, 5)
        tables[:8] = np.eye(5)[0]
        crowd, truth = simulated(tables, 300, 3, [0.2] * 5, seed)
        found = combine_labels(crowd, FitContext(), seed)
        gain.append(accuracy(found.probs, truth) - accuracy(shares(crowd), truth))
    assert np.mean(gain) > 0.12
    assert min(gain) > -0.01


def test_spammers_who_say_the_frequent_label_do_not_hide_a_rare_one() -> None:
    """The example of Simpson and Gurevych (2019): only confusion matrices see through them."""
    right, f1 = [], []
    for seed in range(4):
        tables = np.concatenate([coins(np.full(4, 0.85), 2), np.tile(np.eye(2)[0], (4, 2, 1))])
        crowd, truth = simulated(tables, 300, 8, [0.9, 0.1], seed)
        rare = int(np.bincount(truth).argmin())
        for method in ("auto", "ds", "mv-token"):
            codes = goldspan.aggregate(crowd, method).codes
            hits = ((codes == rare) & (truth == rare)).sum()
            right.append((codes == truth).mean())
            f1.append(2 * hits / ((codes == rare).sum() + (truth == rare).sum()))
    auto, ds, votes = np.array(right).reshape(-1, 3).mean(axis=0)
    assert auto > ds - 0.005
    assert auto > votes + 0.05
    auto, ds, votes = np.array(f1).reshape(-1, 3).mean(axis=0)
    assert auto > ds - 0.03
    assert auto > votes + 0.5


def test_drift_is_excused_by_a_sure_lead_over_what_drifts_less() -> None:
    items, drift = np.arange(50, dtype=np.int32), np.array([0.0, 0.1, 0.2, 0.1])
    logs = np.zeros((4, 50))
    noise = np.random.default_rng(0).normal(0, 0.1, 50)
    logs[1] += noise - noise.mean()  # as good as votes, and drifts
    logs[2] += 1 + noise  # far better than all that drift less
    logs[3] -= 1 + noise  # far worse
    found = _unexcused(logs, drift, items)
    assert found[0] == 1
    assert found[1] == pytest.approx(0.841, abs=1e-3)  # no lead: one standard error is missing
    assert found[2] < 1e-6
    assert found[3] == pytest.approx(1)
    logs[0] += 2  # votes are better still
    assert _unexcused(logs, drift, items)[2] == pytest.approx(1)
    assert _unexcused(logs[:, :0], drift, items[:0]).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(("n_items", "per_item"), [(150, 2), (25, 3), (4, 2)])
def test_few_answers_and_few_items_do_not_lose_to_votes(n_items: int, per_item: int) -> None:
    gain = []
    for seed in range(3):
        crowd, truth = simulated(coins(np.full(20, 0.75), 3), n_items, per_item, [1 / 3] * 3, seed)
        found = combine_labels(crowd, FitContext(), seed)
        check(found, crowd)
        gain.append(accuracy(found.probs, truth) - accuracy(shares(crowd), truth))
    assert np.mean(gain) >= -0.02


def test_one_answer_per_item_is_decided_by_votes() -> None:
    crowd = read_crowd([{"task": n, "worker": n % 3, "label": "ab"[n % 2]} for n in range(8)])
    found = combine_labels(crowd, FitContext(), 0)
    assert [one.name for one in found.candidates] == ["votes"]
    assert (found.probs.argmax(axis=1) == vote_counts(crowd).argmax(axis=1)).all()
    assert 0.5 < found.probs.max() < 1
    assert "votes decide" in found.reasons[0]


def test_one_label_only() -> None:
    crowd = read_crowd([{"task": n, "worker": w, "label": "x"} for n in range(3) for w in "ab"])
    found = combine_labels(crowd, FitContext(), 0)
    np.testing.assert_array_equal(found.probs, np.ones((3, 1)))


def test_known_truth_stands_and_items_without_answers_stay_unknown() -> None:
    crowd, truth = simulated(coins(np.full(6, 0.7), 2), 40, 3, [0.5, 0.5])
    answers = crowd.answers.take(crowd.answers.item != 5)
    crowd = replace(crowd, answers=answers)
    known = np.full(crowd.n_items, -1, np.int16)
    known[:10] = 1 - truth[:10]
    known[5] = -1
    found = combine_labels(crowd, FitContext(known=known), 0)
    assert found.probs[5].tolist() == [0, 0]
    there = known >= 0
    assert (found.probs[there, known[there]] == 1).all()


def test_the_same_seed_gives_the_same_bits() -> None:
    crowd, _ = simulated(coins(np.full(6, 0.7), 3), 40, 3, [1 / 3] * 3)
    one, two = (combine_labels(crowd, FitContext(), 3) for _ in range(2))
    np.testing.assert_array_equal(one.probs, two.probs)
    assert one.candidates == two.candidates
    assert one.reasons == two.reasons
