"""What a stopping rule would have saved, on answers that are there already."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import goldspan
from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import replay
from goldspan.workers.redundancy import AT_MAXIMUM, BY_RULE, NOBODY_LEFT, RevealedAnswers
from goldspan.workers.stopping import get_rule, learn_habits, pair_gain, posterior_of


@pytest.fixture(scope="module")
def crowd():
    whole = simulate_crowd(draw_truth(80, 3, seed=4), ["flip(0.2) x5", "flip(0.5) x4"], seed=4)
    rng = np.random.default_rng(0)
    return replace(whole, answers=whole.answers.take(rng.random(len(whole.answers)) < 0.8))


def queues(crowd):
    """Return the labels of every item in the order given."""
    answers = crowd.latest
    return [answers.codes[crowd.by_item[n]].tolist() for n in range(crowd.n_items)]


def votes_needed(codes, ahead, least, most):
    """Count answers until the first label is so far ahead, one by one."""
    for n in range(1, min(len(codes), most) + 1):
        counts = sorted(np.bincount(codes[:n], minlength=3).tolist())
        if n >= least and counts[-1] - counts[-2] >= ahead:
            return n
    return min(len(codes), most)


@pytest.mark.parametrize(("ahead", "least", "most"), [(2, 3, 7), (3, 1, 20), (1, 2, 5)])
def test_votes_stop_where_counting_one_by_one_stops(crowd, ahead, least, most):
    found = replay(
        crowd, method="mv-token", rule=f"clear_majority({ahead}, {least})", max_answers=most,
        order="given", with_fixed=False,
    )  # fmt: skip
    expected = [votes_needed(codes, ahead, least, most) for codes in queues(crowd)]
    assert found.answers.tolist() == expected
    assert found.n_answers == sum(expected)


def test_a_fixed_rule_is_fixed_redundancy(crowd):
    found = replay(crowd, rule="fixed(3)", max_answers=5)
    assert found.n_answers == found.fixed[2].n_answers
    assert found.score == found.fixed[2].score
    assert found.share_of(3) == 1.0
    few = np.minimum(np.diff(crowd.by_item.bounds), 3)
    assert found.answers.tolist() == few.tolist()


def test_what_is_confident_at_the_end_has_the_confidence(crowd):
    found = replay(crowd, rule="confident(.9)", max_answers=6, min_answers=2)
    n = np.diff(crowd.by_item.bounds)
    assert ((found.status == BY_RULE) == (found.result.confidence >= 0.9)).all()
    assert (found.answers[found.status == AT_MAXIMUM] == 6).all()
    assert (found.answers[found.status == NOBODY_LEFT] == n[found.status == NOBODY_LEFT]).all()
    assert found.answers.min() >= 2
    right = (found.result.codes == crowd.gold)[found.status == BY_RULE]
    assert found.finished_right == right.mean()


def test_rounds_only_add_answers_and_end_with_no_item_open(crowd):
    found = replay(crowd, max_answers=5, with_fixed=False)
    used = [stage.n_answers for stage in found.rounds]
    opened = [stage.n_open for stage in found.rounds]
    assert used[0] == crowd.n_items
    assert np.diff(used).tolist() == opened[:-1]
    assert opened[-1] == 0
    assert found.per_item == found.n_answers / crowd.n_items == found.answers.mean()


def test_the_answers_of_an_item_are_the_first_of_its_order(crowd):
    found = replay(crowd, max_answers=5, order="given", with_fixed=False)
    for n, codes in enumerate(queues(crowd)):
        assert queues(found.result.crowd)[n] == codes[: found.answers[n]]


def test_the_seed_decides_the_order(crowd):
    one, two, other = (replay(crowd, random_state=s, max_answers=3) for s in (1, 1, 2))
    assert one.rounds == two.rounds
    assert one.fixed == two.fixed != other.fixed


def test_neither_the_order_of_the_rows_nor_other_answers_change_who_comes_first(crowd):
    def first(part):
        found = replay(part, rule="fixed(2)", max_answers=2, random_state=5, with_fixed=False)
        answers = found.result.crowd.latest
        items = part.item_ids.take(pa.array(answers.item)).to_pylist()
        workers = part.worker_ids.take(pa.array(answers.worker)).to_pylist()
        return set(zip(items, workers, strict=True))

    mixed = np.random.default_rng(2).permutation(len(crowd.answers))
    whole = first(crowd)
    assert first(replace(crowd, answers=crowd.answers.take(mixed))) == whole
    assert first(crowd.select_items(np.arange(crowd.n_items)[::-1])) == whole
    half = crowd.select_items(np.arange(40))
    known = set(half.item_ids.to_pylist())
    assert first(half) == {pair for pair in whole if pair[0] in known}


def test_every_worker_comes_first_about_as_often():
    full = simulate_crowd(draw_truth(900, 2, seed=1), ["flip(0.2) x9"], seed=1)
    revealed = RevealedAnswers.of(full, "random", 3)
    counts = np.bincount(revealed.answers.worker[revealed.rank == 0], minlength=9)
    assert np.abs(counts - 100).max() < 40


def test_times_decide_the_order():
    rows = ["q1,a,x,3", "q1,b,y,1", "q1,c,z,2", "q2,a,x,1", "q2,b,y,2"]
    lines = [row[:-1] + f"2026-01-01T00:00:0{row[-1]}Z" for row in rows]
    timed = goldspan.read_crowd("\n".join(["task,worker,label,submitted", *lines]).encode())
    found = replay(timed, rule="fixed(1)", max_answers=2, order="time", method="mv-token")
    assert found.result.labels == ["y", "x"]
    assert [stage.n_answers for stage in found.fixed] == [2, 4]
    bare = goldspan.read_crowd(b"task,worker,label\nq1,a,x\n")
    with pytest.raises(InputError, match="not all answers have a time"):
        replay(bare, order="time")


def test_the_answer_of_largest_gain_can_come_next(crowd):
    seen = []

    def method(part):
        seen.append(goldspan.aggregate(part, "ds"))
        return seen[-1]

    replay(crowd, method=method, choose="gain", max_answers=4, min_answers=3, with_fixed=False)
    before, after = seen[0], seen[1]
    had = set(zip(before.crowd.latest.item, before.crowd.latest.worker, strict=True))
    every = list(zip(crowd.latest.item.tolist(), crowd.latest.worker.tolist(), strict=True))
    now = set(
        zip(after.crowd.latest.item.tolist(), after.crowd.latest.worker.tolist(), strict=True)
    )
    habits = learn_habits(before)
    pairs = np.array(every)
    gain = pair_gain(
        posterior_of(before, habits), crowd.offsets, habits.tables, pairs[:, 0], pairs[:, 1]
    )
    new = now - had
    assert len(new) > 20
    for item, worker in new:
        rest = [g for g, (i, k) in zip(gain, every, strict=True) if i == item and (i, k) not in had]
        assert gain[every.index((item, worker))] == max(rest)


def test_a_stable_average_looks_at_the_order_of_asking():
    rows = "".join(
        f"q{i},{w},{v}\n" for i in range(6) for w, v in zip("abcde", "17444", strict=True)
    )
    numbers = goldspan.read_crowd(("task,worker,label\n" + rows).encode())
    found = replay(
        numbers, method="mv-token", rule="stable_average(0.1)", max_answers=5, order="given"
    )
    assert found.answers.tolist() == [4] * 6  # the mean of 1 and 7 is the third and the fourth


def test_gold_only_scores(crowd):
    bare = crowd.with_gold(None)
    plain, scored = replay(bare, max_answers=3), replay(crowd, max_answers=3)
    assert np.isnan([plain.score, plain.finished_right, plain.fixed[0].score]).all()
    assert plain.answers.tolist() == scored.answers.tolist()
    known = "\n".join(["task,label", *(f"q{i + 1},{c}" for i, c in enumerate(crowd.gold))])
    assert replay(bare, max_answers=3, gold=known.encode()).score == scored.score


def test_items_without_answers_are_left_alone(crowd):
    part = replace(crowd, answers=crowd.answers.take(crowd.answers.item != 3))
    found = replay(part, max_answers=3)
    assert found.status[3] == NOBODY_LEFT
    assert found.answers[3] == 0


def test_repeated_answers_count_once():
    table = b"task,worker,label\nq1,a,x\nq1,a,y\nq1,b,y\nq2,a,x\nq2,b,x\n"
    found = replay(goldspan.read_crowd(table), rule="fixed(2)", max_answers=3, method="mv-token")
    assert found.answers.tolist() == [2, 2]
    assert found.result.labels == ["y", "x"]


def test_tagged_tokens_are_scored_by_spans(root):
    crowd = goldspan.read_crowd(root / "examples" / "crowd.tsv")
    found = replay(crowd, method="bsc-seq", rule="confident(.9)", max_answers=5, min_answers=2)
    assert found.score == goldspan.score(found.result.crowd, found.result).f1
    assert found.n_answers < found.fixed[4].n_answers


def test_confidence_saves_a_third_of_the_answers_at_no_lower_accuracy():
    shares, gains, right = [], [], []
    for seed in range(10):
        accuracy = np.random.default_rng(seed).beta(4, 2, 31)
        team = [f"flip({1 - w:.6f})" for w in accuracy]
        crowd = simulate_crowd(draw_truth(400, 4, seed=seed), team, seed=seed)
        options = {"method": "bsc-acc", "random_state": seed, "with_fixed": False}
        fixed = replay(crowd, rule="fixed(7)", min_answers=7, **options)
        found = replay(crowd, rule="confident(.95)", max_answers=15, min_answers=2, **options)
        shares.append(found.n_answers / fixed.n_answers)
        gains.append(found.score - fixed.score)
        right.append(found.finished_right)
    assert np.mean(shares) <= 0.65
    assert np.mean(gains) >= 0.0
    assert np.mean(right) >= 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_answers": 0}, "max_answers"),
        ({"min_answers": 0}, "min_answers"),
        ({"method": "mv-token"}, "shares of votes"),
    ],
)
def test_what_makes_no_sense_is_refused(crowd, options, message):
    with pytest.raises(InputError, match=message):
        replay(crowd, **options)


@pytest.mark.parametrize("options", [{"order": "new"}, {"choose": "best"}, {"rule": "sure"}])
def test_unknown_names_are_refused(crowd, options):
    with pytest.raises(UnknownNameError, match="choose from"):
        replay(crowd, **options)


def test_a_crowd_without_answers_is_refused(crowd):
    none = replace(crowd, answers=crowd.answers.take(np.zeros(len(crowd.answers), np.bool_)))
    with pytest.raises(InputError, match="no answer"):
        replay(none)


def test_a_share_of_what_was_not_played_is_refused(crowd):
    found = replay(crowd, max_answers=2)
    with pytest.raises(InputError, match="1 … 2, not 3"):
        found.share_of(3)
    assert found.rule == get_rule("confident(.95)")
