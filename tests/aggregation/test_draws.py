"""Draws belong to ids: a file whose rows are in another order gives the same result."""

from __future__ import annotations

import io

import numpy as np
import pyarrow.csv as pc
import pytest

import goldspan
from goldspan._arrays import draws, keys_of
from goldspan.aggregation.families import find_families
from goldspan.aggregation.families.finding import pair_agreements
from goldspan.aggregation.judge import hold_out


def _shuffled(crowd, seed):
    """Read the crowd's rows as a CSV file in which they stand in another order."""
    rows = crowd.to_arrow()
    order = np.random.default_rng(seed).permutation(len(rows))
    file = io.BytesIO()
    pc.write_csv(rows.take(order), file)
    found = goldspan.read_crowd(file.getvalue(), format="long")
    assert found.item_ids.to_pylist() != crowd.item_ids.to_pylist()
    assert found.worker_ids.to_pylist() != crowd.worker_ids.to_pylist()
    return found


def _by_id(crowd, result):
    """Return labels and probabilities by item id."""
    bounds = zip(result.crowd.offsets[:-1].tolist(), result.crowd.offsets[1:].tolist(), strict=True)
    ids = result.crowd.item_ids.to_pylist()
    whole = {
        name: (result.codes[a:b], result.token_probs[a:b], result.token_confidence[a:b])
        for name, (a, b) in zip(ids, bounds, strict=True)
    }
    labels, probs, sure = zip(*(whole[name] for name in crowd.item_ids.to_pylist()), strict=True)
    return np.concatenate(labels), np.concatenate(probs), np.concatenate(sure)


def _with_copies(crowd):
    """Enter the first worker twice more."""
    rows = crowd.to_arrow().to_pylist()
    first = crowd.worker_ids[0].as_py()
    copies = [
        row | {"worker": name} for name in ("x1", "x2") for row in rows if row["worker"] == first
    ]
    return goldspan.read_crowd([*rows, *copies])


@pytest.fixture(scope="module")
def spans():
    crowd = goldspan.read_crowd("examples/crowd.tsv").with_gold(None)
    return goldspan.read_crowd(crowd.select_items(np.arange(40)).to_arrow())


@pytest.fixture(scope="module")
def labels():
    from goldspan.simulation import draw_truth, simulate_crowd

    truth = draw_truth(200, ["a", "b", "c"], seed=2)
    crowd = simulate_crowd(truth, ["flip(0.2) x4", "flip(0.6) x6"], per_item=4, seed=3)
    return goldspan.read_crowd(crowd.with_gold(None).to_arrow())


@pytest.mark.parametrize("kind", ["spans", "labels", "copies"])
def test_a_shuffled_file_gives_the_same_labels_and_probabilities(kind, spans, labels):
    crowd = {"spans": spans, "labels": labels}.get(kind, spans)
    if kind == "copies":
        crowd = _with_copies(labels)
        assert find_families(crowd)
    other = _shuffled(crowd, 5)
    one, two = (goldspan.aggregate(each, "auto") for each in (crowd, other))
    mine, its = _by_id(crowd, one), _by_id(crowd, two)
    assert np.array_equal(mine[0], its[0])
    # Sums are rounded otherwise in another order; probabilities are kept as float32.
    for a, b in zip(mine[1:], its[1:], strict=True):
        assert np.abs(a.astype(np.float64) - b).max() < 1e-7
    scores = [{own.name: (own.score, own.weight) for own in r.candidates} for r in (one, two)]
    assert scores[0].keys() == scores[1].keys()
    for name, found in scores[0].items():
        assert scores[1][name] == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("family", [None, "pairs"])
def test_what_is_hidden_depends_on_ids_alone(spans, family):
    def gone(crowd, seed):
        ids = crowd.worker_ids.to_pylist()
        number = None
        if family:
            team = {name: n // 2 for n, name in enumerate(sorted(ids))}
            number = np.array([team[name] for name in ids])
        shown, hidden = hold_out(crowd, seed=seed, family=number)
        return [
            {
                (crowd.item_ids[i].as_py(), ids[w])
                for i, w in zip(answers.item.tolist(), answers.worker.tolist(), strict=True)
            }
            for answers in (shown.answers, hidden)
        ]

    assert gone(spans, 3) == gone(_shuffled(spans, 1), 3)
    assert gone(spans, 3) != gone(spans, 4)
    # Items and workers that came later change nothing of what is hidden of the others.
    if not family:
        early = spans.select_items(np.arange(30))
        there = set(early.item_ids.to_pylist())
        assert gone(early, 3)[1] == {one for one in gone(spans, 3)[1] if one[0] in there}


def test_pairs_are_drawn_by_their_ids(labels):
    def found(crowd):
        pairs, ids = pair_agreements(crowd)[0], crowd.worker_ids.to_pylist()
        both = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
        return dict(
            zip((frozenset((ids[a], ids[b])) for a, b in both), pairs.draw.tolist(), strict=True)
        )

    assert found(labels) == found(_shuffled(labels, 1))
    assert len(set(found(labels).values())) == len(found(labels))


def test_draws_are_even_and_independent():
    import pyarrow as pa

    keys = keys_of(pa.array([str(n) for n in range(20_000)]))
    one = draws(0, "item", keys)
    assert 0 <= one.min() <= one.max() < 1
    counts = np.histogram(one, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 45  # chi-squared, 19 degrees: p < 0.001
    others = [draws(1, "item", keys), draws(0, "answer", keys), draws(0, "item", keys, keys)]
    others.append(np.roll(one, 1))
    assert max(abs(np.corrcoef(one, other)[0, 1]) for other in others) < 0.03
