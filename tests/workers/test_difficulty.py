import numpy as np
import pyarrow as pa
import pytest

import goldspan
from goldspan.errors import InputError
from goldspan.workers import difficulty as module
from goldspan.workers import fit_difficulty


@pytest.fixture(autouse=True)
def _few_sweeps(monkeypatch):
    """Learn from fewer sweeps, to save time."""
    for name, value in (("SWEEPS", 300), ("WARM_UP", 100), ("DIFFICULTY_DRAWS", 100)):
        monkeypatch.setattr(module, name, value)


def _crowd(right, n_labels=2, *, decoy=False, seed=0):
    """Make a crowd of which [worker, item] tells who is right; gold is label 0."""
    rng = np.random.default_rng(seed)
    rows = ["item,worker,label"]
    for item in range(right.shape[1]):
        own = int(rng.integers(1, n_labels))
        for worker in range(right.shape[0]):
            wrong = own if decoy else int(rng.integers(1, n_labels))
            rows.append(f"{item},w{worker},{'abcdef'[0 if right[worker, item] else wrong]}")
    crowd = goldspan.read_crowd("\n".join(rows).encode())
    return crowd, {str(item): "a" for item in range(right.shape[1])}


def _independent(chances, n_items, seed=0):
    return np.random.default_rng(seed).random((len(chances), n_items)) < chances[:, None]


def test_independent_workers_have_items_of_one_difficulty():
    crowd, gold = _crowd(_independent(np.full(15, 0.75), 50))
    assert np.median(fit_difficulty(crowd, gold).spread) < 0.5


def test_workers_who_miss_the_same_items_have_difficult_ones():
    right = _independent(np.full(10, 0.9), 40)
    right[:, :10] = _independent(np.full(10, 0.45), 10, seed=1)
    crowd, gold = _crowd(right)
    assert np.median(fit_difficulty(crowd, gold).spread) > 1


@pytest.mark.parametrize(("decoy", "low", "high"), [(True, 0.2, 1), (False, 4, 300)])
def test_wrong_answers_that_agree_are_told_from_those_that_scatter(decoy, low, high):
    crowd, gold = _crowd(_independent(np.full(12, 0.6), 40), n_labels=5, decoy=decoy)
    assert low < np.median(fit_difficulty(crowd, gold).alpha) < high


@pytest.mark.parametrize("n_labels", [2, 4])
def test_items_on_which_nearly_everybody_is_wrong_are_found_to_mislead(n_labels):
    right = _independent(np.full(12, 0.9), 60)
    right[:, :15] = _independent(np.full(12, 0.05), 15, seed=1)
    found = fit_difficulty(*_crowd(right, n_labels))
    assert np.median(found.misleading) == pytest.approx(0.22, abs=0.07)
    assert np.median(found.spread) < 1


def test_the_chances_that_are_drawn_keep_the_workers_accuracy():
    right = _independent(np.array([0.95, 0.85, 0.75, 0.6] * 4), 100)
    found, rng = fit_difficulty(*_crowd(right)), np.random.default_rng(0)
    drawn = [found.draw_chances(found.worker_ids, n, 200, rng).mean(axis=0) for n in range(200)]
    assert np.mean(drawn, axis=0) == pytest.approx(right.mean(axis=1), abs=0.05)


def test_only_the_workers_asked_for_are_kept_and_the_others_still_count(monkeypatch):
    crowd, gold = _crowd(_independent(np.full(30, 0.8), 40))
    monkeypatch.setattr(module, "DIFFICULTY_WORKERS", 10)
    found = fit_difficulty(crowd, gold, workers=pa.array(["w7", "w3"]))
    assert found.worker_ids.to_pylist() == ["w7", "w3"]
    assert found.log_odds.shape[1:] == (2, 2)
    with pytest.raises(InputError, match="more than 10"):
        fit_difficulty(crowd, gold)


def test_the_same_seed_gives_the_same_draws():
    crowd, gold = _crowd(_independent(np.full(5, 0.8), 20))
    one, same, other = (fit_difficulty(crowd, gold, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.log_odds, same.log_odds)
    assert not np.array_equal(one.log_odds, other.log_odds)


def test_the_order_of_answers_workers_and_labels_does_not_matter():
    crowd, gold = _crowd(_independent(np.full(5, 0.7), 20), n_labels=3)
    rows = [
        f"{item},{worker},{crowd.tagset.tags[code]}"
        for item, worker, code in zip(
            crowd.item_ids.take(pa.array(crowd.latest.item)).to_pylist(),
            crowd.worker_ids.take(pa.array(crowd.latest.worker)).to_pylist(),
            crowd.latest.codes.tolist(),
            strict=True,
        )
    ]
    mixed = [rows[i] for i in np.random.default_rng(3).permutation(len(rows))]
    other = goldspan.read_crowd("\n".join(["item,worker,label", *mixed]).encode())
    assert other.worker_ids != crowd.worker_ids
    one, two = fit_difficulty(crowd, gold), fit_difficulty(other, gold)
    places = two.places(one.worker_ids)
    labels = [other.tagset.tags.index(tag) for tag in crowd.tagset.tags]
    assert np.array_equal(one.log_odds, two.log_odds[:, places][:, :, labels])
    assert np.array_equal(one.shares, two.shares[:, labels])
    for name in ("spread", "alpha", "misleading"):
        assert np.array_equal(getattr(one, name), getattr(two, name))


def test_labels_stand_in_the_order_of_the_crowd():
    right = _independent(np.full(12, 0.95), 60)
    crowd, gold = _crowd(right, n_labels=3)
    gold |= {str(i): "bc"[i % 2] for i in range(4)}
    found = fit_difficulty(crowd, gold)
    assert crowd.tagset.tags[int(found.shares.mean(axis=0).argmax())] == "a"


def test_asking_for_some_workers_does_not_change_their_draws():
    crowd, gold = _crowd(_independent(np.full(6, 0.7), 20))
    every = fit_difficulty(crowd, gold)
    some = fit_difficulty(crowd, gold, workers=pa.array(["w4", "w2"]))
    assert np.array_equal(some.log_odds, every.log_odds[:, every.places(some.worker_ids)])


def test_many_items_and_workers_are_drawn_by_their_names(monkeypatch):
    for name in ("DIFFICULTY_WORKERS", "MOST_ITEMS"):
        monkeypatch.setattr(module, name, 7)
    crowd, gold = _crowd(_independent(np.full(12, 0.7), 20))
    back = crowd.select_items(np.arange(crowd.n_items)[::-1])
    one, two = (fit_difficulty(c, gold, workers=pa.array(["w3"])) for c in (crowd, back))
    assert one.n_items == 7
    assert np.array_equal(one.log_odds, two.log_odds)


def test_the_error_of_the_draws_is_about_what_other_seeds_differ_by():
    crowd, gold = _crowd(_independent(np.full(5, 0.8), 20))
    found = [fit_difficulty(crowd, gold, random_state=seed) for seed in range(8)]
    said = np.mean([one.spread_error for one in found])
    differ = np.std([np.median(one.spread) for one in found], ddof=1)
    assert differ / 3 < said < 3 * differ
    assert f"error of the draws {found[0].spread_error:.2f}" in str(found[0])


def test_a_worker_whom_it_does_not_know_is_named():
    crowd, gold = _crowd(_independent(np.full(5, 0.8), 20))
    found = fit_difficulty(crowd, gold, workers=pa.array(["w1"]))
    with pytest.raises(InputError, match="does not know worker 'w9'"):
        found.places(pa.array(["w1", "w9"]))


def test_gold_that_nobody_answered_is_refused():
    rows = b"item,worker,label\n1,a,x\n2,b,y\n"
    with pytest.raises(InputError):
        fit_difficulty(goldspan.read_crowd(rows))


def test_tagged_tokens_are_refused(root):
    crowd = goldspan.read_crowd(str(root / "examples" / "crowd.tsv"))
    with pytest.raises(InputError, match="these items are tagged"):
        fit_difficulty(crowd)


def test_it_says_how_different_the_items_are():
    crowd, gold = _crowd(_independent(np.full(5, 0.8), 20))
    assert "log-odds" in str(fit_difficulty(crowd, gold))
    assert "from 20 items with gold" in str(fit_difficulty(crowd, gold))
