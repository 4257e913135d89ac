"""The study of redundancy: its tables on tiny data, and what it promises on the real ones."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.crowd import read_crowd
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import replay
from studies import run_study
from studies.redundancy import METHOD, RULES
from tiny_data import write_data


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny folder with the two sets of the quick study, and a tiny NER crowd."""
    folder = write_data(tmp_path_factory.mktemp("redundancy"))
    for seed, name in enumerate(("snow_temp", "snow_wsd")):
        crowd = simulate_crowd(draw_truth(60, 2, seed=seed), ["flip(0.2) x9"], seed=seed)
        part = folder / "classification" / name
        part.mkdir(parents=True)
        rows = [
            f"q{i},{k},{c}"
            for i, k, c in zip(
                crowd.latest.item, crowd.latest.worker, crowd.latest.codes, strict=True
            )
        ]
        (part / "labels.csv").write_text("\n".join(["task,worker,label", *rows]) + "\n")
        gold = [f"q{i},{c}" for i, c in enumerate(crowd.gold)]
        (part / "truth.csv").write_text("\n".join(["task,label", *gold]) + "\n")
    return folder


@pytest.fixture(scope="module")
def study(tiny):
    seen = []
    found = run_study(
        "redundancy", tiny, quick=True, repeats=1, progress=lambda *done: seen.append(done)
    )
    assert seen == [(n, 5) for n in range(1, 6)]
    return found


def test_the_tables_hold_every_rule_and_set(study):
    simulated, _, answers, accuracy, right, ner = study.tables
    assert [row[0] for row in simulated.rows] == ["one-coin", "ibcc", "ds", *["bsc-acc"] * 4]
    assert answers.columns == accuracy.columns == ("rule", "snow_temp", "snow_wsd", "mean")
    rules = [row[0] for row in answers.rows]
    assert set(RULES) < set(rules)
    assert [row[0] for row in accuracy.rows] == rules
    assert {row[0] for row in right.rows} == {r for r in rules if not r.endswith("answers")} - {
        "all, at most 20"
    }
    assert ner.rows[0][0] == "2 answers"


def test_a_higher_threshold_asks_for_more_answers(study):
    used = {row[0]: row[-1] for row in study.tables[2].rows}
    thresholds = [used[f"confident({at})"] for at in (0.8, 0.9, 0.95, 0.99)]
    assert thresholds == sorted(thresholds)
    assert used["5 answers"] == 5.0


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["dog", "snow_rte", "snow_temp"])
def test_stopping_at_95_uses_fewer_answers_than_seven_and_is_no_worse(data, name):
    folder = data / "classification" / name
    crowd = read_crowd(folder / "labels.csv", gold=folder / "truth.csv")
    more, score = [], []
    for seed in range(3):
        options = {"method": METHOD, "random_state": seed, "with_fixed": False}
        fixed = replay(crowd, rule="fixed(7)", min_answers=7, **options)
        found = replay(crowd, max_answers=10, min_answers=2, **options)
        more.append(found.n_answers / fixed.n_answers)
        score.append(found.score - fixed.score)
    assert np.mean(more) <= 0.75
    assert np.mean(score) >= -0.005
