"""The draw does what it says, and the estimates are unbiased: by trying all samples."""

from __future__ import annotations

import json
import math
from itertools import permutations

import numpy as np
import pytest

import goldspan
from auditing.making import lines, single_labels, span_labels, spans
from goldspan.auditing import AuditPlan
from goldspan.auditing.intervals import Counts, Drawn, Estimate, Weighed, estimate
from goldspan.errors import InputError

N_SEEDS = 600


def samples(weights, n):
    """Yield all ordered samples of n items with their probability, drawn one after the other."""
    for order in permutations(range(len(weights)), n):
        left, chance = sum(weights), 1.0
        for one in order:
            chance *= weights[one] / left
            left -= weights[one]
        yield list(order), chance


def test_items_are_drawn_as_often_as_the_weights_say():
    sure = [0.99, 0.4, 0.9, 0.02, 0.7]
    rows = [
        {"item": f"i{k}", "tokens": ["a", "b"], "gold": spans(["PER"]), "confidence": p}
        for k, p in enumerate(sure)
    ]
    labels = goldspan.read_crowd(lines(rows), format="spans")
    plans = [goldspan.draw_audit(labels, random_state=seed) for seed in range(N_SEEDS)]
    weights = list(plans[0].weights.values())
    assert max(weights) > 2 * min(weights)
    for n in (1, 2, 3):
        expected = np.zeros(len(sure))
        for order, chance in samples(weights, n):
            expected[order] += chance
        drawn = [[f"i{k}" in plan.items[:n] for k in range(len(sure))] for plan in plans]
        gap = 4.5 * np.sqrt(expected * (1 - expected) / N_SEEDS)
        assert (np.abs(np.mean(drawn, axis=0) - expected) < gap).all()


def test_the_first_draws_of_a_plan_have_the_probabilities_that_it_says():
    labels, _ = span_labels(40)
    plan = goldspan.draw_audit(labels, 12)
    left = dict(plan.weights)
    for item, chance in zip(plan.items, plan.probabilities, strict=True):
        assert chance == pytest.approx(left[item] / sum(left.values()))
        del left[item]


def population(right, written):
    """Return counts of a population without confidences, and those of a sample of it."""
    right, written = np.array(right, float), np.array(written, float)
    none = np.zeros(len(right))

    def sampled(order):
        return Counts(written, none, none, right[order], written[order])

    return sampled


@pytest.mark.parametrize(
    ("weights", "n"),
    [([4.0, 1.0, 3.0, 2.0], 1), ([1.0] * 4, 2), ([1.0] * 4, 3), ([1.0] * 5, 4)],
)
def test_the_expectation_over_all_samples_is_the_truth(weights, n):
    written = weights if n == 1 else [2.0] * len(weights)
    right = [3.0, 0.0, 2.0, 2.0] if n == 1 else [2.0, 0.0, 1.0, 2.0, 1.0][: len(weights)]
    sampled, doubt = population(right, written), np.zeros(len(weights))
    mean = sum(
        chance
        * estimate(
            Drawn(np.array(order), np.array(weights)), sampled(order), doubt, "precision"
        ).value
        for order, chance in samples(weights, n)
    )
    assert mean == pytest.approx(sum(right) / sum(written), abs=1e-12)


def test_with_unequal_chances_the_bias_is_far_below_the_noise():
    weights, right, written = [1.0, 2.0, 1.5, 3.0, 1.0, 2.0], [1, 3, 2, 4, 2, 3], [2, 3, 2, 5, 2, 3]
    sampled = population(right, written)
    found = [
        (chance, estimate(Drawn(np.array(o), np.array(weights)), sampled(o), np.zeros(6)).value)
        for o, chance in samples(weights, 3)
    ]
    truth = sum(right) / sum(written)
    mean = sum(chance * value for chance, value in found)
    spread = math.sqrt(sum(chance * (value - truth) ** 2 for chance, value in found))
    assert abs(mean - truth) < 0.1 * spread


def test_confidences_that_foresee_everything_take_most_of_the_noise():
    right, written = np.array([2.0, 0.0, 1.0, 3.0, 1.0]), np.array([2.0, 1.0, 2.0, 3.0, 2.0])
    weights, noise = np.array([1.0, 2.0, 1.0, 0.5, 1.0]), []
    for expected in (right, np.zeros(5)):
        found = 0.0
        for order, chance in samples(weights.tolist(), 4):
            counts = Counts(written, expected, written, right[order], written[order])
            one = estimate(Drawn(np.array(order), weights), counts, np.zeros(5), "precision")
            assert one.value < 1 or (right == written)[order].all()  # a seen mistake is one
            found += chance * (one.value - 0.7) ** 2
        noise.append(found)
    assert noise[0] < min(0.0242, 0.65 * noise[1])


def test_100_per_cent_is_printed_only_of_1():
    every = [str(Estimate(value, 0.9, 1)) for value in (1, 0.9999, 0.12)]
    assert [one.split(" ")[0] for one in every] == ["100.0", "99.9", "12.0"]


@pytest.mark.parametrize("ratio", ["f1", "precision", "recall"])
def test_when_all_items_are_checked_the_interval_is_a_point(ratio):
    right, written, true = np.array([[2, 0, 1], [2, 1, 2], [3, 0, 1]], float)
    counts = Counts(written, written, written, right[[2, 0, 1]], true[[2, 0, 1]])
    drawn = Drawn(np.array([2, 0, 1]), np.array([1.0, 2.0, 4.0]))
    expected = {"f1": 6 / 9, "precision": 3 / 5, "recall": 3 / 4}[ratio]
    assert estimate(drawn, counts, np.ones(3), ratio) == pytest.approx((expected,) * 3)


def test_a_longer_list_goes_on_from_a_shorter_one():
    labels, _ = span_labels(60)
    lists = [goldspan.draw_audit(labels, n, random_state=3).items for n in (10, 25, 100)]
    assert lists[2][:25] == lists[1]
    assert lists[1][:10] == lists[0]
    assert sorted(lists[2]) == sorted(labels.item_ids.to_pylist())
    assert goldspan.draw_audit(labels, 10).items != lists[0]


@pytest.mark.parametrize("n", [20, 50])
def test_a_plan_comes_back_from_its_file(tmp_path, n):
    labels, truth = span_labels(50)
    plan = goldspan.draw_audit(labels, n, random_state=7)
    plan.save(tmp_path / "plan.json")
    read = AuditPlan.load(tmp_path / "plan.json")
    assert (read.items, read.weights, read.seed, read.labels) == (
        plan.items, plan.weights, plan.seed, plan.labels,
    )  # fmt: skip
    checked = {item: truth[item] for item in plan.items}
    every = (plan, read, tmp_path / "plan.json")
    found = [goldspan.audit(labels, checked, one).to_dict() for one in every]
    assert found[0] == found[1] == found[2]
    with pytest.raises(InputError, match="was read from a file: draw it again"):
        read.write(tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (None, "not a plan"),
        ({"drawn": [{"item": "z"}]}, "not a plan"),
        ({"weights": 3}, "not a plan"),
        ({"version": 2}, "version 2"),
        ({"drawn": [{"item": "a"}, {"item": "a"}]}, "twice"),
        ({"weights": {"a": -1, "b": 3}}, "not positive"),
    ],
)
def test_a_file_that_is_not_a_plan_is_refused(tmp_path, change, match):
    good = {"version": 1, "seed": 0, "labels": "", "weights": {"a": 1, "b": 1}}
    good["drawn"] = [{"item": "a"}]
    (tmp_path / "plan.json").write_text(json.dumps([] if change is None else good))
    if change is not None:
        assert AuditPlan.load(tmp_path / "plan.json").items == ("a",)
        (tmp_path / "plan.json").write_text(json.dumps(good | change))
    with pytest.raises(InputError, match=match):
        AuditPlan.load(tmp_path / "plan.json")
    with pytest.raises(InputError, match="cannot be read"):
        AuditPlan.load(tmp_path / "none.json")


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.parquet", "doccano", "prodigy"])
def test_the_files_for_whoever_checks_hold_the_texts_and_no_labels(tmp_path, name):
    labels, truth = span_labels(30)
    plan = goldspan.draw_audit(labels, 12)
    plan.write(tmp_path / name, None if "." in name else name, first=2)
    data = (tmp_path / name).read_bytes()
    assert name == "x.parquet" or not any(word in data for word in (b"PER", b"LOC", b"confid"))
    how = {"unlabelled": "keep"} | ({} if "." in name else {"format": name})
    if name != "doccano":  # whose format is not told by texts alone
        read = goldspan.read_crowd(tmp_path / name, **how)
        assert tuple(read.item_ids.to_pylist()) == plan.items[2:]
        assert (read.gold, read.attributes, len(read.answers)) == (None, None, 0)
        tokens = dict(zip(truth, labels.tokens_list, strict=True))
        assert read.tokens_list == [tokens[item] for item in plan.items[2:]]


def test_a_table_has_a_row_for_each_single_label(tmp_path):
    rows, _ = single_labels(30)
    plan = goldspan.draw_audit(rows, 10)
    plan.write(tmp_path / "x.csv")
    head, *found = (tmp_path / "x.csv").read_text().splitlines()
    assert head == "item,text,label"
    assert found == [f"{item},," for item in plan.items]
    for name in ("x.conll", "x.tsv", "x"):
        with pytest.raises(InputError, match=r"write .jsonl, a .csv table, or choose"):
            plan.write(tmp_path / name)
    with pytest.raises(InputError, match=r"csv cannot hold .* write .jsonl, or choose"):
        goldspan.draw_audit(span_labels(30)[0], 10).write(tmp_path / "y.csv")


def test_too_few_items_and_labels_that_are_not_there_are_refused():
    labels, _ = span_labels(30)
    for n in (9, "20"):
        with pytest.raises(InputError, match="n must be a whole number of at least 10, not "):
            goldspan.draw_audit(labels, n)
    with pytest.raises(InputError, match="no known labels"):
        goldspan.draw_audit(labels.with_gold(None))


def test_the_checks_to_a_target_come_as_often_as_in_all_outcomes_one_by_one():
    """Many mistakes seen, so that their spread is known: right or wrong go on as Pólya's urn."""
    n, many, target, most = 300, 1e6, 0.73, 60

    def low(right, checked):
        return Weighed(right / checked, 1 / checked, many, checked).interval(0.95, anytime=True).low

    left, found = {240: 1.0}, []  # by right ones, among courses that are not there yet
    for k in range(1, most + 1):
        after = {}
        for right, chance in left.items():
            up = (right + 0.5) / (n + k)
            after[right + 1] = after.get(right + 1, 0) + chance * up
            after[right] = after.get(right, 0) + chance * (1 - up)
        left = {r: chance for r, chance in after.items() if low(r, n + k) < target}
        found.append(1 - sum(left.values()))
    more = Weighed(0.8, 1 / n, many, n).checks_to(target, n, 100_000, 0.95)
    for k in (5, 10, 20, 40, most):
        drawn = (more <= k).mean()  # who looks less often sees it later
        assert found[int(k / 1.13) - 1] - 0.06 < drawn < found[k - 1] + 0.06, k
    assert 0.2 < found[-1] < 0.95
