"""What is said of a worker: intervals that hold, and no claim that the answers cannot bear."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.workers.reliability import find_truth
from goldspan.workers.verdicts import (
    AGREES,
    DIFFERS,
    DOUBTFUL,
    GOLD,
    OTHERS,
    RELIABLE,
    UNCLEAR,
    leave_one_out,
    state_workers,
)

ANSWERS = 15


def drawn(rng, n_workers, k, n_labels, accuracy, trap=0.0):
    """Draw a crowd of about 15 answers each; in a share of the items all err alike.

    Returns the crowd, the truth, and how often every worker is right.
    """
    n_items = n_workers * ANSWERS // k
    truth = rng.integers(n_labels, size=n_items)
    is_trap = rng.random(n_items) < trap
    rows = ["task,worker,label"]
    for item in range(n_items):
        for worker in rng.permutation(n_workers)[:k]:
            right = rng.random() < (0.05 if is_trap[item] else accuracy[worker])
            shift = 0 if right else 1 if is_trap[item] else rng.integers(1, n_labels)
            rows.append(f"{item},w{worker},{(truth[item] + shift) % n_labels}")
    found = goldspan.read_crowd("\n".join(rows).encode())
    order = [int(name[1:]) for name in found.worker_ids.to_pylist()]
    real = np.array(accuracy)[order] * (1 - trap) + 0.05 * trap
    return found, truth, real


def covered(stated, real):
    return [one.low <= w <= one.high for one, w in zip(stated, real, strict=True)]


CROWDS = {
    "good and mixed": lambda rng, n: rng.beta(8, 2, n),
    "a fifth guess": lambda rng, n: np.where(rng.random(n) < 0.2, 0.5, rng.beta(9, 1.5, n)),
    "all good": lambda rng, n: rng.uniform(0.85, 0.99, n),
    "from guessing to perfect": lambda rng, n: rng.uniform(0.5, 1, n),
}


@pytest.mark.parametrize("kind", CROWDS)
@pytest.mark.parametrize(("n_workers", "k", "n_labels"), [(5, 3, 2), (10, 2, 2), (20, 5, 4)])
def test_the_interval_holds_the_truth_without_a_known_label(kind, n_workers, k, n_labels):
    rng, found = np.random.default_rng(1), []
    for _ in range(2_000 // (n_workers * ANSWERS) * 4):
        accuracy = CROWDS[kind](rng, n_workers)
        crowd, _, real = drawn(rng, n_workers, k, n_labels, accuracy)
        found += covered(state_workers(crowd), real)
    assert len(found) > 100
    assert np.mean(found) > 0.93 - 2 * np.sqrt(0.93 * 0.07 / len(found))


def test_nobody_is_called_reliable_or_doubtful_without_known_labels():
    rng = np.random.default_rng(2)
    for trap in (0.0, 0.4):  # in the second crowd workers err together, and no interval can hold
        accuracy = np.array([0.99] * 8 + [0.3, 0.5])
        crowd, _, _ = drawn(rng, 10, 5, 2, accuracy, trap)
        stated = state_workers(crowd)
        opinions = {one.opinion("keep", 0.9) for one in stated}
        assert opinions <= {AGREES, DIFFERS, UNCLEAR}
        for one in stated:
            assert one.by == OTHERS
            assert one.words("texts").endswith("if they err independently; no known label")
            assert one.more != 0


def test_fifteen_equal_answers_without_a_known_label_are_no_certainty():
    rows = [f"{n},{who},{'xy'[n % 2]}" for n in range(ANSWERS) for who in ("ann", "bob", "cat")]
    crowd = goldspan.read_crowd("\n".join(["task,worker,label", *rows]).encode())
    for one in state_workers(crowd):
        assert one.low < 0.85
        assert one.p_above < 0.999
        assert one.opinion("keep", 0.9) == AGREES
        assert "reliable" not in one.words("texts")


def test_known_labels_make_a_worker_reliable_or_doubtful():
    rows = [f"{n},good,{n % 2}\n{n},bad,{n % 2 if n % 3 else 1 - n % 2}" for n in range(40)]
    crowd = goldspan.read_crowd("\n".join(["task,worker,label", *rows]).encode())
    gold = {str(n): str(n % 2) for n in range(40)}
    truth = find_truth(crowd, gold, None)
    stated = {one.worker: one for one in state_workers(truth.crowd)}
    good, bad = stated["good"], stated["bad"]
    assert (good.by, good.settled, good.opinion("", 0.9)) == (GOLD, True, RELIABLE)
    assert good.words("texts").startswith("right in 98 % (")
    assert bad.opinion("", 0.9) in {DOUBTFUL, UNCLEAR}
    assert bad.high < good.mean


def test_a_worker_with_whom_nobody_can_be_compared_is_not_judged():
    crowd = goldspan.read_crowd(b"task,worker,label\n1,ann,x\n2,bob,y\n3,bob,x\n3,cat,x\n")
    ann, bob, cat = state_workers(crowd)
    assert (ann.by, ann.words("texts")) == ("", "nothing to compare with yet")
    assert (bob.by, bob.judged, cat.judged) == (OTHERS, 1, 1)


def test_a_workers_own_answer_has_no_part_in_what_it_is_measured_by():
    item, worker = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    none = np.full(2, -1)
    agree = leave_one_out(item, worker, np.array([0, 0, 1, 1]), none, 2, 2)
    differ = leave_one_out(item, worker, np.array([0, 1, 1, 0]), none, 2, 2)
    assert (agree > 0.5).all()
    assert (differ < 0.5).all()
    alone = leave_one_out(np.array([0]), np.array([0]), np.array([1]), none[:1], 1, 2)
    assert alone.tolist() == [0.5]
    known = leave_one_out(item, worker, np.array([0, 1, 1, 1]), np.array([0, -1]), 2, 2)
    assert known[:2].tolist() == [1, 0]


def pairwise(answers):
    """The mean F1 of two answers' spans, summed over the pairs of an item, by brute force."""
    right = total = 0.0
    for mine, others in answers:
        right += sum(len(mine & other) for other in others) / len(others)
        total += sum(len(mine) + len(other) for other in others) / 2 / len(others)
    return right, total


@pytest.mark.parametrize("n", [0, 1, 2, 4, 5])
def test_few_items_with_known_labels_make_nobody_reliable(n):
    """However many spans they have: errors of an item go together."""
    tags = "\n".join(["w\tB-PER\tB-PER"] * 20) + "\n\n"
    crowd = goldspan.read_crowd(("token\tann\tbob\n" + tags * 6).encode())
    gold = np.full(crowd.n_tokens, -1, np.int16)
    gold[: 20 * n] = crowd.tagset.index["B-PER"]
    for one in state_workers(crowd.with_gold(gold) if n else crowd):
        assert (one.items, one.settled) == (n, n >= 5)
        assert (one.opinion("keep", 0.9) == RELIABLE) == (n >= 5)
        if n:
            assert f" on {n} item{'s' * (n > 1)} with known labels" in one.words("spans")
            assert one.words("spans").endswith(": too few to be sure") == (n < 5)
            assert one.more >= 5 - n


def test_agreement_of_tags_is_that_of_all_pairs():
    rng, names, tags = np.random.default_rng(3), ["ann", "bob", "cat"], ["O", "B-PER", "B-LOC"]
    said = rng.integers(3, size=(12, 4, 3))
    rows = ["token\tann\tbob\tcat"]
    for item in said:
        rows += ["w\t" + "\t".join(tags[code] for code in row) for row in item] + [""]
    crowd = goldspan.read_crowd("\n".join(rows).encode())
    stated = {one.worker: one for one in state_workers(crowd)}
    for n, name in enumerate(names):
        spans = [
            [{(t, int(c)) for t, c in enumerate(item[:, m]) if c} for m in range(3)]
            for item in said
        ]
        right, total = pairwise([(one[n], one[:n] + one[n + 1 :]) for one in spans])
        one = stated[name]
        assert (one.by, one.measure, one.p_above) == (OTHERS, "agrees", None)
        # Beta(1, 1) before; the design effect divides both counts.
        share = (one.mean * (one.judged + 2) - 1) / one.judged
        assert share == pytest.approx(right / total, abs=1e-9)
        assert one.low < right / total < one.high
        assert one.words("spans").startswith("agrees with each of the others in ")
