"""Means and medians against loops, the precision of workers, and what is written."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.numeric import Groups, nearest_label, weighted_mean, weighted_median
from goldspan.errors import InputError, UnknownNameError

TEXT = b"task,worker,label\n1,a,3\n1,b,4\n1,c,8\n2,a,-1\n2,c,2.5\n3,b,4\n"
BOTH = pytest.mark.parametrize("method", ["mean", "median"])
groups = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=20
)


def laid_out(rows):
    owner, number, weight = (np.array(column) for column in zip(*rows, strict=True))
    return Groups(owner, number.astype(float), 4), weight.astype(float)


def repeated(rows, group):
    """The numbers of a group, each as often as its weight says."""
    return sorted(x for owner, x, w in rows if owner == group for _ in range(w))


@given(groups)
def test_weights_count_as_repetitions(rows):
    found, weight = laid_out(rows)
    means, medians = weighted_mean(found, weight), weighted_median(found, weight)
    for group in range(4):
        numbers = repeated(rows, group)
        if not numbers:
            assert np.isnan(means[group])
            assert np.isnan(medians[group])
            continue
        assert means[group] == pytest.approx(np.mean(numbers), abs=1e-9)
        assert medians[group] == numbers[(len(numbers) - 1) // 2]


@given(groups, st.sampled_from([0.1, 0.25, 0.4]))
def test_the_trimmed_mean_cuts_weight_off_either_end(rows, trim):
    found, weight = laid_out(rows)
    means = weighted_mean(found, weight, trim)
    for group in range(4):
        numbers = np.repeat(repeated(rows, group), 20)  # so that whole numbers are cut
        if len(numbers):
            cut = round(trim * len(numbers))
            assert means[group] == pytest.approx(numbers[cut : len(numbers) - cut].mean(), abs=1e-9)


@given(groups, st.sampled_from([1.0, 1e3, 1e17]))
def test_where_a_number_stands_in_its_group_depends_on_no_other_group(rows, other):
    found, weight = laid_out(rows)
    before = Groups(np.append(0, found.group + 1), np.append(0.0, found.number), 5)
    for alone, beside in zip(
        found.ranks(weight), before.ranks(np.append(other, weight)), strict=True
    ):
        np.testing.assert_array_equal(alone, beside[1:])


def test_two_answers_of_the_same_weight_have_the_lower_as_median_everywhere_in_a_file():
    weight = np.random.default_rng(0).uniform(0.1, 9, 2000).repeat(2)
    numbers = np.tile([1.0, 2.0], 2000)
    found = Groups(np.append(0, 1 + np.arange(2000).repeat(2)), np.append(7.0, numbers), 2001)
    medians = weighted_median(found, np.append(1e6, weight))
    assert medians.tolist() == [7.0] + [1.0] * 2000


def test_the_nearest_label_is_the_smaller_of_two():
    numbers = np.array([4.0, -1.0, 2.0])
    found = nearest_label(np.array([-9, 0.5, 3.0, 3.1, 99, np.nan]), numbers)
    assert found.tolist() == [1, 1, 2, 0, 0, -1]


def test_a_mean_may_lie_between_labels_and_a_median_is_one():
    crowd = goldspan.read_crowd(TEXT)
    mean, median = goldspan.aggregate(crowd, "mean"), goldspan.aggregate(crowd, "median")
    assert mean.values.tolist() == [5.0, 0.75, 4.0]
    assert mean.labels == ["4", "-1", "4"]
    assert median.values.tolist() == [4.0, -1.0, 4.0]
    assert median.labels == ["4", "-1", "4"]
    spread = mean.item_columns["spread"]
    assert spread[0] == pytest.approx(np.std([3, 4, 8], ddof=1), abs=1e-12)
    assert np.isnan(spread[2])


def test_confidence_is_the_share_of_answers_within_the_tolerance():
    crowd = goldspan.read_crowd(TEXT)
    near = goldspan.aggregate(crowd, "median", tolerance=1)
    assert near.confidence.tolist() == pytest.approx([2 / 3, 1 / 2, 1])
    # The root mean square of 1, 0, 4, 0 and 3.5 is 2.42.
    usual = goldspan.aggregate(crowd, "median")
    assert usual.confidence.tolist() == pytest.approx([2 / 3, 1 / 2, 1])
    assert goldspan.aggregate(crowd, "median", tolerance=4).confidence.tolist() == [1, 1, 1]


def test_workers_have_a_bias_and_an_error_against_the_values():
    rows = {
        r["worker"]: r
        for r in goldspan.aggregate(goldspan.read_crowd(TEXT), "mean").workers.to_pylist()
    }
    assert rows["a"]["bias"] == pytest.approx((3 - 5 + (-1 - 0.75)) / 2)
    assert rows["c"]["rmse"] == pytest.approx(np.sqrt((3**2 + 1.75**2) / 2))
    assert (rows["b"]["labels"], rows["b"]["bias"]) == (2, pytest.approx(-1))  # 3 is his alone


def drawn(seed=0, n_items=300, sigma=(0.2, 0.2, 1.0, 1.0, 3.0), absent=0.2):
    """Draw answers of workers with errors of different size; a crowd and the true values."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 5, n_items)
    lines = ["task,worker,label"]
    for n, value in enumerate(truth):
        for k, s in enumerate(sigma):
            if rng.random() >= absent:
                lines.append(f"t{n},w{k},{value + rng.normal(0, s):.3f}")
    crowd = goldspan.read_crowd("\n".join(lines).encode())
    return crowd, np.array([truth[int(name[1:])] for name in crowd.item_ids.to_pylist()])


@BOTH
def test_weights_by_agreement_find_the_precise_workers_and_help(method):
    crowd, truth = drawn()
    even = goldspan.aggregate(crowd, method)
    found = goldspan.aggregate(crowd, method, weights="agreement")
    assert found.converged
    rows = {r["worker"]: r["weight"] for r in found.workers.to_pylist()}
    assert min(rows["w0"], rows["w1"]) > 5 * max(rows["w2"], rows["w3"]) > 5 * rows["w4"]

    def error(result):
        return np.sqrt(((result.values - truth) ** 2).mean())

    assert error(found) < 0.6 * error(even)


def test_the_weights_of_a_mean_are_inverse_variances():
    sigma = np.array([0.5, 1.0, 1.0, 2.0, 4.0])
    crowd, _ = drawn(1, 1500, sigma, 0.0)
    rows = {
        r["worker"]: r["weight"]
        for r in goldspan.aggregate(crowd, "mean", weights="agreement").workers.to_pylist()
    }
    weight = np.array([rows[f"w{k}"] for k in range(5)])
    np.testing.assert_allclose((weight / weight[1]) ** -0.5, sigma, rtol=0.1)


def test_two_workers_who_always_agree_do_not_take_all_the_weight():
    lines = ["task,worker,label"]
    rng = np.random.default_rng(0)
    for n in range(40):
        lines += [f"{n},w{k},{rng.normal():.3f}" for k in range(3)]
    found = goldspan.aggregate(
        goldspan.read_crowd("\n".join(lines).encode()), "mean", weights="agreement"
    )
    weight = found.workers.column("weight").to_numpy()
    assert weight.max() < 3 * weight.min()


@BOTH
def test_an_item_without_answers_stays_open_and_is_written_empty(method, tmp_path):
    builder = goldspan.crowd.CrowdBuilder()
    for name, number in (("a", "1"), ("b", None)):
        place = builder.add_item(name, [name])
        if number:
            builder.add_answer(place, "w", [number])
    result = goldspan.aggregate(builder.build(), method)
    assert result.labels == ["1", None]
    assert np.isnan(result.values).tolist() == [False, True]
    result.write(tmp_path / "gold.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "gold.jsonl").read_text().splitlines()]
    assert [row["value"] for row in rows] == [1.0, None]


def test_values_are_written_in_every_format_but_conll(tmp_path):
    result = goldspan.aggregate(goldspan.read_crowd(TEXT), "mean")
    for ending in ("csv", "parquet", "jsonl"):
        result.write(tmp_path / f"gold.{ending}")
    lines = (tmp_path / "gold.csv").read_text().splitlines()
    assert lines[0] == "item,label,confidence,value,spread"
    assert lines[3] == "3,4,1.0000,4.0,"
    table = pq.read_table(tmp_path / "gold.parquet")
    assert table.column("value").to_pylist() == [5.0, 0.75, 4.0]
    assert table.column("spread").to_pylist()[2] is None
    rows = [json.loads(line) for line in (tmp_path / "gold.jsonl").read_text().splitlines()]
    assert [row["value"] for row in rows] == [5.0, 0.75, 4.0]


@BOTH
def test_labels_that_are_no_numbers_are_refused_with_the_first_of_them(method):
    text = "task,worker,label\n" + "".join(f"1,w{i},{x}\n" for i, x in enumerate(["3", "inf", "x"]))
    with pytest.raises(InputError, match="'inf', 'x'"):
        goldspan.aggregate(goldspan.read_crowd(text.encode()), method)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"weights": "votes"}, "weights"),
        ({"trim": 0.5}, "trim"),
        ({"tolerance": -1}, "tolerance"),
        ({"max_iter": 0}, "max_iter"),
        ({"history": 1}, "history must be a result of mean or median"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        get_aggregator("mean", **wrong)
