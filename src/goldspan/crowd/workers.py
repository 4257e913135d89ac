"""Keeping the workers whom the user named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from goldspan.crowd.model import Crowd
from goldspan.crowd.options import ReadOptions
from goldspan.errors import Fault, FormatError


def keep_workers(crowd: Crowd, options: ReadOptions) -> Crowd:
    """Leave out the answers of workers whom `options.workers` does not name; all items stay.

    Raises:
        FormatError: There is no worker of such a name.
    """
    if options.workers is None:
        return crowd
    names = crowd.worker_ids.to_pylist()
    report = crowd.import_report
    check_workers(options.workers, names, report.source)
    kept = [n for n, name in enumerate(names) if name in options.workers]
    chosen = crowd.select_workers(np.array(kept, np.intp))
    gone = int((crowd.answers.codes >= 0).sum() - (chosen.answers.codes >= 0).sum())
    notes = report.notes
    if len(kept) < len(names):
        left = len(names) - len(kept)
        notes = (*notes, f"{left} workers left out, because others were named")
    report = replace(
        report, n_labels=report.n_labels - gone, n_placed=report.n_placed - gone, notes=notes
    )
    return replace(chosen, import_report=report)


def check_workers(wanted: Collection[str], there: Collection[str], file: str) -> None:
    """Refuse names that no worker has.

    Raises:
        FormatError: Every such name is listed.
    """
    shown = ", ".join(list(there)[:20])
    faults = [
        Fault(f"there is no worker {name!r}: the workers are {shown}", file=file, kind="worker")
        for name in wanted
        if name not in there
    ]
    if faults:
        raise FormatError(faults)
