"""The objective never falls, and fitting finds the workers that made the answers."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from aggregation.bsc.fitted import BIO, PLAIN, crowd_of, every_method
from goldspan.aggregation.workermodels import Prior, get_worker_model
from goldspan.spans import Codec


def never_falls(trace):
    steps = np.diff(trace)
    return (steps >= -1e-9 * np.maximum(1.0, np.abs(trace[:-1]))).all()


@every_method
@pytest.mark.parametrize("codec", [BIO, PLAIN], ids=["BIO", "PLAIN"])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_falls_on_random_answers(method, codec, seed):
    crowd = crowd_of(seed, codec=codec, n_items=30, n_workers=6, longest=8, n_words=9)
    result = goldspan.aggregate(crowd, method, max_iter=60, tol=0, n_starts=1)
    assert len(result.trace) > 5
    assert never_falls(np.array(result.trace))


@every_method
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_falls_with_gold_trusted_workers_and_a_history(method, seed):
    crowd = crowd_of(seed, n_items=20, n_workers=4)
    past = goldspan.aggregate(crowd.select_items(np.arange(10)), method, n_starts=1)
    later = crowd.select_items(np.arange(10, 20))
    gold = np.full(later.n_tokens, -1, np.int16)
    gold[: later.offsets[3]] = 0
    result = goldspan.aggregate(
        later, method, gold=later.with_gold(gold), trusted=["w0"], history=past, max_iter=40,
        tol=0, n_starts=1,
    )  # fmt: skip
    assert never_falls(np.array(result.trace))


def simulated(model, n_labels, *, n_items, length, n_workers, seed):
    """Draw workers and their answers to a chain of truths; PLAIN tags, so that all is legal."""
    rng = np.random.default_rng(seed)
    codec = Codec.from_types([f"l{j}" for j in range(n_labels)], "PLAIN")
    worker = get_worker_model(model)
    n_previous = n_labels + 2 if worker.has_memory else 1
    prior = Prior(1.0, 3.0)
    tables = [worker.draw(prior, n_previous, n_labels, rng) for _ in range(n_workers)]
    step = rng.dirichlet(np.full(n_labels, 0.5), size=n_labels) * 0.5 + 0.5 * np.eye(n_labels)
    items, truths = [], []
    for _ in range(n_items):
        truth = [rng.integers(n_labels)]
        while len(truth) < length:
            truth.append(rng.choice(n_labels, p=step[truth[-1]]))
        answers = {}
        for k, table in enumerate(tables):
            previous = n_labels if worker.has_memory else 0  # the state of the start
            codes = []
            for j in truth:
                codes.append(int(rng.choice(n_labels, p=table[previous, j])))
                previous = codes[-1] if worker.has_memory else 0
            answers[k] = codes
        items.append(answers)
        truths += truth
    return oracle.crowd_of(codec, items, workers=n_workers), np.array(tables), np.array(truths)


@pytest.mark.parametrize("model", oracle.MODELS)
def test_a_fit_finds_the_workers_that_made_the_answers(model):
    crowd, tables, truth = simulated(
        model, 3, n_items=300, length=20, n_workers=8, seed=oracle.MODELS.index(model)
    )
    result = goldspan.aggregate(crowd, f"bsc-{model}", alpha0=1.0, epsilon0=3.0, max_iter=200)
    assert result.converged
    assert (result.codes == truth).mean() > 0.97
    memory = result.memory
    for k, wanted in enumerate(tables):
        found = memory.model.workers.mean(
            memory.posterior, memory.model.rows, memory.model.prior, k
        )
        n = 3  # rows of the states of their own have few counts
        shown = slice(0, n) if model == "seq" else slice(None)
        np.testing.assert_allclose(found[shown], wanted[shown], atol=0.15)
        assert np.abs(found[shown] - wanted[shown]).mean() < 0.035


@pytest.mark.parametrize(("method", "model"), [("ibcc", "cm"), ("mace", "mace"), ("ds", "cm"),
                                               ("one-coin", "acc")])  # fmt: skip
def test_a_fit_without_a_chain_finds_the_workers_of_single_labels(method, model):
    crowd, tables, truth = simulated(model, 3, n_items=3000, length=1, n_workers=8, seed=7)
    result = goldspan.aggregate(crowd, method, max_iter=300)
    assert (result.codes == truth).mean() > 0.95
    memory = result.memory
    for k, wanted in enumerate(tables):
        found = memory.model.workers.mean(
            memory.posterior, memory.model.rows, memory.model.prior, k
        )
        np.testing.assert_allclose(found, wanted, atol=0.06)


def test_the_largest_bound_picks_the_prior_and_says_so():
    crowd, _, truth = simulated("acc", 3, n_items=40, length=5, n_workers=6, seed=3)
    auto = goldspan.aggregate(crowd, "bsc-cm", prior="auto")
    given_ = goldspan.aggregate(crowd, "bsc-cm")
    assert auto.trace[-1] >= given_.trace[-1] - 1e-3 * abs(given_.trace[-1])
    assert any(note.startswith("prior chosen by the evidence bound") for note in auto.notes)
    assert (auto.codes == truth).mean() > 0.9


def test_more_starts_never_give_a_worse_objective():
    rng = np.random.default_rng(5)
    items = oracle.random_items(rng, PLAIN, n_items=30, n_workers=5, longest=1, skip=0)
    crowd = oracle.crowd_of(PLAIN, items, workers=5)
    values = [
        goldspan.aggregate(crowd, "mace", n_starts=n, random_state=1).trace[-1] for n in (1, 3, 6)
    ]
    assert values == sorted(values)
    again = goldspan.aggregate(crowd, "mace", n_starts=6, random_state=1)
    assert again.trace[-1] == values[-1]
