"""The pages on Ntoulas et al. against the current code: cheap rows are computed again."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

import numpy as np
import pytest

from goldspan.selection import Features
from studies.ntoulas import spambase, text
from studies.ntoulas.rounds import WAYS, play
from studies.ntoulas.spambase import N_COVERAGE, PAPER, read_mails
from studies.ntoulas.split import FOLDS
from studies.ntoulas.trial import RANDOM, Training, run_trial

PAGES = ("results-ntoulas", "results-selection", "results-campaign")


def read(root, name):
    return (root / "docs" / f"{name}.md").read_text("utf-8")


@pytest.mark.realdata
def test_the_row_of_ten_folds_is_that_of_this_code(root, data):
    mails = read_mails(data / spambase.FILE)
    trainings = [Training(RANDOM, N_COVERAGE), Training(PAPER, N_COVERAGE)]
    trials = [
        run_trial(mails.fold(fold), trainings, ["gaussian-nb"], fold) for fold in range(FOLDS)
    ]
    table = read(root, "results-ntoulas").partition("**The same in 10-fold cross-validation")[2]
    for training in trainings:
        (row,) = [
            line.split(" | ")
            for line in table.partition("\n### ")[0].splitlines()
            if line.startswith(f"| gaussian-nb | {training.name} |")
        ]
        scores = [trial.scores["gaussian-nb", training] for trial in trials]
        means = [
            f"{np.mean([getattr(one, name) for one in scores]):.2f}"
            for name in ("precision", "recall", "f", "fpr")
        ]
        assert row[2::2] == means


LEARNERS = {"The mails": ("gaussian-nb", "logistic"), "Texts": ("naive-bayes", "logistic")}
"""Classifiers of the loop, by the beginning of the chapter."""


def rows_of_the_loop(root, chapter):
    """Return the cells of the table of the loop in rounds."""
    page = read(root, "results-ntoulas").partition(f"\n## {chapter}")[2].partition("\n## ")[0]
    table = page.partition("**The loop in rounds of 50")[2].splitlines()[4:]
    return [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in takewhile(lambda line: line.startswith("|"), table)
    ]


@pytest.mark.parametrize("chapter", LEARNERS)
def test_the_loop_in_rounds_has_every_way_of_this_code(root, chapter):
    found = [tuple(row[:3]) for row in rows_of_the_loop(root, chapter)]
    ways = [(way.name, way.beside) for way in WAYS]
    assert found == [(learner, *way) for learner in LEARNERS[chapter] for way in ways]


@pytest.mark.realdata
def test_the_first_rounds_of_random_texts_are_those_of_this_code(root, data):
    texts = text.read_texts(data / text.FOLDER)
    (way,) = (way for way in WAYS if way.name == "random")
    splits = [texts.draw(seed) for seed in range(10)]
    features = Features.fit(splits[0].pool, templates=("lower",))  # random looks at none
    row, *_ = (row for row in rows_of_the_loop(root, "Texts") if row[1] == way.name)
    found = [
        play(split, way, row[0], (150,), seed, features)[150].f for seed, split in enumerate(splits)
    ]
    assert row[3] == f"{np.mean(found):.2f}"


def test_quotes_stand_under_the_figure_that_they_are_of(root):
    mails, texts = read(root, "results-ntoulas").split("* **On texts**")
    assert '"virtually the same performance across all metrics"' in mails
    assert "virtually the same" not in texts
    assert "(of Figure 4)" in texts.partition("\n## ")[0]


@pytest.mark.parametrize("page", PAGES)
def test_beside_every_table_stand_the_day_and_the_version_of_its_numbers(root, page):
    lines = [line for line in read(root, page).splitlines() if line]
    captions = [before for before, line in pairwise(lines) if line[0] == "|" != before[0]]
    assert len(captions) >= 4
    for caption in captions:
        told = f"above a table stand its caption, the day and the version, not: {caption}"
        assert re.search(r"^\*\*.*\*\* \(20\d\d-\d\d-\d\d, version \d+\.\d+\.\d+\)$", caption), told


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("word", ["asked for", "was allowed", "what was asked", "**The target"])
def test_a_target_of_our_own_is_called_so(root, page, word):
    assert word not in read(root, page)
