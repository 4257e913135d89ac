"""Study selection-ner: F1 by tokens for rules of selection, and the default schedule's promise."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from goldspan.runners import Threads
from studies.selection_ner import lines
from studies.selection_ner.bench import STEPS, Bench
from studies.selection_ner.experiment import Told, carry_out, finished
from studies.selection_ner.lines import RULES, Extent
from studies.selection_ner.pictures import curve_figure
from studies.selection_ner.seconds import seconds_table
from studies.selection_ner.tables import (
    cost_tables,
    errors_table,
    f1_tables,
    gain_table,
    item_table,
    length_table,
    picks_table,
    reach_table,
    target_table,
)
from studies.selection_ner.trial import CROSS
from studies.table import Study, check_repeats

NOTES = (
    (
        "A CRF with default features and penalty is trained on the gold of the chosen sentences, "
        f"each a document of its own, in at most {STEPS} steps of L-BFGS from the CRF of the stop "
        "before. Nothing was tuned on testb."
    ),
    (
        "Standard errors are over the seeds, which decide the random picks and the ties; they say "
        "nothing of other test sentences. Lines are compared seed by seed; p is the paired "
        "t-test's, without correction for the number of comparisons."
    ),
    (
        "coverage-paper has w = 1 and stops when all values are covered; coverage has w = 10. "
        "Before seconds are counted, the pool's attribute values are fitted, which is done once."
    ),
    (
        "Rules that are told what is wrong hear after every stop which of the bought sentences a "
        f"CRF tags otherwise than their gold in {CROSS}-fold cross-validation among them."
    ),
)


def study(
    data: Path,
    *,
    progress: Told | None = None,
    repeats: int | None = None,
    quick: bool = False,
    state: str | Path | None = None,
    so_far: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `conll2003`.
        progress: Told how many stops of all runs are behind.
        repeats: Seeds; 5 by default.
        quick: Whether it is only to be seen that the study runs.
        state: File of finished runs, to resume from.
        so_far: Make the tables of the repeats that are finished, and do no run.
        threads: How many; all cores by default.

    Raises:
        InputError: The data are not there, or `repeats` is no positive number.
    """
    check_repeats(repeats)
    extent = lines.QUICK if quick else lines.FULL
    extent = extent.repeated(repeats or extent.repeats)
    bench = Bench.read(data, extent.test_items)
    kept = None if state is None else Path(state)
    told = []
    if so_far:
        times, note = finished(bench, extent, kept)
        extent = extent.repeated(times)
        told.append(note)
    runs = carry_out(bench, extent, Threads(threads), kept, progress)
    tables = [
        target_table(runs, extent),
        reach_table(runs, extent),
        *f1_tables(runs, extent),
        gain_table(runs, extent),
        errors_table(runs, extent),
        picks_table(runs, extent),
        length_table(runs, extent),
        seconds_table(bench, extent),
        *cost_tables(runs, extent),
        item_table(runs, extent),
    ]
    notes = [*told, *_extent_notes(bench, extent, quick=quick), *NOTES]
    title = "What to label first: selection on CoNLL-2003"
    return Study(title, tables, notes, picture=partial(curve_figure, runs, extent))


def _extent_notes(bench: Bench, extent: Extent, *, quick: bool) -> list[str]:
    """Return how much was done."""
    tests = ", ".join(f"{name} has {crowd.n_items}" for name, crowd in bench.tests.items())
    rules = "; ".join(f"{label}: {rule}" for label, rule in RULES.items() if label != rule)
    rounds = ", ".join(f"{limit:,}" for limit in extent.rounds)
    pool = f"{bench.train.n_items} sentences with {bench.train.n_tokens} tokens"
    notes = [
        f"{extent.repeats} seeds; the pool has {pool}; {tests}.",
        f"{rules}. Rules that ask a model are given a new one after {rounds} tokens.",
    ]
    if quick:
        notes.insert(0, "QUICK: it shows that the study runs, and no result.")
    return notes
