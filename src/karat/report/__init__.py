"""Reports: a picture of how the workers did, and one HTML file about a consensus.

Matplotlib and Jinja2 (the extra `karat[report]`) are imported when something is drawn or written.
"""

from karat.report.html import write_report
from karat.report.plots import agreement_figure, save_figure

__all__ = ["agreement_figure", "save_figure", "write_report"]
