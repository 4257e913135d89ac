"""How long rules take to choose a batch: plain calls, as a user makes them."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from goldspan.selection import Pool, Schedule
from goldspan.tagger import CRF
from studies.selection_ner.bench import STEPS, Bench
from studies.selection_ner.lines import RANDOM, RULES, Extent, Line
from studies.table import Table


def seconds_table(bench: Bench, extent: Extent) -> Table:
    """Measure a first batch, and one after some tokens were labelled, of this thread's own time."""
    size, known = extent.budgets[0], extent.early[-1]
    pool = Pool.of(bench.train)
    bought = Schedule(text=RANDOM).select(pool, budget=f"{known}tokens").item
    words = [bench.train.tokens_list[n] for n in bought.tolist()]
    tagger = CRF(max_iter=STEPS).fit(words, [bench.tags[n] for n in bought.tolist()])
    rows = []
    for label, rule in RULES.items():
        model = tagger if Line(label, rule, ()).asks else None
        cells = []
        for labelled, asked in ((bought[:0], None), (bought, model)):
            cells.append(_seconds(bench, pool, rule, labelled, asked, size))
        rows.append((label, *cells))
    heads = ("rule", "first batch", f"with {known:,} tokens labelled")
    caption = f"Seconds to choose {size:,} tokens, once, on one thread"
    return Table(caption, heads, tuple(rows))


def _seconds(
    bench: Bench, pool: Pool, rule: str, labelled: NDArray[np.int64], model: CRF | None, size: int
) -> float:
    begin = time.thread_time()
    Schedule(text=rule).select(
        pool, labelled=labelled, model=model, budget=f"{size}tokens", features=bench.features
    )
    return time.thread_time() - begin
