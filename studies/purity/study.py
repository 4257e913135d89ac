"""Study purity: every method and `auto` over every crowd, in one table that stays."""

from __future__ import annotations

from pathlib import Path

from goldspan.aggregation import methods as known_methods
from goldspan.errors import InputError
from goldspan.runners import Threads
from studies.purity.crowds import LOOKED_AT, Case, all_cases, quick_cases
from studies.purity.runs import AUTO, Told, Work, carry_out, finished, methods_of
from studies.purity.tables import crowd_tables, mean_tables, seen_table, trouble
from studies.table import Study, check_repeats

REPEATS = 5
NOTES = (
    (
        "Gold is taken away before a method sees a crowd, labels that only the gold has with it, "
        "and the ids of single labels are numbers; all methods run with their defaults."
    ),
    (
        "Score: strict span F1 by conlleval's reading, of single labels accuracy, in per cent. "
        "Relaxed F1 counts the share of a span that is covered (Simpson and Gurevych 2019)."
    ),
    (
        "Over votes: score minus that of the better of the two votes (ties outside, ties inside; "
        "of single labels the vote), the better by its mean over the seeds; worst seed: the least "
        "difference of a seed."
    ),
    (
        "Cross-entropy: mean of -ln P(gold tag) over tokens, nats, probabilities below 1e-12 as "
        "1e-12. ECE: ten bins of equal width over the written spans (over the labels, where they "
        "are single). Brier: mean of (confidence - right)² over the same."
    ),
    (
        "Overruled: per cent of the tokens on which three or more workers all agree that have "
        "another tag. Unsupported: per cent of the spans that no worker gave. Longest: tokens of "
        "the longest span, of the result and of all answers; the largest over the seeds."
    ),
    (
        "Seconds are those of the method, without reading; MB the peak memory that it added "
        "(Linux). Both are of one run among others of the same process: the first of a kind also "
        "compiles kernels that are not cached."
    ),
    (
        "Means and ranks: seeds are averaged first, then the crowds of a table count alike. A mean "
        "is given of methods that ran on all its crowds, ranks are among the methods that ran."
    ),
    (
        "Families: five workers alone and five who share a hidden worker's answers, any two with "
        "probability rho; one of the family: the same five alone, with a single member, which is "
        "what knowing a family of 1 gives. Copies: of the worker with most answers."
    ),
)


def study(
    data: Path,
    *,
    progress: Told | None = None,
    methods: tuple[str, ...] | None = None,
    repeats: int | None = None,
    quick: bool = False,
    state: str | Path | None = None,
    so_far: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `ner_mturk`, `pico`, `btc` and `classification`; what is not
            there is left out.
        progress: Told how many of all runs are over.
        methods: Only these, by their names in the tables; those for labels run on labels.
        repeats: Seeds of subsamples and simulated crowds, 5 by default; small crowds have four
            times as many.
        quick: Whether a few crowds and the fast methods are enough.
        state: File of finished runs, to go on from after a break. It is for one version of
            goldspan: remove it when methods have changed.
        so_far: Make the tables of the crowds on which all methods are finished, and do no run.
        threads: How many; all cores by default.

    Raises:
        InputError: There is none of the data, or `repeats` is no positive number.
        UnknownNameError: A method is not known.
    """
    check_repeats(repeats)
    wished = quick_cases(data) if quick else all_cases(data, repeats=repeats or REPEATS)
    cases = [case for case in wished if case.is_there(data)]
    if all(case.source == "simulated" for case in cases):
        raise InputError(f"{data} has none of the folders that study purity reads: ner_mturk, "
                         "pico, btc, classification")  # fmt: skip
    work: Work = [(case, methods_of(case, methods, quick=quick)) for case in cases]
    kept = None if state is None else Path(state)
    told = []
    if so_far:
        work, note = finished(data, work, kept)
        told.append(note)
    runs = carry_out(data, work, Threads(threads), kept, progress)
    tables = [*mean_tables(work, runs), seen_table(), *crowd_tables(work, runs)]
    notes = [*told, *_extent(wished, cases, quick=quick), *trouble(work, runs), *NOTES]
    return Study("All methods over all crowds", tables, notes)


def _extent(wished: list[Case], cases: list[Case], *, quick: bool) -> list[str]:
    """Return what was left out."""
    notes = []
    if quick:
        notes.append("QUICK: a few crowds and the fast methods; make no decision by it.")
    absent = sorted({case.source for case in wished} - {case.source for case in cases})
    if absent:
        notes.append(f"Left out, since they are not in the data folder: {', '.join(absent)}.")
    if AUTO not in known_methods():
        notes.append("Left out: auto, which this version does not have.")
    return notes


__all__ = ["LOOKED_AT", "study"]
