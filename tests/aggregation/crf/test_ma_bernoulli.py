"""CRF-MA in which every worker is right, or answers at random, on their own (section 3.3)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import beta

from aggregation.bsc import oracle
from goldspan.aggregation import aggregate
from goldspan.aggregation.crf import CrfMa
from goldspan.aggregation.crf.rounds import (
    LEAST_PI,
    Totals,
    TrainingSequences,
    expectation,
    from_gamma,
    from_measure,
    log_likelihood,
    log_prior,
    responsibilities,
)
from goldspan.errors import InputError, UnknownNameError
from goldspan.runners import FileCheckpoint
from goldspan.spans import Codec
from goldspan.tagger.crf import Masks

QUICK = {"templates": ("lower", "suffix3", "is_title", "lower[-1]"), "max_iter": 3, "steps": 15}
BERNOULLI = {"latent": "bernoulli"}
EXACT = {**BERNOULLI, "normalise": "ratio", "reliability": "posterior"}
BIO = Codec.from_types(["X", "Y"], "BIO")
C, PI = 5, np.array([0.5, 0.3, 0.9])
EVERY = Totals(np.log([0.4 * 0.1, 0.02 * 0.3 * 0.004, 0.2]), np.array([3, 6, 1]), C)


def enumerated(pi, log_prob, n_given, n_labels):
    """Return z, and ln p(D, z) less that of random answers, over all z in {0, 1}^R."""
    z = np.array(list(product([0, 1], repeat=len(pi))))
    ratio = log_prob + n_given * np.log(n_labels)
    return z, (z * (np.log(pi) + ratio) + (1 - z) * np.log(1 - pi)).sum(axis=1)


def test_the_e_step_the_likelihood_and_the_expectation_are_those_of_all_z():
    z, logs = enumerated(PI, EVERY.log_prob, EVERY.n_given, C)
    p = np.exp(logs)
    gamma = responsibilities(PI, EVERY, "ratio", **BERNOULLI)
    np.testing.assert_allclose(gamma, p @ z / p.sum(), atol=1e-12)
    assert gamma.sum() > 1  # several are right at once
    assert log_likelihood(PI, EVERY, **BERNOULLI) == pytest.approx(np.log(p.sum()), abs=1e-12)
    found = expectation(gamma, PI, EVERY, **BERNOULLI)
    assert found == pytest.approx(p / p.sum() @ logs, abs=1e-12)


def test_per_label_the_ratio_is_the_geometric_mean_and_what_is_left_out_has_no_part():
    mean = (C * np.exp(EVERY.log_prob / EVERY.n_given)) ** 2.0
    found = responsibilities(PI, EVERY, "token", 2.0, **BERNOULLI)
    np.testing.assert_allclose(found, PI * mean / (1 - PI + PI * mean), atol=1e-12)
    none = Totals(np.append(EVERY.log_prob, 0.0), np.append(EVERY.n_given, 0), C)
    four = np.append(PI, 0.7)
    gamma = responsibilities(four, none, "token", 2.0, **BERNOULLI)
    np.testing.assert_array_equal(gamma, [*found, 0])
    for value in (
        log_likelihood,
        lambda *args, **kw: expectation(gamma[: len(args[0])], *args, **kw),
    ):
        assert value(four, none, **BERNOULLI) == pytest.approx(value(PI, EVERY, **BERNOULLI))


def test_the_exact_step_maximises_expectation_and_beta_prior():
    gamma, alpha, kept = np.array([0.5, 0.0, 1.0]), np.array([2.0, 1.0, 1.5]), EVERY.kept

    def value(pi):
        return expectation(gamma, pi, EVERY, **BERNOULLI) + log_prior(pi, alpha, kept, **BERNOULLI)

    best = from_gamma(gamma, alpha, kept, **BERNOULLI)
    np.testing.assert_allclose(best, [0.75, LEAST_PI, 1.0])
    others = np.random.default_rng(0).uniform(size=(50, 3))
    assert all(value(other) < value(best) for other in others)
    one, two = others[:2]
    apart = log_prior(one, alpha, kept, **BERNOULLI) - log_prior(two, alpha, kept, **BERNOULLI)
    assert apart == pytest.approx(
        beta.logpdf(one, alpha, 1).sum() - beta.logpdf(two, alpha, 1).sum()
    )


def test_a_measure_is_a_reliability_as_it_is_and_must_be_a_share():
    kept, alpha = np.array([True, True, True, False]), np.array([1.0, 1.0, 3.0, 1.0])
    found = from_measure(np.array([0.8, np.nan, 0.4, 1.0]), 2, alpha, kept, **BERNOULLI)
    np.testing.assert_allclose(found, [0.64, 0.36, (0.16 + 2) / 3, 0])
    with pytest.raises(InputError, match="a measure must be at most 1"):
        from_measure(np.array([1.5]), 2, np.ones(1), kept[:1], **BERNOULLI)


@pytest.mark.parametrize("model", ["crf", "hmm"])
def test_the_objective_is_that_of_all_z_and_all_paths_with_the_log_priors(model):
    items = oracle.random_items(np.random.default_rng(5), BIO, n_items=4, n_workers=3)
    crowd = oracle.crowd_of(BIO, items)
    options = {**BERNOULLI, "alpha": 2.0, "c2": 0.2, "max_iter": 3, "tol": 0.0}
    result = aggregate(crowd, "crf-ma", **options, model=model, templates=["lower"])
    scores = result.tagger.log_potentials([t.as_py() for t in crowd.tokens])
    sequences, _ = TrainingSequences.of_crowd(crowd, Masks.of(BIO, hard=True))
    log_prob, n_given = np.zeros(3), np.zeros(3)
    for a, (item, worker) in enumerate(zip(crowd.latest.item, crowd.latest.worker, strict=True)):
        begin, stop = crowd.offsets[item : item + 2]
        paths = oracle.legal_paths(BIO, stop - begin)
        args = (scores.unary[begin:stop], scores.start, scores.step, scores.end, paths)
        own = sequences.codes[sequences.offset[a] : sequences.offset[a + 1]]
        agree = ((paths == own) | (own < 0)).all(axis=1)
        if (own >= 0).any():
            log_prob[worker] += np.log(oracle.enumerate_item(*args).p[agree].sum())
            n_given[worker] += (own >= 0).sum()
    pi, weights = result.memory.pi[-1], result.tagger.weights_.vector
    _, logs = enumerated(pi, log_prob, n_given, len(BIO.tags))
    expected = np.log(np.exp(logs).sum()) + np.log(pi).sum()
    expected -= 0.2 * weights @ weights if model == "crf" else 0
    assert result.memory.objective[-1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("alpha", [1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_exact_em_never_lowers_the_objective(alpha, seed):
    items = oracle.random_items(np.random.default_rng(seed), BIO, n_items=12, n_workers=4)
    result = aggregate(
        oracle.crowd_of(BIO, items), "crf-ma", **EXACT, alpha=alpha, begin="random",
        random_state=seed, steps=150, max_iter=8, tol=0.0, c2=0.3,
    )  # fmt: skip
    objective = result.memory.objective
    assert len(objective) > 2
    assert (np.diff(objective) > -1e-7 * np.abs(objective[:-1])).all()
    assert objective[-1] > objective[0] + 1e-3


def test_several_workers_are_right_a_spammer_is_not(crowd):
    trace = aggregate(crowd, "crf-ma", **BERNOULLI, templates="rodrigues", c2=1.0).memory
    assert ((trace.pi > 0) & (trace.pi <= 1)).all()
    spammer = crowd.worker_index("gus")
    assert trace.pi[-1].argmin() == trace.gamma[-1].argmin() == spammer
    assert (np.delete(trace.gamma[-1], spammer) > 0.5).sum() > 2
    drawn = aggregate(crowd, "crf-ma", **BERNOULLI, **QUICK, begin="random", random_state=7).memory
    assert drawn.begin.sum() > 1
    few = aggregate(crowd, "crf-ma", **BERNOULLI, **QUICK, min_answers=80)
    answers = few.workers["answers"].to_numpy()
    np.testing.assert_array_equal(few.memory.pi[-1] == 0, answers < 80)


def test_it_goes_on_from_its_own_reliabilities_and_from_a_checkpoint(crowd, tmp_path):
    whole = aggregate(crowd, "crf-ma", **BERNOULLI, **QUICK, tol=0.0)
    once = {**QUICK, "max_iter": 1}
    again = aggregate(crowd, "crf-ma", **BERNOULLI, **once, start=whole)
    np.testing.assert_allclose(again.memory.begin, whole.memory.pi[-1])
    other = aggregate(
        crowd, "crf-ma", **BERNOULLI, **once, start=aggregate(crowd, "crf-ma", **once)
    )
    np.testing.assert_array_equal(other.memory.begin, whole.memory.begin)  # shares are not carried
    place = FileCheckpoint(tmp_path / "state.npz")

    def stop(done, *_):
        if done == 2:
            raise KeyboardInterrupt

    aggregate(crowd, "crf-ma", **BERNOULLI, **QUICK, tol=0.0, checkpoint=place, progress=stop)
    result = aggregate(crowd, "crf-ma", **BERNOULLI, **QUICK, tol=0.0, checkpoint=place)
    np.testing.assert_allclose(result.trace, whole.trace, rtol=1e-12)


def test_known_truth_stays(crowd):
    known = np.where(np.arange(crowd.n_tokens) < 200, crowd.gold, -1).astype(np.int16)
    result = aggregate(crowd, "crf-ma", **BERNOULLI, **QUICK, gold=crowd.with_gold(known))
    np.testing.assert_array_equal(result.codes[:200], known[:200])


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"latent": "beta"}, UnknownNameError, "value of latent"),
        ({**BERNOULLI, "normalise": "none"}, InputError, "random answers do not cancel"),
    ],
)
def test_what_makes_no_sense_is_refused(params, error, message):
    with pytest.raises(error, match=message):
        CrfMa(**params)
