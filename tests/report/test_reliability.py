"""The reliability diagrams: what is drawn where, and that it says what it is."""

from __future__ import annotations

import numpy as np
import pytest

import goldspan
from goldspan.errors import InputError
from goldspan.report import reliability_figure, span_reliability, token_reliability


def _legend(ax):
    legend = ax.get_legend()
    return [legend.get_title().get_text(), *(text.get_text() for text in legend.get_texts())]


def test_there_is_a_diagram_and_a_histogram_of_tokens_and_of_spans(model):
    tokens, spans, below_tokens, below_spans = reliability_figure(model).axes
    assert tokens.texts[0].get_text() == "Tokens: share right, %"
    assert spans.texts[0].get_text() == "Spans: share right, %"
    assert (
        below_tokens.get_xlabel() == below_spans.get_xlabel() == "confidence, %   (bars: how many)"
    )


def test_the_legend_has_the_calibration_error(model):
    tokens, spans, *_ = reliability_figure(model).axes
    ece = f"ECE {100 * token_reliability(model).ece:.1f}\u00a0%"
    assert _legend(tokens) == [ece, "as it should be", "2,599 tokens, 95\u00a0% interval"]
    assert _legend(spans)[0] == f"ECE {100 * span_reliability(model).ece:.1f}\u00a0%"


def test_points_and_bars_are_the_bins(model):
    found = token_reliability(model)
    diagram, _, histogram, _ = reliability_figure(model).axes
    points = diagram.containers[0][0]
    assert points.get_xdata() == pytest.approx(found.confidence[found.counts > 0])
    assert points.get_ydata() == pytest.approx(found.right[found.counts > 0])
    assert [bar.get_height() for bar in histogram.patches] == found.counts.tolist()


def test_single_labels_have_one_diagram(labels):
    result = goldspan.aggregate(labels, "ds")
    figure = reliability_figure(result, np.zeros(3, np.int16))
    assert len(figure.axes) == 2
    assert figure.axes[0].texts[0].get_text() == "Labels: share right, %"


def test_a_result_without_spans_has_an_empty_diagram(build):
    crowd = build({"s": (["x"], {"a": ["O"], "b": ["B-X"]})}, gold={"s": ["O"]})
    result = goldspan.aggregate(crowd, "mv-token", ties="outside")
    assert _legend(reliability_figure(result).axes[1])[0] == "ECE –"


def test_without_gold_there_is_no_diagram(labels):
    with pytest.raises(InputError, match="no gold"):
        reliability_figure(goldspan.aggregate(labels, "ds"))
