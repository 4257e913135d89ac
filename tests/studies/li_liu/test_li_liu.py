"""Study li-liu: its parts against plain counting, the whole on tiny data, numbers on real ones."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.errors import InputError
from goldspan.protocols import Serial
from goldspan.runners import Threads
from studies import run_study
from studies.li_liu import ner, study
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


def test_control_questions_are_not_scored():
    pool = draw_pool(2, n_workers=5, n_items=60, n_control=15, seed=1)
    tested = begin(pool, 8)
    assert tested.rest.crowd.n_items == 45
    assert (tested.reliability.total == 15).all()
    whole, _ = pool.share(np.arange(60))
    rest, _ = tested.rest.share(np.arange(45))
    assert (whole - rest == tested.reliability.right).all()


def test_a_pool_without_items_besides_the_control_questions_is_refused():
    with pytest.raises(InputError, match="60 control questions leave none of the 60 items"):
        begin(draw_pool(2, n_workers=5, n_items=60, n_control=60), 1)


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


def test_the_top_workers_have_the_largest_shares():
    tested = begin(draw_pool(2, n_items=100, seed=4), 9)
    share = tested.reliability.share
    assert share[TOP.choose(tested, 5)].min() >= np.delete(share, TOP.choose(tested, 5)).max()


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
    monkeypatch.setattr(study, "DOG_CONTROL", 20)
    monkeypatch.setattr(study, "BUDGETS", (3, 7))
    monkeypatch.setattr(study, "BLUEBIRDS", (3, 9))
    monkeypatch.setattr(study, "CONTROL", (3, 10))
    monkeypatch.setattr(study, "PRIORS", (2.0,))
    monkeypatch.setattr(ner, "ARTICLES", 4)
    seen = []
    found = run_study(
        "li-liu", tiny, repeats=2, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (20, 20)
    captions = [table.caption for table in found.tables]
    assert sum("accuracy in per cent" in caption for caption in captions) == 8
    assert "chosen third" in found.markdown()
    picture = pytest.importorskip("goldspan.report")
    picture.save_figure(found.picture(), tmp_path / "study.png")


@pytest.mark.parametrize("repeats", [0, 2.5])
def test_repeats_that_are_none_are_refused(repeats, tiny):
    with pytest.raises(InputError, match="repeats must be a whole number"):
        run_study("li-liu", tiny, repeats=repeats)


@pytest.mark.realdata
def test_bluebirds_gives_the_numbers_of_the_paper(data):
    entries = [entry for entry in (*VOTES, *LEARNED) if entry.label in dict(_asked())]
    pool = read_pool(data, "bluebirds", 10)
    found = carry_out(by_budget("B", lambda _: pool, entries, (39,)), 100, Serial(), nothing)
    for label, asked in _asked():
        row = found.row(label)
        away = abs(found.mean[row, 0] - asked)
        # What was asked for is known to three digits.
        assert away < 0.0005 + 2 * found.error[row, 0], label
    assert found.size[:, found.row("WMV-lin selected"), 0].mean() == pytest.approx(11, abs=0.5)


def _asked() -> list[tuple[str, float]]:
    return [(label, asked) for label, asked, _ in study.ASKED]
