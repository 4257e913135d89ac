"""Reports: pictures of how the workers and a method did, and one HTML file about a consensus.

Matplotlib and Jinja2 (the extra `report`) are imported when something is drawn or
written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.aggregation.reliability import span_reliability as span_reliability
    from goldspan.aggregation.reliability import token_cross_entropy as token_cross_entropy
    from goldspan.aggregation.reliability import token_reliability as token_reliability
    from goldspan.report.drawing import agreement_figure as agreement_figure
    from goldspan.report.drawing import save_figure as save_figure
    from goldspan.report.heat import confusion_figure as confusion_figure
    from goldspan.report.heat import pairs_figure as pairs_figure
    from goldspan.report.heat import type_confusion_figure as type_confusion_figure
    from goldspan.report.heat import worker_confusions_figure as worker_confusions_figure
    from goldspan.report.methods import methods_text as methods_text
    from goldspan.report.sections import trace_figure as trace_figure
    from goldspan.report.sections import write_report as write_report
    from goldspan.report.workers import reliability_figure as reliability_figure

__getattr__, __dir__, __all__ = lazy(__name__)
