"""The heat maps: cells, numbers, labels, and that any number of them fits."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.report import confusion_figure, save_figure, worker_confusions_figure
from goldspan.report.drawing import MUTED, RIGHT, WRONG
from goldspan.report.heat import confusions


def _words(ax):
    return [text.get_text() for text in ax.texts]


def _hexes(ax):
    from matplotlib.colors import to_hex

    return {(int(p.get_y()), int(p.get_x())): to_hex(p.get_facecolor()) for p in ax.patches}


def crowd_of(n_labels, n_workers):
    builder = CrowdBuilder()
    for n in range(max(n_labels, n_workers)):
        item = builder.add_item(f"q{n}", [f"q{n}"])
        for k in range(2):
            label = f"label {(n + k) % n_labels}"
            builder.add_answer(item, f"worker {(n + k) % n_workers}", [label])
    return builder.build(single=True)


def test_the_cells_are_the_shares_of_the_rows(model):
    found = confusions(model, "fay")
    (ax,) = confusion_figure(model, "fay").axes
    drawn = {(int(p.get_y()), int(p.get_x())): p.get_alpha() for p in ax.patches}
    for cell, share in np.ndenumerate(found.rates):
        assert drawn.get(cell, 0) == pytest.approx(share, abs=0.0051)


def test_right_is_blue_and_wrong_is_orange(model):
    (ax,) = confusion_figure(model).axes
    for (row, column), colour in _hexes(ax).items():
        assert colour == (RIGHT if row == column else WRONG)


def test_labels_shares_and_counts_are_written(model):
    found = confusions(model)
    words = _words(confusion_figure(model).axes[0])
    assert words[:2] == ["All workers: what was said, % of the row", "11,920 labels"]
    assert {"truth", "label given", "as the truth", "something else"} <= set(words)
    for n, label in enumerate(found.labels):
        assert words.count(label) == 2
        assert f"{found.totals[n]:,.0f}" in words
        assert f"{100 * found.rates[n, n]:.0f}" in words


def test_others_as_others_are_neither_right_nor_wrong():
    result = goldspan.aggregate(crowd_of(8, 3), "ds")
    (ax,) = confusion_figure(result, max_labels=3).axes
    assert _hexes(ax)[2, 2] == MUTED
    assert _words(ax).count("6 others") == 2


def test_small_ones_are_headed_by_their_worker(model):
    figure = worker_confusions_figure(model, ["gus", "ana"])
    assert [_words(ax)[:2] for ax in figure.axes] == [
        ["gus", "2,499 labels"],
        ["ana", "2,492 labels"],
    ]
    assert len(worker_confusions_figure(model).axes) == 6


@pytest.mark.parametrize(("n_labels", "n_workers"), [(1, 1), (2, 5), (30, 3), (200, 200)])
def test_any_number_of_labels_and_workers_can_be_drawn(n_labels, n_workers, tmp_path):
    result = goldspan.aggregate(crowd_of(n_labels, n_workers), "one-coin" if n_labels > 1 else "ds")
    figure = confusion_figure(result)
    save_figure(figure, tmp_path / "a.svg")
    save_figure(worker_confusions_figure(result), tmp_path / "b.svg")
    assert max(figure.get_size_inches()) < 25


@pytest.mark.parametrize("n_labels", [1, 2, 9, 30])
def test_nothing_reaches_out_of_the_picture(n_labels):
    result = goldspan.aggregate(crowd_of(n_labels, 4), "ds")
    for figure in (confusion_figure(result), worker_confusions_figure(result)):
        renderer = figure.canvas.get_renderer() if hasattr(figure.canvas, "get_renderer") else None
        if renderer is None:
            from matplotlib.backends.backend_agg import FigureCanvasAgg

            renderer = FigureCanvasAgg(figure).get_renderer()
        width, height = figure.bbox.size
        for ax in figure.axes:
            for text in ax.texts:
                box = text.get_window_extent(renderer)
                assert box.x0 >= 0, text
                assert box.y0 >= 0, text
                assert box.x1 <= width, text
                assert box.y1 <= height, text


def test_no_workers_give_an_empty_picture(model, tmp_path):
    figure = worker_confusions_figure(model, [])
    save_figure(figure, tmp_path / "a.png")
    assert figure.axes == []
