"""Study selection-ner-full on tiny data: its stops, its shares, its figure."""

from __future__ import annotations

import numpy as np
import pytest

from goldspan.protocols import Serial
from studies.selection_ner import full
from studies.selection_ner.bench import Bench
from studies.selection_ner.experiment import carry_out
from studies.selection_ner.full import COMPARED, Whole, figure, needed, share_table, shares_of


@pytest.fixture(scope="module")
def bench(tiny):
    return Bench.read(tiny)


@pytest.fixture(scope="module")
def extent(bench):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full, "ROUNDS", (40, 80, 120))
        yield Whole(repeats=1, n_tokens=bench.train.n_tokens)


@pytest.fixture(scope="module")
def runs(bench, extent):
    return carry_out(bench, extent, Serial())


def test_every_rule_buys_the_whole_pool_in_the_end(bench, runs):
    assert set(COMPARED) == {label for _, label in runs}
    for stops in runs.values():
        assert [stop.limit for stop in stops] == [40, 80, 120, bench.train.n_tokens]
        assert stops[-1].tokens == bench.train.n_tokens


def test_what_is_needed_is_read_off_straight_lines():
    assert needed([10, 20, 40], np.array([0.5, 0.75, 1.0]), 0.875) == 30
    assert needed([10, 20], np.array([0.96, 1.0]), 0.95) == 10
    assert np.isnan(needed([10, 20], np.array([0.5, 0.6]), 0.95))
    # the first time counts, also if it falls afterwards
    assert needed([10, 20, 30, 40], np.array([0.5, 1.0, 0.5, 1.0]), 0.75) == 15


def test_the_table_holds_the_shares_of_the_curves(extent, runs):
    table = share_table(runs, extent)
    assert len(table.rows) == 2 * len(COMPARED)
    for test, label, whole, *cells in table.rows:
        reached, total = shares_of(runs, extent, label, test)
        assert whole == total
        assert cells[0] == pytest.approx(
            100 * needed(extent.stops, reached, 0.9) / extent.n_tokens, nan_ok=True
        )


def test_the_figure_has_a_curve_for_every_rule_and_the_published_point(extent, runs):
    drawn = figure(runs, extent)
    for ax in drawn.axes:
        *curves, _, point = ax.get_lines()
        assert [line.get_label() for line in curves] == list(COMPARED)
        assert point.get_xdata()[0] == pytest.approx(24.9)
