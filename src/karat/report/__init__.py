"""Reports: pictures of how the workers and a method did, and one HTML file about a consensus.

Matplotlib and Jinja2 (the extra `karat[report]`) are imported when something is drawn or written.
"""

from karat.aggregate.reliability import span_reliability, token_cross_entropy, token_reliability
from karat.report.canvas import save_figure
from karat.report.course import trace_figure
from karat.report.heat import confusion_figure, worker_confusions_figure
from karat.report.html import write_report
from karat.report.plots import agreement_figure
from karat.report.reliability import reliability_figure

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
