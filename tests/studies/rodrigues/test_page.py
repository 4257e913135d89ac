"""The page of results against the current code: its cheap rows are computed again."""

from __future__ import annotations

import json
import os
import re

import pytest

import goldspan
from goldspan.crowd.measures import worker_rates
from studies.rodrigues.data import read_entities, read_workers
from studies.rodrigues.methods import FULL
from studies.rodrigues.study2 import TIED

TAKES_LONG = pytest.mark.skipif(
    os.environ.get("GOLDSPAN_TORTURE") is None, reason="takes a minute: set GOLDSPAN_TORTURE"
)


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "results-rodrigues.md").read_text("utf-8")


@pytest.fixture(scope="module")
def crowd(data):
    return read_workers(data)


def _row(page, study, method):
    """Return the numbers of a method in the first table of a study, as they are written."""
    part = page.split(f"<!-- {study}: begin -->")[1].split(f"<!-- {study}: end -->")[0]
    found = re.search(rf"^\| {re.escape(method)} \|(.*)$", part, re.MULTILINE)
    return [cell.strip() for cell in found[1].split("|")]


@pytest.mark.realdata
@pytest.mark.parametrize("label", ["mv-seq", "mv-token", "mv-seg (in or out)", "mv-seg", *TIED])
def test_the_rows_of_votes_on_the_real_crowd_are_those_of_this_code(page, crowd, label):
    name, params = FULL.params(label)
    found = goldspan.score(crowd, goldspan.aggregate(crowd, name, **params))
    rates = [f"{100 * rate:.2f}" for rate in (found.precision, found.recall, found.f1)]
    assert _row(page, "rodrigues-5", label)[:3] == rates


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("label", "away"), [("hmm-ma", 0.005), pytest.param("multicrf", 0.1, marks=TAKES_LONG)]
)
def test_rows_of_crowd_crfs_are_those_of_this_code(page, crowd, label, away):
    """L-BFGS ends a little elsewhere with other sums, so that a CRF is off in the first decimal."""
    name, params = FULL.params(label)
    found = goldspan.score(crowd, goldspan.aggregate(crowd, name, **params))
    rates = [100 * rate for rate in (found.precision, found.recall, found.f1)]
    written = [float(cell) for cell in _row(page, "rodrigues-5", label)[:3]]
    assert rates == pytest.approx(written, abs=away)


@pytest.mark.realdata
def test_the_sizes_and_workers_that_the_page_names_are_those_of_the_data(page, crowd, data):
    f1 = [100 * one.f1 for one in worker_rates(crowd, crowd.gold_tagged.codes)]
    assert f"{min(f1):.2f}" in page
    assert f"{max(f1):.2f}" in page
    sizes = [read_entities(data, part).n_items for part in ("train", "testa")]
    assert sizes == [14041 + 946, 3250 + 216]
    assert all(f"{size:,}" in page for size in sizes)


def test_rows_of_many_repeats_are_the_means_of_the_runs_that_are_kept(page, root):
    kept = sorted((root / "studies" / "rodrigues" / "runs").glob("*.runs.jsonl"))
    checked = 0
    for file in kept:
        study, f1 = file.name.removesuffix(".runs.jsonl"), {}
        for line in map(json.loads, file.read_text("utf-8").splitlines()):
            f1.setdefault(line["method"], {})[line["repeat"]] = line["scores"]["own items"][2]
        assert f1
        for method, found in f1.items():
            if len(found) < 3:  # too few for a table
                continue
            mean = f"{100 * sum(found.values()) / len(found):.2f}"
            row = _row(page, study, method)
            assert mean in row, (study, method, len(found), mean, row)
            checked += 1
    assert checked >= 8


@pytest.mark.parametrize("word", ["asked for", "allowed:", "what was asked"])
def test_a_target_of_our_own_is_called_so(page, word):
    assert word not in page
