"""The worker table: order, columns, who is far below."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.report.workers import LEAST_LABELS, MAX_WORKERS, far_below, spammers, worker_table


def test_the_worst_by_gold_come_first(consensus, agreement):
    table = worker_table(consensus, agreement)
    column = table.columns.index("F1 against gold")
    values = [row.rates[column] for row in table.rows]
    assert table.ranked_by == "F1 against gold"
    assert values == sorted(values)
    assert table.far_below == ("gus",)


def test_without_gold_the_result_decides(crowd):
    result = goldspan.aggregate(crowd.with_gold(None), "mv-token")
    table = worker_table(result, goldspan.agreement(result.crowd))
    assert table.columns == ("F1 against the result", "F1 against the others")
    assert table.ranked_by == "F1 against the result"


def test_without_an_agreement_the_result_alone_is_shown(consensus):
    table = worker_table(consensus, None)
    assert table.columns == ("F1 against the result",)
    rows = consensus.workers.to_pylist()
    expected = {row["worker"]: row["span_agreement"] for row in rows}
    assert {row.worker: row.rates[0] for row in table.rows} == expected


def test_columns_are_joined_by_worker_whatever_their_order(consensus, agreement):
    order = pa.array([6, 5, 4, 3, 2, 1, 0])
    turned = replace(consensus, make_workers=lambda _: consensus.workers.take(order))
    assert worker_table(turned, agreement) == worker_table(consensus, agreement)


def test_a_number_that_only_the_method_knows_is_shown_and_is_no_share(consensus, agreement):
    workers = consensus.workers.append_column("log_prob", pa.array(np.arange(7.0)))
    table = worker_table(replace(consensus, make_workers=lambda _: workers), agreement)
    assert (table.columns[-1], table.is_rate[-1]) == ("Log prob", False)
    assert all(table.is_rate[:-1])


def test_a_worker_without_answers_comes_last_and_is_told(labels):
    table = worker_table(goldspan.aggregate(labels, "mv-token"), goldspan.agreement(labels))
    assert table.rows[-1].worker == "dan"
    assert table.rows[-1].remark == "gave no answer"
    assert set(table.rows[-1].rates) == {None}
    assert table.rows[0].remark == "far below the others, but only 2 answers"


def test_someone_far_below_on_few_answers_is_told_so():
    builder = CrowdBuilder()
    for n in range(10):
        item = builder.add_item(str(n), [str(n)])
        for worker in "abc":
            builder.add_answer(item, worker, ["x"])
        if n < 2:
            builder.add_answer(item, "d", ["y"])
    crowd = builder.build(single=True)
    table = worker_table(goldspan.aggregate(crowd, "mv-token"), goldspan.agreement(crowd))
    assert table.rows[0].worker == "d"
    assert table.rows[0].remark == "far below the others, but only 2 answers"


def test_of_many_workers_the_worst_are_listed():
    builder = CrowdBuilder()
    for n in range(10):
        item = builder.add_item(str(n), [str(n)])
        for worker in range(300):
            builder.add_answer(item, f"w{worker}", ["x" if worker >= 20 or n else "y"])
    crowd = builder.build(single=True)
    table = worker_table(goldspan.aggregate(crowd, "mv-token"), None)
    assert (len(table.rows), table.n_workers) == (MAX_WORKERS, 300)
    assert {row.worker for row in table.rows[:20]} == {f"w{n}" for n in range(20)}


def test_among_equals_small_gaps_are_no_finding():
    assert not far_below(np.array([0.98, 0.98, 0.98, 0.98, 0.95])).any()


def test_in_a_wide_crowd_two_thirds_of_the_median_are_the_limit():
    values = np.array([0.2, 0.31, 0.5, 0.6, 0.6, 0.8, 0.9])
    assert far_below(values).tolist() == [True, True] + [False] * 5
    assert far_below(np.array([0.418, 0.83, 0.926])).tolist() == [True, False, False]


@pytest.mark.parametrize("values", [[], [0.1], [0.1, 0.9], [np.nan, 0.1, 0.9]])
def test_two_workers_are_too_few_to_say_who_is_far_below(values):
    assert not far_below(np.array(values, float)).any()


@given(st.lists(st.floats(0, 1) | st.just(float("nan")), max_size=30))
def test_nobody_at_the_median_or_above_is_far_below(values):
    flagged = far_below(np.array(values, float))
    known = [value for value in values if value == value]  # noqa: PLR0124
    assert all(value < np.median(known) for value, bad in zip(values, flagged, strict=True) if bad)


def _asked(tasks):
    """A crowd of tokens: {worker: [tag per item]} with None where the worker was not asked."""
    builder = CrowdBuilder()
    for n in range(max(map(len, tasks.values()))):
        item = builder.add_item(f"q{n}", [f"q{n}"])
        for worker, labels in tasks.items():
            if n < len(labels) and labels[n]:
                builder.add_answer(item, worker, [labels[n]])
    return goldspan.aggregate(builder.build(single=True), "ds")


def _marked(result):
    ids = result.crowd.worker_ids.to_pylist()
    return [worker for worker, bad in zip(ids, spammers(result), strict=True) if bad]


TRUTH = list("xy" * 40)


def test_who_always_says_the_same_tells_nothing():
    result = _asked({"a": TRUTH, "b": TRUTH, "c": TRUTH, "d": ["x"] * 80})
    assert _marked(result) == ["d"]
    row = next(row for row in worker_table(result, None).rows if row.worker == "d")
    assert row.is_spammer
    assert "tells next to nothing" in row.remark


def test_who_was_only_asked_what_is_always_the_same_is_no_spammer():
    only = [label if label == "x" else None for label in TRUTH]
    assert _marked(_asked({"a": TRUTH, "b": TRUTH, "c": TRUTH, "d": only})) == []


def test_few_labels_make_no_spammer():
    assert (
        _marked(_asked({"a": TRUTH, "b": TRUTH, "c": TRUTH, "d": ["x"] * (LEAST_LABELS - 1)})) == []
    )


def test_what_chance_seems_to_tell_is_taken_off():
    rng = np.random.default_rng(5)
    truth = list("abcdefgh" * 12)
    guessed = list(rng.choice(list("abcdefgh"), 96))
    result = _asked({"a": truth, "b": truth, "c": truth, "d": guessed})
    bits = dict(zip("abcd", result.workers.column("information").to_pylist(), strict=True))
    assert bits["d"] < 0.1 * bits["a"]
    assert _marked(result) == ["d"]


def test_good_workers_with_few_labels_of_many_kinds_are_no_spammers():
    kinds = [f"{n % 40:02}" for n in range(400)]
    tasks = {f"w{k}": [x if n % 10 == k else None for n, x in enumerate(kinds)] for k in range(10)}
    assert _marked(_asked({**tasks, "a": kinds, "b": kinds})) == []


def test_votes_know_no_spammers(consensus):
    assert not spammers(consensus).any()
    assert worker_table(consensus, None).bounded is None


def test_a_model_shows_the_expected_accuracy_with_its_interval(model):
    table = worker_table(model, None)
    at = table.columns.index("Labels right, expected")
    assert table.bounded == at
    assert table.is_rate[at]
    for row in table.rows:
        assert row.bounds[0] < row.rates[at] < row.bounds[1]


def test_bits_per_label_are_no_share(model):
    table = worker_table(model, None)
    at = table.columns.index("Bits per label")
    assert not table.is_rate[at]
    assert not {"Low", "High"} & set(table.columns)
    assert table.spammers == ("gus",)


def test_members_of_families_are_told_beside_their_numbers():
    rows = [{"item": n, "worker": w, "label": "xy"[n % 2]} for n in range(9) for w in "abc"]
    kin = {"a": "twins", "b": "twins"}
    found = goldspan.aggregate(goldspan.read_crowd(rows), "ds", families=kin)
    table = worker_table(found, None)
    remarks = {row.worker: row.remark for row in table.rows}
    assert "twins: 2 workers who err together and count as 1." in remarks["a"]
    assert "twins" not in remarks["c"]
    assert "Effective" not in table.columns
