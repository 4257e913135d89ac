"""Measures of confidences against direct counts, beside those of a constant confidence."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.plausibility import measure_confidence
from goldspan.aggregation.written import read_confidences
from goldspan.spans.confidence import score_confidence


def drawn(seed, n=60):
    rng = np.random.default_rng(seed)
    # A few values only, so that there are ties.
    sure = rng.choice([0.05, 0.1, 0.35, 0.6, 0.85, 0.97, 1.0], n)
    return sure, rng.random(n) < sure


def direct_ece(sure, right):
    total = 0.0
    for k in range(10):
        inside = [
            (p, y)
            for p, y in zip(sure, right, strict=True)
            if k / 10 < p <= (k + 1) / 10 or (k == 0 and p == 0)
        ]
        if inside:
            total += abs(sum(p for p, _ in inside) - sum(y for _, y in inside))
    return total / len(sure)


@pytest.mark.parametrize("seed", range(5))
def test_measures_are_what_they_say(seed):
    sure, right = drawn(seed)
    found = score_confidence("span", sure, right, [0.5, 0.25], [True, False], 4)
    assert found.ece == pytest.approx(direct_ece(sure.tolist(), right.tolist()))
    least = sorted(range(60), key=lambda n: sure[n])[:12]
    assert found.least_sure_ece == pytest.approx(direct_ece(sure[least], right[least]))
    assert found.brier == pytest.approx(np.mean((sure - right) ** 2))
    clipped = np.clip(sure, 1e-6, 1 - 1e-6)
    assert found.log_loss == pytest.approx(
        np.mean([-math.log(p if y else 1 - p) for p, y in zip(clipped, right, strict=True)])
    )
    pairs = list(product(sure[right], sure[~right]))
    wins = sum((a > b) + (a == b) / 2 for a, b in pairs)
    assert found.auroc == pytest.approx(wins / len(pairs))
    assert found.cross_entropy == pytest.approx((math.log(2) + math.log(4)) / 2)


def test_a_constant_confidence_is_calibrated_and_tells_nothing_apart():
    sure, right = drawn(1)
    found = score_confidence("span", sure, right, [0.9, 0.1], [True, False], 3)
    share = right.mean()
    assert found.constant["ece"] == pytest.approx(0, abs=1e-6)
    assert found.constant["brier"] == pytest.approx(share * (1 - share))
    assert found.constant["log_loss"] == pytest.approx(
        -share * math.log(share) - (1 - share) * math.log(1 - share)
    )
    assert found.constant["auroc"] == 0.5
    # The written tag with the accuracy .5, the two others with a quarter each.
    assert found.constant["cross_entropy"] == pytest.approx((math.log(2) + math.log(4)) / 2)


def test_nothing_to_compare_is_null_in_json():
    found = score_confidence("span", [], [], [], [], 3).to_dict()
    assert found["n"] == 0
    assert found["ece"] is None
    assert found["constant"]["brier"] is None
    json.dumps(found, allow_nan=False)
    lone = score_confidence("span", [0.5, 0.6], [1, 1], [1.0], [True], 3)
    assert math.isnan(lone.auroc)


def test_a_score_of_a_result_has_them_and_one_of_labels_has_not(root):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    result = goldspan.aggregate(crowd, "mv-token")
    scored = goldspan.score(crowd, result)
    assert scored.confidence is not None
    assert scored.confidence.n == len(result.span_array)
    assert scored.confidence.right == pytest.approx(scored.precision)
    assert scored.to_dict()["confidence"]["unit"] == "span"
    assert "Brier score" in str(scored)
    plain = goldspan.score(crowd, result.as_gold())
    assert plain.confidence is None
    assert "confidence" not in plain.to_dict()


def test_unknown_items_and_other_orders_of_items_do_not_matter(root):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    result = goldspan.aggregate(crowd, "ds")
    order = np.random.default_rng(0).permutation(crowd.n_items)[:60]
    part = goldspan.score(crowd.select_items(order), result).confidence
    inside = np.isin(result.span_array.item, order)
    assert part is not None
    assert part.n == inside.sum()
    assert part.mean == pytest.approx(result.span_confidence[inside].mean(), abs=1e-6)


def test_single_labels_count_where_there_are_no_spans():
    votes = b"task,worker,label,gold\nq1,a,yes,yes\nq1,b,yes,yes\nq2,a,no,yes\nq2,b,no,yes\n"
    crowd = goldspan.read_crowd(votes)
    found = goldspan.score(crowd, goldspan.aggregate(crowd, "mv-token")).confidence
    assert found is not None
    assert (found.unit, found.n, found.right, found.ece) == ("label", 2, 0.5, 0.5)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_confidences_of_a_file_are_those_of_the_result(root, tmp_path, ending):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    result = goldspan.aggregate(crowd, "ds")
    path = tmp_path / f"gold.{ending}"
    result.write(path)
    labels = goldspan.read_crowd(path)
    found = read_confidences(str(path), labels)
    assert found is not None
    np.testing.assert_allclose(found.span_confidence, result.span_confidence, atol=1e-4)
    again = measure_confidence(labels, *found, crowd, None).to_dict()
    expected = goldspan.score(crowd, result).confidence.to_dict()
    for name in ("n", "right", "mean", "ece", "brier", "auroc"):
        assert again[name] == pytest.approx(expected[name], abs=1e-3)
    if ending == "parquet":
        assert again["cross_entropy"] == pytest.approx(expected["cross_entropy"])
    else:
        assert again["cross_entropy"] is None


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "csv"])
def test_confidences_of_single_labels_in_a_file(tmp_path, ending):
    votes = b"task,worker,label,gold\n=1,a,yes,yes\n=1,b,no,yes\n=1,c,yes,yes\nq2,a,no,yes\n"
    crowd = goldspan.read_crowd(votes)
    result = goldspan.aggregate(crowd, "mv-token")
    path = tmp_path / f"gold.{ending}"
    result.write(path)
    found = read_confidences(str(path), goldspan.read_crowd(path))
    assert found is not None
    assert found.span_confidence.tolist() == pytest.approx([2 / 3, 1], abs=1e-4)


def test_files_without_confidences_of_all_that_is_labelled(root, tmp_path):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    result = goldspan.aggregate(crowd, "mv-token")
    result.write(tmp_path / "gold.conll")
    path = str(tmp_path / "gold.conll")
    assert read_confidences(path, goldspan.read_crowd(path)) is None
    example = str(root / "examples" / "crowd.tsv")
    assert read_confidences(example, crowd) is None
