"""CRF-MA's options: random starts, the Dirichlet prior, other measures, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aggregation.bsc import oracle
from goldspan.aggregation import aggregate, get_aggregator
from goldspan.aggregation.crf import CrfMa
from goldspan.aggregation.crf.rounds import measured
from goldspan.crowd import Crowd
from goldspan.errors import InputError, UnknownNameError
from goldspan.spans import Codec

FEW = ("lower", "suffix3", "is_title", "lower[-1]")
QUICK = {"templates": FEW, "max_iter": 3, "steps": 15}


def test_a_random_start_is_the_same_for_a_seed_whatever_the_order_of_workers(crowd):
    options = {**QUICK, "begin": "random", "max_iter": 1}
    one, two = (aggregate(crowd, "crf-ma", **options, random_state=7).memory for _ in range(2))
    other = aggregate(crowd, "crf-ma", **options, random_state=8).memory
    np.testing.assert_array_equal(one.begin, two.begin)
    assert not np.allclose(one.begin, other.begin)
    order = np.arange(crowd.n_workers)[::-1]
    answers = replace(crowd.latest, worker=order[crowd.latest.worker].astype(np.int32))
    moved = replace(crowd, answers=answers, worker_ids=crowd.worker_ids.take(order))
    found = aggregate(moved, "crf-ma", **options, random_state=7).memory
    np.testing.assert_allclose(found.begin, one.begin[order])


def test_alpha_raises_the_workers_it_names_and_strength_says_how_much(crowd):
    def of_gus(**options):
        result = aggregate(crowd, "crf-ma", **QUICK, **options)
        return result.memory.pi[-1][crowd.worker_index("gus")]

    weak, strong = (of_gus(alpha={"gus": 2.0}, strength=s) for s in (0.1, 10.0))
    assert of_gus() < weak < strong
    assert strong > 0.5
    with pytest.raises(InputError, match="alpha: there is no worker 'nobody'"):
        of_gus(alpha={"nobody": 2.0})


@pytest.mark.parametrize("alpha", [[1.5, 2.0], (2.0,), "2", np.array([1.0, 2.0])])
def test_a_list_of_alphas_is_refused_as_it_names_no_worker(alpha):
    words = "alpha must be a number for all workers, or a mapping from worker ids to numbers"
    with pytest.raises(InputError, match=words):
        get_aggregator("crf-ma", alpha=alpha)


@pytest.mark.parametrize("alpha", [2, 1.5, np.float64(2.0), {"gus": 2.0}])
def test_a_number_or_a_mapping_is_an_alpha(alpha):
    assert get_aggregator("crf-ma", alpha=alpha).alpha == alpha


def test_the_measure_may_be_accuracy_or_a_function(crowd):
    flat = aggregate(crowd, "crf-ma", **QUICK, reliability="accuracy").memory.pi[-1]
    assert flat.std() < aggregate(crowd, "crf-ma", **QUICK).memory.pi[-1].std()
    own = aggregate(crowd, "crf-ma", **QUICK, reliability=only_bo).memory.pi[-1]
    assert own[crowd.worker_index("bo")] == 1.0
    for wrong in (lambda c, _: np.ones(c.n_workers - 1), lambda c, _: -np.ones(c.n_workers)):
        with pytest.raises(InputError, match="reliability: the function must give 7 finite"):
            aggregate(crowd, "crf-ma", **QUICK, reliability=wrong)


def test_spans_that_touch_what_is_skipped_or_unknown_are_left_out_of_f1():
    truth = np.array([1, 2, 0, 1, 2, -1], np.int16)  # X X O X X and a token not known
    answers = {
        0: [0, -1, 0, 1, 2, 0],  # the missed span touches the skipped token
        1: [0, 0, 0, 1, 2, 0],  # the same span missed, nothing skipped
        2: [1, 2, 0, 1, 2, 1],  # a span on the unknown token
        3: [-1, 1, 0, 1, 2, 0],  # a wrong span beside the skipped token still counts
    }
    crowd = oracle.crowd_of(Codec.from_types(["X"], "BIO"), [answers])
    expected = [1, 2 / 3, 1, 2 / 3]
    np.testing.assert_allclose(measured(crowd, truth, "f1"), expected)


def only_bo(crowd: Crowd, codes: np.ndarray) -> np.ndarray:
    assert codes.shape == (crowd.n_tokens,)
    return np.array([float(name == "bo") for name in crowd.worker_ids.to_pylist()])


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"normalise": "both"}, UnknownNameError, "value of normalise"),
        ({"reliability": "f2"}, UnknownNameError, "reliability measure"),
        ({"reliability": 3}, InputError, "reliability must be a name or a function"),
        ({"begin": "truth"}, UnknownNameError, "value of begin"),
        ({"decode": "best"}, UnknownNameError, "value of decode"),
        ({"alpha": 0.5}, InputError, "alpha must be a number of at least 1"),
        ({"alpha": {"ana": 0.5}}, InputError, "alpha of worker ana"),
        ({"tau": -1.0}, InputError, "tau"),
        ({"power": np.nan}, InputError, "power"),
        ({"strength": np.inf}, InputError, "strength"),
        ({"min_answers": 0}, InputError, "min_answers"),
        ({"steps": 0}, InputError, "steps"),
        ({"max_iter": True}, InputError, "max_iter"),
        ({"c2": "much"}, InputError, "c2"),
        ({"tol": -1.0}, InputError, "tol"),
        ({"tau": 1e308}, InputError, "tau must be a number of at least 0 and at most 1000, not"),
        ({"power": 1e9}, InputError, "power must be a number of at least 0 and at most 100, not"),
        ({"alpha": 1e308}, InputError, "alpha must be a number of at least 1 and at most 1e"),
        ({"alpha": {"ana": 1e308}}, InputError, "alpha of worker ana must be .* at most 1e"),
        ({"strength": 1e308}, InputError, "strength must be .* at most 1e"),
        ({"c2": 1e300}, InputError, "c2 must be .* at most 1e"),
        ({"random_state": 1.5}, InputError, "random_state"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, error, message):
    with pytest.raises(error, match=message):
        CrfMa(**params)


LARGEST = {
    "tau": {"tau": 1e3},
    "power": {"power": 100},
    "alpha": {"alpha": 1e12},
    "alpha of one": {"alpha": {"gus": 1e12}, "strength": 1e12},
    "c2": {"c2": 1e12},
    "all": {"tau": 1e3, "power": 100, "alpha": 1e12, "strength": 1e12, "c2": 1e12},
}


@pytest.mark.parametrize("options", LARGEST.values(), ids=LARGEST)
def test_with_the_largest_parameters_everything_is_finite(crowd, options):
    result = aggregate(crowd, "crf-ma", **QUICK, **options)
    trace = result.memory
    assert all(np.isfinite(part).all() for part in (trace.expectation, trace.objective))
    for shares in (trace.gamma, trace.pi):
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(result.token_probs).all()


def test_strength_multiplies_the_pseudo_counts(crowd):
    one = aggregate(crowd, "crf-ma", **QUICK, alpha=3.0, strength=0.5).memory
    two = aggregate(crowd, "crf-ma", **QUICK, alpha=2.0).memory
    np.testing.assert_array_equal(one.pi, two.pi)
    np.testing.assert_array_equal(one.objective, two.objective)
