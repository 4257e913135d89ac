"""Two crowds whose golds are compared."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from crowd_tables import crowd_of
from goldspan.crowd.compare import aligned_sides
from goldspan.errors import InputError

ONE = crowd_of([{}, {}], gold=[["B-X"], ["O", "O"]])


def test_with_a_shared_id_both_sides_stay_as_they_are():
    other = replace(ONE, item_ids=pa.array(["s1", "elsewhere"]))
    found = aligned_sides(ONE, other)
    assert found[0] is ONE
    assert found[1] is other


def test_without_a_shared_id_the_same_tokens_take_the_ids_of_the_truth():
    other = replace(ONE, item_ids=pa.array(["a", "b"]))
    predicted, truth = aligned_sides(ONE, other)
    assert truth is other
    assert predicted.item_ids.to_pylist() == ["a", "b"]
    assert predicted.gold.tolist() == ONE.gold.tolist()


def test_what_fits_in_neither_way_is_refused_with_the_first_ids():
    other = replace(ONE, item_ids=pa.array(["a", "b"]), tokens=pa.array([["x"], ["y", "z"]]))
    with pytest.raises(InputError, match=r"no item id is on both sides \('s0' …, 'a' …\)"):
        aligned_sides(ONE, other)
