"""Whether gold questions have leaked."""

from __future__ import annotations

import math

import numpy as np
import pytest

import goldspan
from goldspan.errors import InputError
from goldspan.workers import check_leaks, choose_gold_questions
from goldspan.workers.gold_questions import later_is_better, middle


def crowd_of_rows(*rows):
    """Make a crowd of rows item, worker, label, time; the truth is always yes."""
    head = "task,worker,label,gold,submitted\n"
    lines = [f"{item},{worker},{label},yes,{time}" for item, worker, label, time in rows]
    return goldspan.read_crowd((head + "\n".join(lines)).encode())


def course(item, labels, start=0):
    return [(item, f"w{i}", "yes" if right else "no", start + i) for i, right in enumerate(labels)]


def test_it_counts_who_saw_what_and_how_often():
    crowd = crowd_of_rows(
        ("p", "a", "yes", 1), ("p", "a", "no", 2), ("p", "b", "yes", 3), ("q", "a", "yes", 4),
        ("q", "c", "yes", 5), ("p", "a", "yes", 6),
    )  # fmt: skip
    found = check_leaks(crowd)
    assert found.item_ids == ("p", "q")
    assert found.shown.tolist() == [4, 2]
    assert found.seen_by.tolist() == [2, 2]
    assert found.repeats.tolist() == [2, 0]
    assert found.n_workers == 3
    assert found.seen_share.tolist() == [2 / 3, 2 / 3]


def test_a_question_that_late_workers_suddenly_know_is_retired():
    crowd = crowd_of_rows(*course("p", [0] * 8 + [1] * 8), *course("q", [0, 1] * 8))
    found = check_leaks(crowd)
    assert found.retire == ["p"]
    assert (found.early[0], found.late[0]) == (0, 1)
    assert found.p_value[0] == pytest.approx(1 / math.comb(16, 8), abs=1e-9)
    assert found.p_value[1] > 0.5
    assert "retire p: late workers are right 100 % of the time" in str(found)


@pytest.mark.parametrize("backwards", [False, True])
def test_answers_of_the_same_time_say_nothing_about_early_and_late(backwards):
    rows = [(item, worker, label, 7) for item, worker, label, _ in course("p", [0] * 8 + [1] * 8)]
    found = check_leaks(crowd_of_rows(*rows[:: -1 if backwards else 1]))
    assert np.isnan([found.early[0], found.late[0], found.p_value[0]]).all()
    assert found.retire == []
    assert "whether late workers are better is unknown" in str(found)


def test_a_question_without_different_times_is_counted_beside_others():
    rows = [("p", "a", "no", 1), ("p", "b", "yes", 1), *course("q", [0, 1])]
    found = check_leaks(crowd_of_rows(*rows))
    assert np.isnan(found.p_value).tolist() == [True, False]
    assert "unknown for 1 of the questions" in str(found)


def test_the_order_of_the_rows_does_not_matter_where_times_are_equal():
    rng = np.random.default_rng(1)
    rows = [("p", f"w{i}", "yes" if rng.random() < 0.5 else "no", i // 5) for i in range(18)]
    every = []
    for _ in range(6):
        found = check_leaks(crowd_of_rows(*(rows[i] for i in rng.permutation(18))))
        every.append((found.early[0], found.late[0], found.p_value[0]))
    assert len(set(every)) == 1
    assert every[0][0] == np.mean([label == "yes" for _, _, label, time in rows if time < 2])


def test_early_and_late_are_parted_where_the_time_changes_nearest_to_the_middle():
    for times, at in (
        ([1, 2, 3, 4], 2),
        ([1, 1, 1, 2], 3),
        ([1, 2, 2, 2, 2, 3], 1),
        ([4], 0),
        ([], 0),
    ):
        assert middle(np.array(times)) == at


def test_the_first_answer_is_that_of_the_earliest_time_and_not_of_the_first_row():
    rows = [*course("p", [0] * 6 + [1] * 6), ("p", "w0", "yes", 100)]
    both = [check_leaks(crowd_of_rows(*order)) for order in (rows, rows[::-1])]
    assert both[0].p_value[0] == both[1].p_value[0] == pytest.approx(1 / math.comb(12, 6))


def test_only_the_first_answer_of_a_worker_counts():
    rows = course("p", [0] * 8)
    again = [("p", worker, "yes", 100 + time) for _, worker, _, time in rows]
    found = check_leaks(crowd_of_rows(*rows, *again))
    assert found.repeats.tolist() == [8]
    assert found.late.tolist() == [0]


def test_many_questions_raise_fewer_false_alarms():
    rng = np.random.default_rng(0)
    fair = [course(f"q{i}", rng.random(40) < 0.6) for i in range(60)]
    found = check_leaks(crowd_of_rows(*(row for rows in fair for row in rows)))
    assert (found.p_value < 0.05).sum() > 0
    assert found.retire == []
    assert "none needs to be retired" in str(found)


def test_a_question_that_was_shown_too_often_is_retired():
    crowd = crowd_of_rows(*course("p", [1] * 5), *course("q", [1] * 4))
    found = check_leaks(crowd, most_shown=5)
    assert found.retire == ["p"]
    assert found.reasons() == ["shown 5 times, the cap is 5", ""]


def test_without_times_the_trend_is_unknown():
    crowd = goldspan.read_crowd(b"task,worker,label,gold\n1,a,yes,yes\n1,b,no,yes\n")
    found = check_leaks(crowd)
    assert np.isnan(found.p_value).all()
    assert "whether late workers are better is unknown" in str(found)
    assert found.to_dict()["questions"][0]["p_value"] is None


def test_questions_may_be_named_or_chosen():
    crowd = crowd_of_rows(*course("p", [1] * 4), *course("q", [1] * 4))
    assert check_leaks(crowd, ["q"]).item_ids == ("q",)
    chosen = choose_gold_questions(crowd, 1)
    assert check_leaks(crowd, chosen).item_ids == tuple(chosen.item_ids)


@pytest.mark.parametrize(
    ("early", "n", "late", "m"),
    [(0, 3, 0, 3), (1, 4, 3, 4), (2, 7, 5, 7), (4, 4, 4, 4), (1, 5, 3, 4), (2, 3, 2, 6)],
)
def test_the_p_value_is_that_of_all_tables(early, n, late, m):
    total = early + late
    ways = [math.comb(m, k) * math.comb(n, total - k) for k in range(late, min(m, total) + 1)]
    assert later_is_better(early, n, late, m) == pytest.approx(
        sum(ways) / math.comb(n + m, total), abs=1e-9
    )


def test_what_cannot_be_checked_is_refused():
    crowd = goldspan.read_crowd(b"task,worker,label,gold\n1,a,yes,yes\n2,b,no,\n")
    with pytest.raises(InputError, match=r"1 gold questions have tokens without gold .first: 2"):
        check_leaks(crowd, ["1", "2"])
    with pytest.raises(InputError, match="there is no item '9'"):
        check_leaks(crowd, ["9"])
    with pytest.raises(InputError, match="no gold question"):
        check_leaks(crowd, [])
    with pytest.raises(InputError, match="most_shown must be at least 1"):
        check_leaks(crowd, most_shown=0)
