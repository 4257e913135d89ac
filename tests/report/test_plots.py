"""The picture: what is drawn, and that it is always the same."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.cbook import boxplot_stats
from matplotlib.figure import Figure

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.report import agreement_figure
from goldspan.report import drawing as plots
from goldspan.report.drawing import MAX_POINTS


@pytest.fixture
def figure(crowd, agreement):
    return agreement_figure(crowd, agreement)


def _points(ax):
    return np.asarray(ax.collections[-1].get_offsets())


def _words(ax):
    return [text.get_text() for text in ax.texts]


def test_there_are_three_panels_with_their_titles(figure):
    titles = [_words(ax)[:2] for ax in figure.axes]
    assert titles == [
        ["(a) answers", "per worker"],
        ["(b) answers", "per item"],
        ["(c) span F1, %", "against gold"],
    ]


def test_every_value_is_a_point_at_its_height(figure, crowd, agreement):
    workers, items, quality = (np.sort(_points(ax)[:, 1]) for ax in figure.axes)
    assert workers.tolist() == sorted(agreement.workers.column("answers").to_pylist())
    per_item = np.bincount(crowd.latest.item, minlength=crowd.n_items)
    assert items.tolist() == np.sort(per_item).tolist()
    assert quality.tolist() == sorted(agreement.workers.column("span_f1").to_pylist())


def test_points_are_moved_sideways_only_within_the_box(figure):
    for ax in figure.axes:
        sideways = _points(ax)[:, 0]
        assert len(set(sideways)) == len(sideways)
        assert np.abs(sideways).max() < 0.31


def test_the_quartiles_are_written_beside_the_box(figure, agreement):
    quartiles = agreement.quartiles["worker_f1"]
    expected = {f"{100 * q:.1f}" for q in (quartiles.first, quartiles.median, quartiles.third)}
    assert set(_words(figure.axes[2])[2:]) == expected


def test_labels_of_quartiles_do_not_touch(figure):
    for ax in figure.axes:
        heights = sorted(text.get_position()[1] for text in ax.texts[2:])
        assert (np.diff(heights) > 0.069).all()


def test_single_labels_show_agreement_and_say_so(labels):
    shown = agreement_figure(labels, goldspan.agreement(labels))
    assert _words(shown.axes[2])[:2] == ["(c) agreement, %", "with the others"]


def test_a_lonely_worker_has_no_quality_to_show(build):
    crowd = build({"s1": (["Ann"], {"a": ["B-PER"]})})
    shown = agreement_figure(crowd, goldspan.agreement(crowd))
    assert "no values" in _words(shown.axes[2])


def test_of_many_values_an_even_selection_is_drawn_with_both_ends():
    builder = CrowdBuilder()
    for n in range(1000):
        item = builder.add_item(str(n), [str(n)])
        for worker in range(1 + n % 7):
            builder.add_answer(item, f"w{worker}", ["x"])
    crowd = builder.build(single=True)
    points = _points(agreement_figure(crowd, goldspan.agreement(crowd)).axes[1])[:, 1]
    assert len(points) == MAX_POINTS
    assert (points.min(), points.max(), np.median(points)) == (1, 7, 4)


def test_counts_that_differ_a_lot_get_a_logarithmic_axis():
    builder = CrowdBuilder()
    for n in range(2000):
        item = builder.add_item(str(n), [str(n)])
        builder.add_answer(item, "busy", ["x"])
        builder.add_answer(item, f"rare{n % 400}", ["x"])
    crowd = builder.build(single=True)
    left, middle, _ = agreement_figure(crowd, goldspan.agreement(crowd)).axes
    assert (left.get_yscale(), middle.get_yscale()) == ("symlog", "linear")


def test_shares_that_are_all_high_get_the_upper_half_of_the_axis(crowd, consensus):
    best = crowd.with_gold(consensus.codes)
    labels = goldspan.read_crowd(b"task,worker,label\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n", format="long")
    agreeing = agreement_figure(labels, goldspan.agreement(labels))
    assert agreeing.axes[2].get_ylim() == (0.5, 1.0)
    assert agreement_figure(best, goldspan.agreement(best)).axes[2].get_ylim() == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_box_and_whiskers_are_those_of_matplotlib(seed):

    values = np.random.default_rng(seed).lognormal(size=3 + 5 * seed)
    ax = Figure().subplots()
    plots._box(ax, values)
    (expected,) = boxplot_stats(values, whis=1.5)
    low, _, high, _, median = (line.get_ydata() for line in ax.lines)
    assert low == pytest.approx([expected["q1"], expected["whislo"]])
    assert high == pytest.approx([expected["q3"], expected["whishi"]])
    assert median == pytest.approx([expected["med"]] * 2)
    box = ax.patches[0].get_bbox()
    assert (box.y0, box.y1) == pytest.approx((expected["q1"], expected["q3"]))
