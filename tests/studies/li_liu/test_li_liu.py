"""Study li-liu: its parts against plain counting, the whole on tiny data, numbers on real ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from goldspan.protocols import Serial
from goldspan.runners import Threads
from goldspan.workers import select_workers
from goldspan.workers.teams import worker_scores
from studies import run_study
from studies.li_liu import claims, ner, study, teams
from studies.li_liu.panels import by_budget, carry_out
from studies.li_liu.pools import draw_pool, read_pool
from studies.li_liu.trial import (
    LEARNED,
    POSTERIOR,
    RANDOM,
    SELECTED,
    TOP,
    VOTES,
    accuracy,
    begin,
    vote,
)


def nothing() -> None:
    """Hear of a trial."""


def test_drawn_workers_are_as_good_as_they_were_drawn():
    pool = draw_pool(4, n_workers=6, n_items=4000, beta=(50, 20), seed=3)
    right, total = pool.share(np.arange(4000))
    drawn = np.random.default_rng(3).beta(50, 20, 6)
    assert (total == 4000).all()
    assert np.abs(right / total - drawn).max() < 0.03


def test_gold_questions_are_not_scored():
    pool = draw_pool(2, n_workers=5, n_items=60, n_gold=15, seed=1)
    tested = begin(pool, 8)
    assert tested.rest.crowd.n_items == 45
    assert (tested.reliability.total == 15).all()
    whole, _ = pool.share(np.arange(60))
    rest, _ = tested.rest.share(np.arange(45))
    assert (whole - rest == tested.reliability.right).all()


def test_a_weighted_vote_is_the_sum_of_weights():
    pool = draw_pool(3, n_workers=7, n_items=80, seed=5)
    tested = begin(pool, 2)
    team = np.array([4, 1, 6])
    labels = vote("wmv-linear")(tested, team)
    answers, weights = tested.rest.crowd.latest, 3 * tested.reliability.share - 1
    sums = np.zeros((70, 3))
    for item, worker, code in zip(answers.item, answers.worker, answers.codes, strict=True):
        if worker in team:
            sums[item, code] += weights[worker]
    best = np.isclose(sums, sums.max(axis=1, keepdims=True))
    assert best[np.arange(70), labels].all()


@pytest.mark.parametrize("way", [TOP, RANDOM, SELECTED, POSTERIOR])
def test_teams_keep_the_budget_and_name_nobody_twice(way):
    tested = begin(draw_pool(2, n_items=100, seed=4), 9)
    team = way.choose(tested, 6)
    assert 0 < len(team) <= 6
    assert len(set(team.tolist())) == len(team)
    assert (team == way.choose(tested, 6)).all()


@pytest.mark.parametrize("way", [TOP, RANDOM, SELECTED, POSTERIOR])
def test_teams_of_an_items_own_are_the_best_of_who_answered_it(way):
    pool = draw_pool(2, n_workers=9, n_items=60, n_gold=10, seed=6)
    answers = pool.crowd.latest
    kept = np.random.default_rng(0).random(len(answers)) < 0.6
    tested = begin(replace(pool, crowd=replace(pool.crowd, answers=answers.take(kept))), 3)
    found = way.choose_own(tested, 4).rest.crowd
    before, after = tested.rest.crowd.latest, found.latest
    share = tested.reliability
    rank = np.empty(9)
    rank[tested.order_by_share()] = np.arange(9)
    for item in range(found.n_items):
        there = before.worker[before.item == item]
        chosen = set(after.worker[after.item == item].tolist())
        assert chosen <= set(there.tolist())
        assert len(chosen) <= 4
        if way is TOP:
            assert chosen == set(sorted(there.tolist(), key=lambda w: rank[w])[:4])
        if way is SELECTED and len(there):
            team = select_workers(
                share.take(there.astype(np.int64)), budget=4, score="unbiased", below="negative"
            )
            scores = worker_scores(share, "unbiased")
            best = sum(team.scores) / max(1, len(team)) ** 0.5
            assert sum(scores[list(chosen)]) / max(1, len(chosen)) ** 0.5 == pytest.approx(best)


def test_curves_are_the_means_of_the_trials_whatever_the_threads():
    panel = by_budget(
        "P", lambda seed: draw_pool(2, n_workers=8, n_items=60, seed=seed), VOTES[:2], (2, 8)
    )
    found = carry_out(panel, 3, Serial(), nothing)
    assert (found.accuracy == carry_out(panel, 3, Threads(2), nothing).accuracy).all()
    assert found.mean.tolist() == found.accuracy.mean(axis=0).tolist()
    tested = begin(draw_pool(2, n_workers=8, n_items=60, seed=2), 2)
    team = TOP.choose(tested, 8)
    expected = accuracy(tested, VOTES[0].combine(tested, team))
    assert found.accuracy[2, 0, 1] == expected
    assert found.error[0, 0] == pytest.approx(found.accuracy[:, 0, 0].std(ddof=1) / 3**0.5)


def test_a_third_of_every_articles_workers_is_kept(tiny):
    from goldspan.crowd import read_crowd

    crowd = read_crowd(tiny / "ner_mturk" / "crowd.tsv.gz")
    known = np.zeros(crowd.n_items, np.bool_)
    known[:2] = True
    merit = np.arange(crowd.n_workers, dtype=float)
    kept = ner._best_third(crowd, merit, ~known)
    for item in range(2):
        assert kept.answers_of(item) == crowd.answers_of(item)
    for item in range(2, crowd.n_items):
        every = sorted(crowd.answers_of(item))
        left = sorted(kept.answers_of(item))
        assert left == every[-len(left) :]
        assert len(left) in (1, 2)


def test_the_study_runs_on_tiny_data(tiny, monkeypatch, tmp_path):
    monkeypatch.setattr(study, "REAL", (("dog", 20, (3, 5)), ("bluebirds", 10, (3, 9))))
    monkeypatch.setattr(study, "WHOLE", {"bluebirds"})
    monkeypatch.setattr(study, "BUDGETS", (3, 7))
    monkeypatch.setattr(study, "BLUEBIRDS", (3, 9))
    monkeypatch.setattr(study, "GOLD", (3, 10))
    monkeypatch.setattr(study, "PRIORS", (2.0,))
    monkeypatch.setattr(ner, "ARTICLES", 4)
    seen = []
    found = run_study(
        "li-liu", tiny, repeats=2, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (16, 16)
    captions = [table.caption for table in found.tables]
    assert sum("accuracy in per cent" in caption for caption in captions) == 6
    assert "chosen third" in found.markdown()
    picture = pytest.importorskip("goldspan.report")
    picture.save_figure(found.picture(), tmp_path / "study.png")


def test_plain_votes_agree_with_those_of_the_library():
    pool = draw_pool(3, n_workers=7, n_items=300, seed=2)
    tested = begin(pool, 4)
    order = tested.order_by_share()
    weights = 3 * tested.reliability.share - 1
    right = np.zeros((7, 290), np.int64)
    answers = tested.rest.crowd.latest
    # The truth is called 0, as in the plain votes.
    right[answers.worker, answers.item] = (answers.codes - tested.rest.gold[answers.item]) % 3
    found = claims.prefix_accuracies(right[order], weights[order], np.zeros((290, 3)))
    for size in (3, 5, 7):
        labels = vote("wmv-linear")(tested, order[:size])
        assert found[size - 1] == pytest.approx(accuracy(tested, labels), abs=0.03)


def test_a_claim_fails_from_where_the_others_are_better():
    rng = np.random.default_rng(0)
    gap = 0.001 * rng.standard_normal((50, 6)) + np.array([0.1, 0.1, 0, -0.1, -0.1, -0.1])
    assert claims.verdicts(gap) == ("4", "1, 2", "fails")
    assert claims.verdicts(gap[:, ::-1]) == ("only 1 … 3", "5, 6", "fails")
    assert claims.verdicts(-gap) == ("only 1, 2", "4 … 6", "fails")


def test_a_claim_holds_only_where_it_is_shown_and_nothing_points_the_other_way():
    noise = np.random.default_rng(0).standard_normal((50, 6))
    noise -= noise.mean(axis=0)
    ahead = np.array([0.1, 0, 0.1, 0.1, 0.1, 0.1])
    assert claims.verdicts(0.001 * noise + ahead) == ("nowhere", "1, 3 … 6", "holds")
    assert claims.verdicts(0.001 * noise + ahead - 1e-6) == ("nowhere", "1, 3 … 6", "not shown")
    assert claims.verdicts(noise + 1e-6) == ("nowhere", "nowhere", "not shown")
    assert claims.verdicts(noise[:1]) == ("?", "?", "?")


def test_finished_trials_are_kept(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "GROUPS", {"Labels": {"2": claims.BASE}})
    monkeypatch.setattr(claims, "WORLDS", {"as the paper": claims.BASE})
    monkeypatch.setattr(claims, "CONTROL", (3, 10))
    monkeypatch.setattr(claims, "PRIORS", (1.0, 2.3))
    monkeypatch.setattr(claims, "REAL", ("bluebirds",))
    monkeypatch.setattr(claims, "N_ITEMS", 50)
    state = tmp_path / "runs.jsonl"
    first = run_study("li-liu-claims", tiny, repeats=2, state=state)
    lines = state.read_text().splitlines()
    assert len(lines) == 2 * 4
    monkeypatch.setattr(claims, "trial", None)
    assert run_study("li-liu-claims", tiny, repeats=2, state=state).markdown() == first.markdown()
    state.write_text("\n".join([*lines, lines[0].replace('"seed": 0', '"seed": 2'), ""]))
    so_far = run_study("li-liu-claims", tiny, repeats=3, state=state, so_far=True)
    assert so_far.tables == first.tables
    assert so_far.notes[1].startswith("SO FAR: 9 of 12 runs are finished. ")


def test_teams_are_compared_on_tiny_data(tiny, tmp_path, monkeypatch):
    cases = (
        teams.Case("bluebirds", 10),
        teams.Case("dog", 20, n_copied=3),
        teams.Case("ner_mturk", 4, "bsc-seq"),
    )
    monkeypatch.setattr(teams, "CASES", cases)
    state = tmp_path / "runs.jsonl"
    found = run_study("li-liu-teams", tiny, repeats=2, state=state)
    assert "bluebirds" in found.markdown()
    assert "dog, 3 workers three times" in found.markdown()
    picture = pytest.importorskip("goldspan.report")
    picture.save_figure(found.picture(), tmp_path / "study.png")
    monkeypatch.setattr(teams, "trial", None)
    assert run_study("li-liu-teams", tiny, repeats=2, state=state).markdown() == found.markdown()
    so_far = run_study("li-liu-teams", tiny, repeats=7, state=state, so_far=True)
    assert so_far.tables == found.tables
    assert so_far.notes[1].startswith("SO FAR: 6 of 19 runs are finished. ")  # at most 5 of the NER
    assert found.notes[0] == "2 draws of gold questions per crowd."
    monkeypatch.setattr(teams, "NER_REPEATS", 1)
    few = run_study("li-liu-teams", tiny, repeats=2, state=state)
    assert few.notes[0] == "2 draws of gold questions per crowd, on ner_mturk 1."


def test_gold_that_is_not_drawn_does_not_reach_the_teams(tiny):
    case = teams.Case("bluebirds", 10)
    crowd = teams._read(tiny, case)
    known = teams._draw(crowd, case, 1)
    wrong = crowd.with_gold(np.where(known, crowd.gold, 1 - crowd.gold).astype(np.int16))
    first, second = (teams.trial(one, case, 1, Serial()) for one in (crowd, wrong))
    for line, rows in first.items():
        assert [row[1:] for row in rows] == [row[1:] for row in second[line]]
        assert [100 - row[0] for row in rows] == pytest.approx([row[0] for row in second[line]])


@pytest.mark.realdata
def test_bluebirds_gives_the_numbers_of_the_paper(data):
    entries = [entry for entry in (*VOTES, *LEARNED) if entry.label in dict(_targets())]
    pool = read_pool(data, "bluebirds", 10)
    found = carry_out(by_budget("B", lambda _: pool, entries, (39,)), 100, Serial(), nothing)
    for label, target in _targets():
        row = found.row(label)
        away = abs(found.mean[row, 0] - target)
        # A target is known to three digits.
        assert away < 0.0005 + 2 * found.error[row, 0], label
    assert found.size[:, found.row("WMV-lin selected"), 0].mean() == pytest.approx(11, abs=0.5)


def _targets() -> list[tuple[str, float]]:
    return [(label, target) for label, target, _ in study.TARGETS]
