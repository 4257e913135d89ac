"""Eight numbers at a time: the same bits as one by one."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from goldspan._kernel import _called, _options, _stamp, kernel
from goldspan.aggregation.kernels import weighted_quantiles
from goldspan.chains.vectors import (
    SIZE,
    exp8,
    larger8,
    largest8,
    load8,
    load8_apart,
    smaller8,
    smallest8,
    spread8,
    store8,
    store8_apart,
    sum8,
)


@numba.njit(error_model="numpy")
def mixed(left, right, factor, out):
    """All of the arithmetic, on places in the middle of arrays of one, two and three axes."""
    a, b = load8(left, 3), load8(right, (1, 2))
    both = (a * b + factor) / (b - 2.0 * a)
    store8(out, (1, 0, 1), larger8(both, a) - smaller8(both, b))
    return sum8(both)


@numba.njit(error_model="numpy")
def exponentials(values, out):
    for at in range(0, len(values), SIZE):
        store8(out, at, exp8(load8(values, at)))


def test_arithmetic_has_the_bits_of_numpy():
    rng = np.random.default_rng(0)
    left, right, out = rng.normal(size=12), rng.normal(size=(3, 11)), np.zeros((2, 2, 10))
    total = mixed(left, right, 0.7, out)
    a, b = left[3:11], right[1, 2:10]
    both = (a * b + 0.7) / (b - 2.0 * a)
    np.testing.assert_array_equal(out[1, 0, 1:9], np.maximum(both, a) - np.minimum(both, b))
    assert np.count_nonzero(out) == SIZE
    fours = both[:4] + both[4:]
    assert total == (fours[0] + fours[2]) + (fours[1] + fours[3])


def test_places_may_be_of_any_whole_type():
    @numba.njit
    def row(table, rows):
        total = spread8(0.0)
        for n in rows:
            total = total + load8(table, (n, 0))
        return sum8(total)

    table = np.arange(24.0).reshape(3, 8)
    for kind in (np.int32, np.int64, np.uint8):
        assert row(table, np.array([0, 2], kind)) == table[[0, 2]].sum()


def test_numbers_that_stand_apart_are_read_and_written():
    @numba.njit
    def turned(table, out):
        for column in range(3):
            own = load8_apart(table, (1, 0, column), 3)
            store8(out, (column, 0), own)
            store8_apart(out, (4, column), 8, own)
        return largest8(load8(out, (1, 0))), smallest8(load8(out, (1, 0)))

    table, out = np.random.default_rng(3).normal(size=(2, 8, 3)), np.zeros((12, 8))
    high, low = turned(table, out)
    np.testing.assert_array_equal(out[:3], table[1].T)
    np.testing.assert_array_equal(out[4:, :3], table[1])
    assert (high, low) == (table[1, :, 1].max(), table[1, :, 1].min())


def test_exponentials_are_those_of_numpy():
    far = np.linspace(-700, 700, 16_000)
    near = np.random.default_rng(6).uniform(-40, 0, 16_000)
    edges = np.array([0.0, -0.0, 1.0, -1.0, np.log(2), -np.log(2), 1e-300, -1e-17])
    values = np.concatenate([far, near, edges])
    found = np.empty_like(values)
    exponentials(values, found)
    np.testing.assert_allclose(found, np.exp(values), rtol=4.5e-16)
    assert found[-8] == found[-7] == 1


@pytest.mark.parametrize("array", [np.zeros((8, 8), np.float32), np.zeros((8, 8)).T[:, :]])
def test_other_arrays_are_refused_when_compiled(array):
    @numba.njit
    def first(table):
        return sum8(load8(table, (0, 0)))

    with pytest.raises(TypeError, match="C order and float64"):
        first(array)


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
    one = kernel(load8_row)
    assert one._cache._impl.locator.get_source_stamp() == _stamp(__file__, globals())
    assert len(_stamp(__file__, globals())) == 64


def load8_row(table):
    return sum8(load8(table, 0))


def test_machine_code_depends_on_the_vectors_source():
    """A change of an intrinsic leaves no old machine code in force."""
    assert _called(load8).__code__.co_filename.endswith("chains/vectors.py")
    assert _called(larger8).__code__.co_filename.endswith("chains/vectors.py")
    assert _called(kernel(lambda: 0)).__code__.co_filename == __file__
    assert _called(1.0) is None
