"""Study selection-ner-full on tiny data: its stops, its shares, its figure."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.protocols import Serial
from studies.selection_ner import full
from studies.selection_ner.bench import Bench
from studies.selection_ner.experiment import carry_out
from studies.selection_ner.full import COMPARED, Whole, figure, needed, share_table, shares_of
from studies.selection_ner.lines import RANDOM


@pytest.fixture(scope="module")
def bench(tiny):
    return Bench.read(tiny)


@pytest.fixture(scope="module")
def extent(bench):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full, "ROUNDS", (40, 80, 120))
        patch.setattr(full, "SCORED", (40, 120))
        yield Whole(repeats=1, n_tokens=bench.train.n_tokens)


@pytest.fixture(scope="module")
def runs(bench, extent):
    return carry_out(bench, extent, Serial())


def test_random_buys_the_whole_pool_and_the_others_at_most_half(bench, extent, runs):
    assert set(COMPARED) == {label for _, label in runs}
    for (_, label), stops in runs.items():
        assert [stop.limit for stop in stops] == list(extent.stops_of(label))
        share = stops[-1].tokens / bench.train.n_tokens
        assert share == 1 if label == RANDOM else 0 < share <= 0.5


def test_what_is_needed_is_read_off_straight_lines():
    assert needed([10, 20, 40], np.array([0.5, 0.75, 1.0]), 0.875) == 30
    assert needed([10, 20], np.array([0.96, 1.0]), 0.95) == 10
    assert needed([10, 20], np.array([0.5, 0.6]), 0.95) is None
    # the first time counts, also if it falls afterwards
    assert needed([10, 20, 30, 40], np.array([0.5, 1.0, 0.5, 1.0]), 0.75) == 15


def test_the_table_holds_the_shares_of_the_curves(extent, runs):
    table = share_table(runs, extent)
    assert len(table.rows) == 2 * len(COMPARED)
    for test, label, whole, *cells in table.rows:
        reached, total = shares_of(runs, extent, label, test)
        assert whole == total
        found = needed(extent.stops_of(label), reached, 0.9)
        assert cells[0] == (None if found is None else 100 * found / extent.n_tokens)


def test_the_figure_has_a_curve_for_every_rule_and_the_published_point(extent, runs):
    drawn = figure(runs, extent)
    for ax in drawn.axes:
        *curves, _, point = ax.get_lines()
        assert [line.get_label() for line in curves] == list(COMPARED)
        assert point.get_xdata()[0] == pytest.approx(24.9)


@pytest.mark.parametrize("quick", [True, False])
def test_nothing_published_stands_beside_a_part_of_the_data(monkeypatch, tiny, extent, runs, quick):
    monkeypatch.setattr(full, "Whole", lambda **_: extent)
    monkeypatch.setattr(full, "carry_out", lambda *_: runs)
    study = full.study(tiny, quick=quick)
    lines = [line for ax in study.picture().axes for line in ax.get_lines()]
    assert any("Shen" in note for note in study.notes) is not quick
    assert any("Shen" in str(line.get_label()) for line in lines) is not quick
