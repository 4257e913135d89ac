"""The heat maps: cells, numbers, labels, and that any number of them fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.report import (
    confusion_figure,
    pairs_figure,
    save_figure,
    type_confusion_figure,
    worker_confusions_figure,
)
from goldspan.report.drawing import MUTED, RIGHT, WRONG
from goldspan.report.heat import MOST_PAIRED, confusions, pair_shares, said_by_type


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


SPANS = """token	gold	ann	bob
Ann	B-PER	B-PER	B-LOC
Lee	I-PER	O	I-LOC
sang	O	O	B-PER
in	O	O	O
Rome	B-LOC	B-LOC	O
"""


def test_types_are_counted_where_known_spans_are_by_any_overlap():
    result = goldspan.aggregate(SPANS.encode(), "mv-token")
    found = said_by_type(result)
    assert found.labels == ("LOC", "PER", "nothing")
    assert found.counts.tolist() == [[1, 0, 1], [1, 1, 0], [0, 1, 0]]
    words = _words(type_confusion_figure(result).axes[0])
    assert {"nothing", "5 spans", "spans"} <= set(words)


def test_single_labels_are_counted_against_the_result_where_nothing_is_known():
    votes = b"task,worker,label\nq1,a,x\nq1,b,x\nq1,c,y\nq2,a,y\nq2,b,y\n"
    result = goldspan.aggregate(votes, "mv-token")
    assert said_by_type(result).counts.tolist() == [[2, 1], [0, 2]]
    known = result.crowd.with_gold(np.array([1, -1], np.int16))
    counts = said_by_type(goldspan.aggregate(known, "mv-token")).counts
    assert counts.tolist() == [[0, 0], [2, 3]]


def test_pairs_are_the_agreement_of_every_two_who_share_spans(crowd, agreement):
    names, shares, n_workers = pair_shares(crowd, agreement)
    assert (names[0], names[-1], n_workers) == ("ana", "gus", 7)
    both = np.array([crowd.worker_index(name) for name in ("ana", "bo")])
    alone = goldspan.agreement(
        replace(crowd, answers=crowd.answers.take(np.isin(crowd.answers.worker, both)))
    )
    assert shares[0, names.index("bo")] == pytest.approx(alone.pairwise_span_f1)
    assert np.isnan(np.diag(shares)).all()
    assert np.array_equal(shares, shares.T, equal_nan=True)
    (ax,) = pairs_figure(crowd, agreement).axes
    assert len(ax.patches) == 7 * 6
    assert max(patch.get_alpha() for patch in ax.patches) == 1


def test_of_many_workers_the_most_active_are_in_the_matrix():
    builder = CrowdBuilder()
    for n in range(MOST_PAIRED + 20):
        item = builder.add_item(f"q{n}", [f"q{n}"])
        for k in {n, (n + 1) % (MOST_PAIRED + 20), 77}:
            builder.add_answer(item, f"w{k}", ["x"])
    crowd = builder.build(single=True)
    names, shares, n_workers = pair_shares(crowd, goldspan.agreement(crowd))
    assert (len(names), n_workers) == (MOST_PAIRED, MOST_PAIRED + 20)
    assert "w77" in names
    assert (shares == 0).sum() == 0
    figure = pairs_figure(crowd, goldspan.agreement(crowd))
    assert f"the {MOST_PAIRED} most active of 80 workers" in _words(figure.axes[0])
    assert max(figure.get_size_inches()) < 15


def test_who_shares_nothing_is_in_no_pair():
    crowd = goldspan.read_crowd(b"task,worker,label\n1,a,x\n2,b,x\n")
    assert pair_shares(crowd, goldspan.agreement(crowd))[0] == []
    assert list(pairs_figure(crowd, goldspan.agreement(crowd)).axes[0].patches) == []
