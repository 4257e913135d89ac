"""What a model gets wrong: error rates, rankings and coverage against sets counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from naive_greedy import matrix_of, random_items

from goldspan.selection import select_items
from goldspan.selection.schedule import get_selector

N, VALUES = 40, 12
LABELLED = np.arange(20)


def drawn(seed):
    """Return items, and of the labelled ones what is wrong, what is right and what is not known."""
    rng = np.random.default_rng(seed)
    items = random_items(rng, N, VALUES, 5)
    states = [1.0, 0.5, 0.0, None]
    errors = {str(n): states[k] for n, k in enumerate(rng.integers(0, 4, len(LABELLED)).tolist())}
    return items, errors


def rates(items, errors, strength=5.0):
    """Return the relative error rate of every value, counted item by item."""
    known = {int(name): share for name, share in errors.items() if share is not None}
    mean = sum(known.values()) / len(known)
    found = []
    for value in range(VALUES):
        having = [share for n, share in known.items() if value in items.row(n).tolist()]
        found.append((sum(having) + strength * mean) / (len(having) + strength) / mean)
    return found


def near(items, errors):
    """Return the mean of every item's rates."""
    rate = rates(items, errors)
    rows = [items.row(n).tolist() for n in range(items.n_items)]
    return [sum(rate[v] for v in row) / len(row) if row else 1.0 for row in rows]


@pytest.mark.parametrize("seed", range(4))
def test_items_like_the_wrong_ones_come_first(seed):
    items, errors = drawn(seed)
    found = select_items(matrix_of(items), "near-errors", labelled=LABELLED, errors=errors)
    expected = near(items, errors)
    scores = dict(zip(found.item.tolist(), found.gain.tolist(), strict=True))
    assert sorted(scores) == list(range(20, N))
    assert scores == pytest.approx({n: expected[n] for n in scores})
    assert (np.diff(found.gain) <= 0).all()


@pytest.mark.parametrize("power", [0, 1, 3])
@pytest.mark.parametrize("name", ["margin", "least-confidence", "entropy", "density", "vote"])
def test_scores_are_multiplied_by_a_power_of_the_error_rate(name, power):
    items, errors = drawn(7)
    probs = np.random.default_rng(1).dirichlet(np.ones(3), (2, N))
    given = {"model": list(probs) if name == "vote" else probs[0], "labelled": LABELLED}
    rule, matrix = get_selector(name, errors=power), matrix_of(items)
    plain, told = rule.select(matrix, **given), rule.select(matrix, **given, errors=errors)
    rate = near(items, errors)
    before = dict(zip(plain.item.tolist(), plain.gain.tolist(), strict=True))
    after = dict(zip(told.item.tolist(), told.gain.tolist(), strict=True))
    assert after == pytest.approx({n: score * rate[n] ** power for n, score in before.items()})


@pytest.mark.parametrize(
    "name", ["margin", "coverage", "coverage(errors_as=target)", "coverage(errors_as=near)"]
)
@pytest.mark.parametrize("errors", [{}, {"3": 0.0, "4": None}], ids=["none", "all right"])
def test_where_nothing_is_wrong_nothing_changes(name, errors):
    items, _ = drawn(2)
    given = {"labelled": LABELLED, "model": np.full((N, 2), 0.5), "n": 9}
    plain = select_items(matrix_of(items), name, **given)
    told = select_items(matrix_of(items), name, **given, errors=errors)
    assert told.item.tolist() == plain.item.tolist()
    assert told.gain == pytest.approx(plain.gain)


def test_near_errors_where_nothing_is_wrong_is_a_draw():
    items, _ = drawn(3)
    made = (
        select_items(matrix_of(items), "near-errors", errors={}, n=9, random_state=seed)
        for seed in (0, 0, 1)
    )
    one, again, other = (found.item.tolist() for found in made)
    assert one == again != other


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("use", ["weights", "near", "target"])
def test_coverage_told_what_is_wrong_is_greedy_with_these_weights(seed, use):
    items, errors = drawn(seed)
    rule = get_selector("coverage", w=9, weights="none", errors_as=use, duplicates=True)
    found = rule.select(matrix_of(items), labelled=LABELLED, errors=errors, n=8, random_state=seed)
    counts = items.take(LABELLED).counts
    weights = np.array(rates(items, errors))
    if use == "near":
        rate = near(items, errors)
        having = [[n for n in range(N) if v in items.row(n).tolist()] for v in range(VALUES)]
        weights = np.array([np.mean([rate[n] for n in rows]) if rows else 1.0 for rows in having])
    if use == "target":
        wrong = [int(name) for name, share in errors.items() if share]
        weights = (items.take(np.array(wrong)).counts > 0).astype(float)
        counts = np.zeros(VALUES, int)
    out = np.isin(np.arange(N), LABELLED)
    assert len(found) == 8
    covered = counts.copy()
    for item, gain, level in zip(found.item.tolist(), found.gain, found.level, strict=True):
        rest = {n: items.row(n).tolist() for n in range(N) if not out[n]}
        open_ = {n: sum(weights[v] for v in row if covered[v] < level) for n, row in rest.items()}
        below = [weights[v] for row in rest.values() for v in row if covered[v] < level - 1]
        assert sum(below) == 0  # a level begins where the one before is done
        assert gain == pytest.approx(open_[item]) == pytest.approx(max(open_.values()))
        covered[items.row(item)] += 1
        out[item] = True
