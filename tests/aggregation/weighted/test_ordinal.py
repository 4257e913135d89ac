"""Labels on a scale: the model against a slow one, the order of labels, scales that shrink."""

from __future__ import annotations

from itertools import product
from math import erf, log, sqrt

import numpy as np
import pytest

from goldspan import aggregate
from goldspan.aggregation.ordinal import GAINS, NOISES, SHIFTS, STRAY, Ordinal
from goldspan.errors import InputError


def _crowd(seed, n=120, workers=25, per=5, levels=5, gain=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(levels, size=n)
    gains, shifts = gain * rng.uniform(0.6, 1, workers), rng.normal(0, 0.4, workers)
    noise, middle = rng.uniform(0.4, 1.4, workers), (levels - 1) / 2
    rows = []
    for item in range(n):
        for k in rng.choice(workers, per, replace=False):
            seen = middle + gains[k] * (truth[item] - middle) + shifts[k] + noise[k] * rng.normal()
            label = str(int(np.clip(round(seen), 0, levels - 1)))
            rows.append({"item": f"i{item:03}", "worker": f"w{k}", "label": label})
    return rows, truth


def _slow(rows, n_levels, rounds):
    """The same model, cell by cell: the points and the probabilities after some rounds."""
    items = sorted({row["item"] for row in rows})
    workers = sorted({row["worker"] for row in rows})
    unit, centre = (n_levels - 1) / 5, (n_levels - 1) / 2

    def below(x):
        return (1 + erf(x / sqrt(2))) / 2

    def prob(point, truth, label):
        gain, shift, noise = point
        mean = centre + gain * (truth - centre) + shift * unit
        top = 1.0 if label == n_levels - 1 else below((label + 0.5 - mean) / (noise * unit))
        low = 0.0 if label == 0 else below((label - 0.5 - mean) / (noise * unit))
        return (1 - STRAY) * (top - low) + STRAY / n_levels

    points = list(product(GAINS, SHIFTS, NOISES))
    table = [[[prob(p, j, c) for c in range(n_levels)] for j in range(n_levels)] for p in points]
    means = {i: np.mean([int(r["label"]) for r in rows if r["item"] == i]) for i in items}
    order = sorted(items, key=lambda i: (means[i], items.index(i)))
    q = {}
    for rank, item in enumerate(order):
        level = rank * n_levels // len(items)
        q[item] = [0.9 * (j == level) + 0.1 / n_levels for j in range(n_levels)]
    shares = [1 / len(points)] * len(points)
    for _ in range(rounds):
        r = {}
        for w in workers:
            own = [row for row in rows if row["worker"] == w]
            odds = [
                log(shares[g])
                + sum(
                    q[row["item"]][j] * log(table[g][j][int(row["label"])])
                    for row in own
                    for j in range(n_levels)
                )
                for g in range(len(points))
            ]
            mass = np.exp(np.array(odds) - max(odds))
            r[w] = mass / mass.sum()
        shares = [
            (sum(r[w][g] for w in workers) + 1 / len(points)) / (len(workers) + 1)
            for g in range(len(points))
        ]
        prior = [sum(q[i][j] for i in items) + n_levels for j in range(n_levels)]
        for i in items:
            odds = [
                log(prior[j] / sum(prior))
                + sum(
                    r[row["worker"]][g] * log(table[g][j][int(row["label"])])
                    for row in rows
                    if row["item"] == i
                    for g in range(len(points))
                )
                for j in range(n_levels)
            ]
            mass = np.exp(np.array(odds) - max(odds))
            q[i] = list(mass / mass.sum())
    return items, np.array([q[i] for i in items])


def test_the_model_is_what_the_slow_one_computes():
    rows, _ = _crowd(0, n=12, workers=5, per=3, levels=4)
    items, expected = _slow(rows, 4, 3)
    result = Ordinal(max_iter=3, tol=0).fit(rows).result_
    order = [result.crowd.item_ids.to_pylist().index(item) for item in items]
    tags = [result.crowd.tagset.tags.index(str(j)) for j in range(4)]
    np.testing.assert_allclose(result.token_probs[order][:, tags], expected, atol=2e-6)


@pytest.mark.parametrize("gain", [1.0, 0.6])
def test_it_errs_less_than_mean_median_and_confusion_matrices(gain):
    errors = []
    for seed in range(3):
        rows, truth = _crowd(seed, gain=gain)
        result = aggregate(rows, "ordinal")
        said = [
            [int(r["label"]) for r in rows if r["item"] == f"i{n:03}"] for n in range(len(truth))
        ]
        ds = [int(label) for label in aggregate(rows, "ds").labels]
        ours = [int(label) for label in result.labels]
        mean, median = [np.mean(own) for own in said], [np.median(own) for own in said]
        errors.append([np.abs(np.array(one) - truth).mean() for one in (ours, mean, median, ds)])
        assert np.all(np.diff(result.trace) > -1e-6)
    ours, *others = np.mean(errors, axis=0)
    assert ours < min(others)


def test_levels_by_name_give_what_numbers_give():
    rows, _ = _crowd(1, n=30, workers=6, levels=3)
    names = {"0": "low", "1": "mid", "2": "high"}
    named = [{**row, "label": names[row["label"]]} for row in rows]
    one = aggregate(rows, "ordinal")
    other = aggregate(named, "ordinal", levels="low, mid, high")
    assert [names[label] for label in one.labels] == other.labels
    assert one.item_columns["expected"] == pytest.approx(other.item_columns["expected"])


def test_places_on_the_scale_are_written_with_six_decimals(tmp_path):
    result = aggregate(_crowd(1, n=30, workers=6, levels=3)[0], "ordinal")
    result.write(tmp_path / "gold.csv")
    rows = [row.split(",") for row in (tmp_path / "gold.csv").read_text().splitlines()]
    assert rows[0][3:5] == ["expected", "expected_error"]
    assert max(len(cell) for row in rows[1:] for cell in row[3:5]) == len("0.123456")


def test_known_labels_are_kept_and_teach():
    rows, truth = _crowd(2, n=40, workers=6)
    known = {f"i{n:03}": str(truth[n]) for n in range(20)}
    result = aggregate(rows, "ordinal", gold=known)
    labels = dict(zip(result.crowd.item_ids.to_pylist(), result.labels, strict=True))
    assert all(labels[item] == label for item, label in known.items())


@pytest.mark.parametrize(
    ("labels", "levels", "words"),
    [
        ("ab", (), "levels="),
        ("ab", "a, c", "'b' is none of levels"),
        ("ab", "a, a", "different labels"),
    ],
)
def test_an_order_that_is_not_known_is_refused(labels, levels, words):
    rows = [{"item": "1", "worker": w, "label": x} for w, x in zip("uv", labels, strict=True)]
    with pytest.raises(InputError, match=words):
        aggregate(rows, "ordinal", levels=levels)


def test_spans_are_refused():
    with pytest.raises(InputError, match="single labels"):
        aggregate("examples/crowd.tsv", "ordinal")
