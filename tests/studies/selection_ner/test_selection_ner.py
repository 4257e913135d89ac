"""Study selection-ner: its loop against one by hand, its journal, its tables, tiny data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from goldspan._arrays import keys_of
from goldspan.protocols import Serial
from goldspan.selection import Schedule, select_items
from goldspan.tagger import CRF
from studies import run_study
from studies.selection_ner import experiment, lines, tables
from studies.selection_ner.bench import STEPS, Bench
from studies.selection_ner.experiment import carry_out
from studies.selection_ner.lines import BY_COST, BY_ITEMS, RANDOM, RULES, SCHEDULE, Extent, Line
from studies.selection_ner.trial import CROSS, Stop, Wrong, run_line

TINY = Extent(budgets=(40, 120), rounds=(40, 80, 120), n_early=1, items=(4,), repeats=1)


@pytest.fixture(scope="module")
def bench(tiny):
    return Bench.read(tiny)


@pytest.fixture(scope="module")
def runs(bench):
    return carry_out(bench, TINY, Serial())


def test_no_line_spends_more_than_it_may(runs):
    for line in TINY.lines:
        stops = runs[0, line.label]
        assert [stop.limit for stop in stops] == list(line.limits)
        spent = [getattr(stop, line.unit) for stop in stops]
        assert all(0 < a <= b for a, b in zip(spent, line.limits, strict=True))
        assert spent == sorted(spent)


def test_what_was_bought_is_counted_as_by_hand(bench):
    (stop,) = run_line(bench, Line("x", "random", (50,)), seed=3)
    chosen = select_items(bench.pool, "random", budget="50tokens", random_state=3)
    words = [word for item in chosen.item for word in bench.train.tokens_list[item]]
    every = bench.train.tokens.flatten().to_pylist()
    tags = [tag for item in chosen.item for tag in bench.tags[item]]
    assert (stop.items, stop.tokens) == (len(chosen), len(words))
    assert stop.names == sum(tag.startswith("B-") for tag in tags)
    assert stop.words == len(set(words))
    assert stop.unique == sum(every.count(word) == 1 for word in set(words))


def test_a_tagger_is_the_one_that_plain_training_gives(bench):
    items, test = np.arange(0, 48, 5), bench.tests["testb"]
    words = [bench.train.tokens_list[n] for n in items]
    plain = CRF(max_iter=STEPS).fit(words, [bench.tags[n] for n in items])
    ours = bench.learn(items)
    marks, tags = bench.tested["testb"]
    assert ours.score(marks, tags) == plain.score(test.tokens_list, tags)
    of_test = (ours.tag(marks).probs, plain.tag(test.tokens_list).probs)
    of_pool = (ours.tag(bench.pool.text).probs, plain.tag(bench.train.tokens_list).probs)
    for found, expected in (of_test, of_pool):
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_rule_asks_the_tagger_that_was_trained_on_what_it_bought(bench):
    rule = Schedule(text="random, then mnlp")
    given = {"features": bench.features, "random_state": 1}
    first = rule.select(bench.pool, budget="40tokens", **given).item
    model = bench.learn(first)
    left = 80 - int(np.diff(bench.train.offsets)[first].sum())
    second = rule.select(
        bench.pool, budget=f"{left}tokens", labelled=first, model=model, **given
    ).item
    items = np.concatenate([first, second])
    tagger = bench.learn(items, model)
    stop = run_line(bench, Line("x", "random, then mnlp", (40, 80)), seed=1)[-1]
    assert stop.items == len(items)
    assert stop.f1 == {name: tagger.score(*tested) for name, tested in bench.tested.items()}


def test_wrong_are_the_sentences_that_a_tagger_of_the_other_folds_tags_otherwise(bench):
    bought, wrong = np.arange(0, 48, 2), Wrong(bench)
    wrong.find(bought)
    fold = keys_of(bench.pool.item_ids) % np.uint64(CROSS)
    expected = []
    for number in range(CROSS):
        rest, mine = (bought[(fold[bought] == number) == own] for own in (False, True))
        model = bench.learn(rest)
        words = [bench.train.tokens_list[n] for n in mine.tolist()]
        expected += [
            bench.train.item_ids[n].as_py()
            for n, tags in zip(mine.tolist(), model.predict(words), strict=True)
            if tags != bench.tags[n]
        ]
    assert sorted(wrong.items) == sorted(expected)
    wrong.find(bought[:0])
    assert wrong.items == []


def test_a_line_that_is_told_what_is_wrong_picks_by_it(bench, monkeypatch):
    given = []
    select = Schedule.select

    def spy(rule, *args, **more):
        given.append(more["errors"])
        return select(rule, *args, **more)

    monkeypatch.setattr(Schedule, "select", spy)
    plain, told = (
        run_line(bench, Line("x", "random, then mnlp", (40, 80), errors=e), seed=1)
        for e in (False, True)
    )
    assert plain[0] == told[0]
    assert given[:3] == [None, None, []]
    assert given[3]


def test_told_and_untold_rules_are_compared_at_the_same_tokens():
    extent = replace(EXTENT, n_errors=2)
    made = MADE_UP | {label: [(0, 61, 0), (0, 61, 0), (0, 64, 0)] for label in lines.BY_ERRORS}
    made |= {"coverage": [(0, 61, 0), (0, 60, 0), (0, 60, 0)]}
    rows = tables.errors_table(made_up(**made), extent).rows
    assert [row[:3] for row in rows] == [
        (label, other, 22_000) for label, (_, _, other) in lines.BY_ERRORS.items()
    ]
    assert rows[0][3:5] == (pytest.approx(62), pytest.approx(-10))
    assert rows[-1][4] == pytest.approx(5 / 3)
    assert rows[-1][-1] == "2 of 3"


def test_a_rule_that_gains_nothing_more_keeps_what_it_has(bench):
    line = Line("x", "coverage-paper", (120, 200))
    before, after = run_line(bench, line, seed=0)
    assert before.tokens < 80
    assert replace(after, limit=120) == before


def test_a_study_that_was_cut_off_goes_on_and_ends_alike(bench, runs, tmp_path, monkeypatch):
    state, seen = tmp_path / "runs.jsonl", []

    def told(done, total):
        seen.append((done, total))
        if done == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(bench, TINY, Serial(), state, told)
    kept = state.read_text().splitlines()
    state.write_text("\n".join([*kept, kept[-1][:50]]))  # a kill cuts the last line off
    found = carry_out(bench, TINY, Serial(), state, lambda *done: seen.append(done))
    assert found == runs
    n_stops = sum(map(len, found.values()))
    assert seen[-1] == (n_stops, n_stops)
    assert len(state.read_text().splitlines()) == len(found) + 1
    monkeypatch.setattr(experiment, "run_line", None)  # nothing is left to do
    assert carry_out(bench, TINY, Serial(), state) == found


def test_runs_on_other_data_or_budgets_are_not_taken_over(bench, tmp_path):
    state = tmp_path / "runs.jsonl"
    extent = replace(TINY, budgets=(40,), rounds=(40,))
    carry_out(bench, extent, Serial(), state)
    n_lines = len(state.read_text().splitlines())
    carry_out(bench, replace(extent, items=(5,)), Serial(), state)
    assert len(state.read_text().splitlines()) == n_lines + len(BY_ITEMS)
    fewer = replace(bench, tests={"testa": bench.tests["testa"]})
    assert fewer.digest != bench.digest


def made_up(**f1):
    """Make runs with given F1 in per cent: by line a row per seed, a number per budget of TINY."""
    empty = Stop(0, 10, 40, 4, 9, 1, {})
    return {
        (seed, label): tuple(
            replace(empty, limit=limit, f1={"testb": value / 100})
            for limit, value in zip((40, 22_000, 120_000), row, strict=True)
        )
        for label, rows in f1.items()
        for seed, row in enumerate(rows)
    }


EXTENT = Extent(budgets=(40, 22_000, 120_000), rounds=(40, 22_000, 120_000), repeats=3)
MADE_UP = {
    RANDOM: [(50, 60, 70), (52, 60, 71), (54, 60, 72)],
    SCHEDULE: [(53, 71, 80), (53, 73, 80), (58, 72, 80)],
}


def test_lines_are_compared_seed_by_seed():
    first, needed = tables.target_table(made_up(**MADE_UP), EXTENT).rows
    # Differences 3, 1, 4: mean 8/3, variance 7/3; of two degrees p = 1 - t / sqrt(t^2 + 2).
    assert first[:5] == ("testb", 40, pytest.approx(164 / 3), 40, pytest.approx(52))
    t = (8 / 3) / (7 / 9) ** 0.5
    assert first[5:8] == pytest.approx((8 / 3, (7 / 9) ** 0.5, 1 - t / (t**2 + 2) ** 0.5))
    assert first[8] == "3 of 3"
    # 71, 73, 72 against 70, 71, 72: 1, 2, 0.
    assert needed[1:4:2] == (22_000, 120_000)
    assert needed[5:7] == (pytest.approx(1), pytest.approx(1 / 3**0.5))
    assert needed[8] == "2 of 3"


def test_a_goal_is_reached_where_the_curve_first_is_there(monkeypatch):
    monkeypatch.setattr(tables, "RULES", {RANDOM: RANDOM, SCHEDULE: RULES[SCHEDULE]})
    rows = tables.reach_table(made_up(**MADE_UP), EXTENT).rows
    assert rows == (("testb", RANDOM, 120_000, 120_000), ("testb", SCHEDULE, 22_000, 22_000))
    low = MADE_UP | {SCHEDULE: [(53, 69, 69.5), (53, 73, 80), (58, 72, 80)]}
    assert tables.reach_table(made_up(**low), EXTENT).rows[1][2:] == (22_000, None)


def test_the_study_runs_on_tiny_data(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "FULL", replace(TINY, repeats=2))
    seen = []
    state = tmp_path / "runs.jsonl"
    found = run_study(
        "selection-ner", tiny, threads=1, state=state, progress=lambda *done: seen.append(done)
    )
    assert seen[-1][0] == seen[-1][1]
    asked, reach, f1, error, *_ = found.tables
    assert [row[0] for row in asked.rows] == ["testb", "testa"]
    assert [row[1] for row in reach.rows] == 2 * list(RULES)
    assert [row[0] for row in f1.rows] == [row[0] for row in error.rows] == list(RULES)
    assert len(found.tables[-1].rows) == len(BY_ITEMS)
    assert len(found.tables[-2].rows) == len(BY_COST)
    picture = pytest.importorskip("goldspan.report")
    picture.save_figure(found.picture(), tmp_path / "study.svg")
    kept = state.read_text()
    so_far = run_study("selection-ner", tiny, threads=1, state=state, repeats=3, so_far=True)
    told = [study.tables for study in (found, so_far)]
    assert [one for one in told[0] if "Seconds" not in one.caption] == [
        one for one in told[1] if "Seconds" not in one.caption
    ]
    assert any("the first 2 of 3 repeats" in note for note in so_far.notes)
    assert state.read_text() == kept


@pytest.mark.realdata
def test_with_2500_tokens_coverage_is_ahead_of_random_and_the_papers_rule_behind(data):
    bench = Bench.read(data, test_items=600)
    f1 = {}
    for rule in (RANDOM, "coverage-paper", SCHEDULE):
        (stop,) = run_line(bench, Line(rule, RULES[rule], (2500,)), seed=0)
        f1[rule] = stop.f1["testa"]
    assert f1["coverage-paper"] + 0.05 < f1[RANDOM] < f1[SCHEDULE]
