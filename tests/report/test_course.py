"""The picture of a fit: its steps and why it ended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from goldspan.report import save_figure, trace_figure
from goldspan.report.sections import MAX_MARKED, stop_words


def _words(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_every_step_is_a_point(model):
    (line,) = trace_figure(model).axes[0].lines
    assert line.get_xdata().tolist() == list(range(1, len(model.trace) + 1))
    assert line.get_ydata() == pytest.approx(model.trace)
    assert line.get_marker() == "o"


def test_the_reason_stands_above_and_the_last_value_at_its_point(model):
    steps = len(model.trace)
    assert _words(trace_figure(model)) == [
        "Objective per iteration",
        f"{steps} iterations, converged: its change fell below the tolerance",
        f"{model.trace[-1]:,.1f}".replace("-", "\u2212"),
    ]


@pytest.mark.parametrize(
    ("converged", "reason", "words"),
    [
        (False, "max_iter", "2 iterations, not converged: the allowed number of iterations"),
        (True, "votes agree", "2 iterations, converged: votes agree"),
        (True, "", "2 iterations, converged: finished"),
    ],
)
def test_other_reasons_are_told(model, converged, reason, words):
    other = replace(model, trace=(1.0, 2.0), converged=converged, stop_reason=reason)
    assert stop_words(other).startswith(words)


@pytest.mark.parametrize("trace", [(), (float("nan"),)])
def test_no_steps_are_told(trace, model, tmp_path):
    figure = trace_figure(replace(model, trace=trace))
    assert "no values" in _words(figure)
    save_figure(figure, tmp_path / "a.png")


@pytest.mark.parametrize(
    "trace", [(5.0,), (0.0, 0.0), (-1e9, -1e8, -1e8 + 0.1), (-np.inf, 1.0, 2.0), (1e-9, 2e-9)]
)
def test_any_course_can_be_drawn(trace, model, tmp_path):
    save_figure(trace_figure(replace(model, trace=trace)), tmp_path / "a.png")


def test_many_steps_are_a_line(model):
    trace = tuple(np.arange(MAX_MARKED + 1.0))
    (line,) = trace_figure(replace(model, trace=trace)).axes[0].lines
    assert line.get_marker() == "None"
