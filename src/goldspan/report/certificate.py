"""The page of a certificate: how right labels are, and the interval as it narrowed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.auditing import Audit
from goldspan.auditing.certificate import SHARES
from goldspan.crowd.atomic import write_text
from goldspan.report.drawing import BOX, POINT, count_ticks, fill_template, percent_ticks, plot
from goldspan.report.sections import picture
from goldspan.report.wording import percent


def write_certificate(found: Audit, path: str | Path, *, source: str = "") -> None:
    """Write a certificate as one HTML file, without network and script."""
    page = fill_template(
        "certificate.html.j2",
        title=f"How good are the labels? {source}".strip(),
        found=found,
        name=SHARES[found.main],
        names=SHARES,
        figure=certificate_picture(found),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    write_text(path, [page])


def certificate_picture(found: Audit) -> dict[str, Any]:
    """Return the picture of the interval as it narrowed over the checks."""
    name, at = SHARES[found.main], np.array([n for n, _ in found.history])
    value, low, high = np.array([one for _, one in found.history]).T
    title = f"{name[0].upper()}{name[1:]} of the labels, %, and its {found.level:.0%} interval"
    sides = 0.085, 0.975, 0.87, 0.165
    with plot((4.7, 2.7), sides, title, "items checked", shift=0.36, room=0.1) as (figure, ax):
        ax.fill_between(at, low, high, color=BOX, linewidth=0)
        ax.plot(at, value, color=POINT, linewidth=1.8)
        bottom = float(np.floor(10 * low.min()) / 10)
        percent_ticks(ax.yaxis, bottom)
        ax.set_ylim(bottom, 1.0)
        count_ticks(ax.xaxis)
        ax.set_xlim(at[0], max(at[-1], at[0] + 1))
    words = (
        f"After {at[0]} checked items between {percent(low[0])} and {percent(high[0])}, after "
        f"{at[-1]} between {percent(low[-1])} and {percent(high[-1])}."
    )
    return picture(figure, "The interval as it narrowed", words)
