"""The chain kernels on their own: n best paths, logarithms that no product can hold."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product

import numba
import numpy as np
import pytest

from goldspan._kernel import _options, _stamp, kernel
from goldspan.aggregation.kernels import weighted_quantiles
from goldspan.chains import forward_backward
from goldspan.chains.decoding import n_best_paths
from goldspan.chains.posterior import Chain, best_codes, lattice_of, marginals
from goldspan.spans import Codec


@pytest.fixture(scope="module")
def inner():
    """Return a kernel that only kernels call, with an entry for Python."""

    @cache
    def compiled(name):
        return numba.njit(getattr(forward_backward, name).py_func, error_model="numpy")

    return compiled


def n_best(unary, start, step, end, n):
    paths, log_probs = np.empty((n, len(unary)), np.int16), np.empty(n)
    found = n_best_paths(unary, start, step, end, paths, log_probs)
    return paths[:found].tolist(), log_probs[:found]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_the_n_best_paths_come_in_order_with_their_probabilities(seed, scale):
    rng = np.random.default_rng(seed)
    unary, step = rng.normal(0, scale, (5, 3)), rng.normal(0, scale, (3, 3))
    start, end = rng.normal(0, scale, (2, 3))
    step[rng.random((3, 3)) < 0.3] = -np.inf
    every = {}
    for path in product(range(3), repeat=5):
        score = start[path[0]] + end[path[-1]] + sum(unary[range(5), path])
        score += sum(step[a, b] for a, b in pairwise(path))
        if np.isfinite(score):
            every[path] = score
    log_z = np.logaddexp.reduce(list(every.values()))
    order = sorted(every, key=every.__getitem__, reverse=True)
    for n in (1, 2, 7, 300):
        paths, log_probs = n_best(unary, start, step, end, n)
        assert paths == [list(path) for path in order[:n]]
        expected = [every[path] - log_z for path in order[:n]]
        np.testing.assert_allclose(log_probs, expected, rtol=1e-12, atol=1e-9)


def test_paths_with_equal_scores_are_all_different():
    paths, log_probs = n_best(np.zeros((3, 2)), np.zeros(2), np.zeros((2, 2)), np.zeros(2), 8)
    assert sorted(paths) == [list(path) for path in product((0, 1), repeat=3)]
    np.testing.assert_allclose(log_probs, -3 * np.log(2))


def test_there_may_be_no_path_at_all():
    paths, _ = n_best(np.zeros((2, 2)), np.zeros(2), np.full((2, 2), -np.inf), np.zeros(2), 3)
    assert paths == []


def test_no_token_is_one_path():
    paths, log_probs = n_best(np.zeros((0, 2)), np.zeros(2), np.zeros((2, 2)), np.zeros(2), 3)
    assert (paths, log_probs.tolist()) == ([[]], [0.0])


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_push_and_pull_are_logarithms_of_products(scale, inner):
    rng = np.random.default_rng(0)
    values = rng.normal(0, scale, 4)
    values[1] = -np.inf
    log_step = rng.normal(0, min(scale, 300), (4, 4))
    step = np.exp(log_step)
    step[2, :2] = 0
    with np.errstate(divide="ignore"):
        log_step = np.log(step)
    out, work = np.empty(4), np.empty(4)
    inner("push")(values, step, out, work)
    expected = np.logaddexp.reduce(values[:, None] + log_step, axis=0)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    inner("pull")(values, step, out, work)
    np.testing.assert_allclose(out, np.logaddexp.reduce(values + log_step, axis=1), rtol=1e-12)


def test_nothing_sums_to_nothing(inner):
    assert inner("log_sum")(np.full(3, -np.inf)) == -np.inf
    out = np.empty(2)
    inner("push")(np.full(2, -np.inf), np.ones((2, 2)), out, np.empty(2))
    assert (out == -np.inf).all()


def test_a_long_chain_has_the_log_z_of_its_powers(inner):
    step = np.array([[0.9, 0.1], [0.4, 0.6]])
    length = 5000
    evidence = np.full((length, 2), -1000.0)
    forward = np.empty((length, 2))
    log_z = inner("forward_log")(length, evidence, np.ones(2) / 2, step, np.ones(2), forward)
    assert log_z == pytest.approx(-1000.0 * length, rel=1e-12)


def test_one_scaled_item_has_the_marginals_and_steps_of_all_its_paths(inner):
    rng = np.random.default_rng(0)
    evidence, step = rng.random((4, 3)), rng.random((3, 3))
    start, end = rng.random((2, 3))
    end[1] = step[2, 0] = 0.0
    marginals, steps, z = np.zeros((4, 3)), np.zeros((3, 3)), 0.0
    for path in product(range(3), repeat=4):
        p = start[path[0]] * end[path[-1]] * np.prod(evidence[range(4), path])
        p *= np.prod([step[a, b] for a, b in pairwise(path)])
        z += p
        marginals[range(4), path] += p
        for pair in pairwise(path):
            steps[pair] += p
    forward, outer, found = np.empty((4, 3)), np.zeros((3, 3)), np.zeros((3, 3))
    log_z = inner("forward_scaled")(4, evidence, start, step, end, forward)
    assert log_z == pytest.approx(np.log(z), abs=1e-12)
    inner("expect_scaled")(4, evidence, step, end, 2.0, forward, outer)
    inner("add_steps")(outer, step, found)
    np.testing.assert_allclose(forward, 2 * marginals / z, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found, 2 * steps / z, rtol=1e-12, atol=1e-15)


def test_a_kernel_for_kernels_alone_says_so_to_python_before_and_after_it_is_compiled(inner):
    with pytest.raises(TypeError, match="log_sum is compiled for kernels alone"):
        forward_backward.log_sum(np.zeros(2))
    assert inner("push")(np.zeros(2), np.ones((2, 2)), np.empty(2), np.empty(2)) is None
    with pytest.raises(TypeError, match="log_sum is compiled for kernels alone"):
        forward_backward.log_sum(np.zeros(2))


def test_kernels_that_make_arrays_count_references_and_others_do_not():
    def makes(function):
        return _options(function)["_nrt"]

    assert makes(lambda x: np.argsort(x))  # noqa: PLW0108 - the name is what counts
    assert makes(lambda x: x.copy())
    assert makes(lambda n: np.zeros(n))  # noqa: PLW0108
    assert not makes(lambda x: np.log(max(x[0], 1.0)) * x.shape[0])
    out = np.zeros(1)
    weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.ones(3), np.array([0, 3]), 0.5, out)
    assert out == 2


def test_a_named_cache_folder_has_the_same_stamp(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    one = kernel(lambda table: table[0])
    assert one._cache._impl.locator.get_source_stamp() == _stamp(__file__, globals())
    assert len(_stamp(__file__, globals())) == 64


@pytest.mark.parametrize("lengths", [[2, 1], [], [0]])
def test_an_item_without_any_path_or_token_is_told_apart(lengths):
    codec = Codec.from_types(["A", "B"], "BIO")
    n_labels, n_tokens = len(codec.tags), sum(lengths)
    gold = np.array([codec.index["B-A"], codec.index["I-B"], 0][:n_tokens], np.int16)
    nothing = np.zeros((0, n_labels))
    lattice = lattice_of(
        np.cumsum([0, *lengths]), np.zeros(n_tokens + 1, np.int64), np.zeros(0, np.int32),
        np.ones(len(lengths), np.bool_), gold, nothing, nothing,
        Chain(codec.start_mask * 0.5, codec.mask * 0.5, codec.end_mask * 1.0),
    )  # fmt: skip
    probs, entropy = marginals(lattice)
    codes = best_codes(lattice, lattice.log_start, lattice.log_step, lattice.log_end)
    assert len(probs) == len(codes) == n_tokens
    if n_tokens:
        assert lattice.log_z[0] == -np.inf < lattice.log_z[1]
        assert np.isnan(probs[0, 0])
        assert codes.tolist() == [0, 0, 0]
    else:
        assert entropy.tolist() == [0.0] * len(lengths)
