"""Reports: pictures of how the workers and a method did, and one HTML file about a consensus.

Matplotlib and Jinja2 (the extra `report`) are imported when something is drawn or
written.
"""

from goldspan.aggregation.reliability import (
    span_reliability,
    token_cross_entropy,
    token_reliability,
)
from goldspan.report.drawing import agreement_figure, save_figure
from goldspan.report.heat import confusion_figure, worker_confusions_figure
from goldspan.report.sections import trace_figure, write_report
from goldspan.report.workers import reliability_figure

__all__ = [
    "agreement_figure",
    "confusion_figure",
    "reliability_figure",
    "save_figure",
    "span_reliability",
    "token_cross_entropy",
    "token_reliability",
    "trace_figure",
    "worker_confusions_figure",
    "write_report",
]
