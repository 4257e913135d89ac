"""Conformal sets: the threshold and the truth of a span by brute force, coverage by simulation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import goldspan
from goldspan.aggregation import calibrate
from goldspan.aggregation.conformal import (
    choose_threshold,
    conformal_sets,
    span_options,
    true_options,
)
from goldspan.errors import InputError
from goldspan.spans import Tagged, find_spans


@pytest.fixture(scope="module", params=["ds", "bsc-seq", "mv-token"])
def result(crowd, request):
    return goldspan.aggregate(crowd, request.param)


def smallest_threshold(scores, document, coverage):
    """Try every threshold, from the smallest."""
    names = sorted(set(document))
    for tried in sorted({0.0, *scores}):
        missed = 0.0
        for name in names:
            own = [s for s, d in zip(scores, document, strict=True) if d == name]
            missed += sum(s > tried for s in own) / len(own)
        if (1 + missed) / (len(names) + 1) <= 1 - coverage + 1e-12:
            return tried
    return None


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_the_smallest_that_covers(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 80))
    scores = rng.choice([0.0, 0.0, 0.2, 0.5, 0.5, 0.8, 0.999], n)
    document = rng.integers(0, 12, n)
    coverage = float(rng.choice([0.5, 0.7, 0.8]))
    expected = smallest_threshold(scores.tolist(), document.tolist(), coverage)
    assert choose_threshold(scores, document, coverage)[0] == expected


def test_sets_of_new_documents_cover_what_was_asked_for():
    """Documents differ in size and difficulty, and are exchangeable."""
    rng = np.random.default_rng(3)

    def draw(n_documents):
        sizes = rng.integers(1, 12, n_documents)
        document = np.repeat(np.arange(n_documents), sizes)
        hard = rng.beta(1, 3, n_documents)[document]
        wrong = rng.random(len(document)) < hard
        return np.where(wrong, rng.random(len(document)), 0.0), document

    coverage, n_documents, covered = 0.9, 39, []
    for _ in range(600):
        threshold, _ = choose_threshold(*draw(n_documents), coverage)
        scores, document = draw(40)
        share = np.bincount(document, scores <= threshold) / np.bincount(document)
        covered.append(share.mean())
    error = np.std(covered) / np.sqrt(len(covered))
    # Between the coverage and one document's worth more.
    assert coverage - 4 * error < np.mean(covered) < coverage + 1 / (n_documents + 1) + 4 * error


def test_held_out_documents_of_a_crowd_are_covered(crowd, result):
    rng = np.random.default_rng(1)
    names = crowd.groups.to_pylist()
    every = sorted(set(names))
    covered, sizes = [], []
    for _ in range(30):
        known = set(rng.permutation(every)[:12].tolist())
        is_known = np.array([name in known for name in names])
        truth = np.where(np.repeat(is_known, np.diff(crowd.offsets)), crowd.gold, -1)
        sets = conformal_sets(result, truth.astype(np.int16), 0.9)
        held = ~is_known[result.span_array.item]
        covered.append(sets.holds(crowd.gold)[held].mean())
        sizes.append(sets.mean_size)
    assert np.mean(covered) > 0.88
    assert 1 <= np.mean(sizes) < 4


def naive_truth(written, true):
    """Return the true span that shares most tokens, the first of several, or None."""
    shared = [(min(b, written[1]) - max(a, written[0]), -a, (a, b, k)) for a, b, k in true]
    best = max((s for s in shared if s[0] > 0), default=None)
    return None if best is None else best[2]


def test_the_truth_of_every_written_span(crowd, result):
    options = span_options(result)
    at = true_options(options, Tagged(crowd.gold, crowd.offsets), crowd.tagset)
    gold = find_spans(Tagged(crowd.gold, crowd.offsets), crowd.tagset)
    true = list(zip(gold.start.tolist(), gold.end.tolist(), gold.type.tolist(), strict=True))
    kinds = set()
    for n, chosen in enumerate(at.tolist()):
        own = range(options.bounds[n], options.bounds[n + 1])
        assert chosen in own
        listed = [(int(options.start[o]), int(options.end[o]), int(options.kind[o])) for o in own]
        expected = naive_truth(listed[0], true)
        kind = int(options.kind[chosen])
        kinds.add(min(kind, 0))
        if expected is None:
            assert kind == -1
        elif expected in listed:
            assert listed[chosen - own[0]] == expected
        else:
            assert kind == -2
    assert 0 in kinds


def test_options_of_a_span_are_a_distribution_and_begin_with_it(result):
    options, spans = span_options(result), result.span_array
    first = options.bounds[:-1]
    np.testing.assert_array_equal(options.start[first], spans.start)
    np.testing.assert_array_equal(options.end[first], spans.end)
    np.testing.assert_array_equal(options.kind[first], spans.type)
    np.testing.assert_allclose(np.bincount(options.unit, options.prob), 1, atol=1e-5)
    assert (options.prob >= -1e-9).all()


def test_every_set_holds_the_written_span_and_more_coverage_makes_larger_sets(crowd, result):
    narrow, wide = (conformal_sets(result, crowd.gold, c) for c in (0.6, 0.95))
    assert (narrow.sizes >= 1).all()
    assert (wide.sizes >= narrow.sizes).all()
    span = result.spans.slice(0, 1).to_pylist()[0]
    member = wide.of(0)[0]
    assert (member.start, member.end, member.type) == (span["start"], span["end"], span["type"])
    assert len(wide.of(0)) == wide.sizes[0]
    assert 0 <= wide.missed < 0.5
    assert "no written span" in wide.note


def test_sets_are_written(crowd, tmp_path):
    sure = calibrate(goldspan.aggregate(crowd, "ds"), crowd, coverage=0.9)
    assert sure.sets is not None
    assert sure.summary()["sets"]["coverage"] == 0.9
    json.dumps(sure.summary(), allow_nan=False)
    path = tmp_path / "gold.jsonl"
    sure.write(path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    written = [span["set"] for row in rows for span in row["gold"]]
    assert [len(members) for members in written] == sure.sets.sizes.tolist()
    assert {member["kind"] for members in written for member in members} >= {"span"}
    again = goldspan.read_crowd(path)
    np.testing.assert_array_equal(again.gold, sure.codes)


def labels(n=300, seed=2):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    lines = ["task,worker,label,gold"]
    for task, true in enumerate(truth):
        for worker in "abc":
            seen = true if rng.random() < 0.6 else rng.integers(0, 3)
            lines.append(f"{task:03},{worker},l{seen},l{true}")
    return goldspan.read_crowd(("\n".join(lines) + "\n").encode())


@pytest.mark.parametrize("method", ["ds", "mv-token", "wawa"])
def test_sets_of_single_labels(method, tmp_path):
    crowd = labels()
    known = np.where(np.arange(crowd.n_items) < 150, crowd.gold, -1).astype(np.int16)
    sure = calibrate(goldspan.aggregate(crowd, method), known, coverage=0.9)
    assert sure.sets is not None
    assert sure.sets.unit == "item"
    assert sure.sets.n_documents == 150
    assert np.isnan(sure.sets.missed)
    covered = sure.sets.holds(crowd.gold)[150:].mean()
    assert 0.83 < covered < 0.99
    assert 1 < sure.sets.mean_size < 3
    path = tmp_path / "gold.jsonl"
    sure.write(path)
    row = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert row["set"][0] == row["label"]
    assert len(row["set"]) == sure.sets.sizes[0]


def test_what_cannot_be_covered_is_refused(crowd):
    result = goldspan.aggregate(crowd, "ds")
    for coverage in (0, 1, -0.5, float("nan")):
        with pytest.raises(InputError, match="between 0 and 1"):
            calibrate(result, crowd, coverage=coverage)
    with pytest.raises(InputError, match=r"20 known documents .* takes 99"):
        calibrate(result, crowd, coverage=0.99)


def test_a_true_type_that_nobody_gave_is_wrong_and_is_no_gap(crowd):
    """Items with it are not passed over: the sets there must hold "other"."""
    result = goldspan.aggregate(crowd.with_gold(None), "ds")
    renamed = {
        name: ["B-X" if tag == "B-ORG" else "I-X" if tag == "I-ORG" else tag for tag in tags]
        for name, tags in crowd.tagged_by_id().items()
    }
    lines = []
    for name, tags in renamed.items():
        words = crowd.tokens_list[crowd.item_index(name)]
        lines += [f"# id = {name}", *map("\t".join, zip(words, tags, strict=True)), ""]
    gold = "\n".join(lines).encode()
    spans = result.span_array
    is_org = spans.type == result.tagset.types.index("ORG")
    sure = calibrate(result, gold, coverage=0.9)
    assert sure.span_confidence[is_org].mean() < 0.3
    assert sure.sets.n_documents == 20
    held = ["other" in {m.kind for m in sure.sets.of(n)} for n in np.flatnonzero(is_org)]
    assert np.mean(held) > 0.2
    labelled = labels()
    ds = goldspan.aggregate(labelled.with_gold(None), "ds")
    rows = [{"task": name, "label": "none of these"} for name in labelled.item_ids.to_pylist()]
    known = [{"task": n, "label": v[0]} for n, v in labelled.tagged_by_id().items()]
    with pytest.raises(InputError, match="that the result lacks"):
        calibrate(ds, known[:150] + rows[150:], coverage=0.9)
