"""Study purity: every method and `auto` over every crowd, in one table that stays."""

from __future__ import annotations

from pathlib import Path

from goldspan.errors import InputError, UnknownNameError
from goldspan.runners import Threads
from studies.purity.crowds import LOOKED_AT, SIMULATED, Case, all_cases, quick_cases
from studies.purity.runs import Told, Work, carry_out, finished, methods_of
from studies.purity.tables import all_tables, trouble
from studies.registry import PARTS
from studies.table import Study, check_repeats

REPEATS = 5
NOTES = (
    (
        "Gold is taken away before a method sees a crowd, labels that only the gold has with it, "
        "and the ids of single labels are numbers; all methods run with their defaults, auto with "
        "the random states 0, 1, …, fixed methods once."
    ),
    (
        "Score: strict span F1 by conlleval's reading, of single labels accuracy, in per cent, "
        "mean of the seeds; of crowd_6056 the test half. Spread: most minus least over the first "
        "four seeds. ECE: ten bins of equal width over the written spans."
    ),
    (
        "Regret: the score of the crowd's best method, fixed or auto, minus this one's. Means: the "
        "crowds of a source first, then the sources; of labels the sets. Below the better vote (of "
        "the two tie rules): crowds of at least 150 items."
    ),
    (
        "Seconds are those of the method, without reading: of one thread beside another run, and "
        "in the table of time of two threads alone. MB: the peak memory that it added (Linux)."
    ),
    (
        "Families: five workers alone and three or five who share a hidden one's answers, any two "
        "with probability rho; independent: workers to whom the same labels are hard. The model is "
        "a CRF that learned from 200 sentences of other articles; twice: the same column again."
    ),
)


def study(
    data: Path,
    *,
    progress: Told | None = None,
    methods: tuple[str, ...] | None = None,
    parts: tuple[str, ...] | None = None,
    repeats: int | None = None,
    quick: bool = False,
    state: str | Path | None = None,
    so_far: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder of the crowds (`SOURCES`) and of `classification`; what is not there is
            left out.
        progress: Told how many of all runs are over.
        methods: Only these, by their names in the tables; those for labels run on labels.
        parts: Only these of `PARTS`.
        repeats: Seeds of `auto`, of draws and of simulated crowds, 5 by default; small crowds have
            four times as many.
        quick: Whether a few crowds and the fast methods are enough.
        state: File of finished runs, to go on from after a break. It is for one version of
            goldspan: remove it when methods have changed.
        so_far: Make the tables of the crowds on which all methods are finished, and do no run.
        threads: Runs side by side; as many as cores by default.

    Raises:
        InputError: There is none of the data, or `repeats` is no positive number.
        UnknownNameError: A method or a part is not known.
    """
    check_repeats(repeats)
    for part in parts or ():
        if part not in PARTS:
            raise UnknownNameError("part", part, PARTS)
    wished = quick_cases(data) if quick else all_cases(data, repeats=repeats or REPEATS)
    wished = [case for case in wished if case.part in (parts or PARTS)]
    cases = [case for case in wished if case.is_there(data)]
    if not any((data / name).is_dir() for name in LOOKED_AT):
        raise InputError(
            f"{data} has none of the folders that study purity reads: "
            f"{', '.join(name for name in LOOKED_AT if name != SIMULATED)}"
        )
    chosen = [(case, methods_of(case, methods, quick=quick)) for case in cases]
    work: Work = [(case, names) for case, names in chosen if names]
    kept = None if state is None else Path(state)
    told = []
    if so_far:
        work, note = finished(data, work, kept)
        told.append(note)
    runs = carry_out(data, work, Threads(threads).n_threads, kept, progress)
    notes = [*told, *_extent(wished, cases, quick=quick), *trouble(work, runs), *NOTES]
    return Study("All methods over all crowds", all_tables(work, runs), notes)


def _extent(wished: list[Case], cases: list[Case], *, quick: bool) -> list[str]:
    """Return what was left out."""
    notes = []
    if quick:
        notes.append("QUICK: a few crowds and the fast methods; make no decision by it.")
    absent = {case.source for case in wished} - {case.source for case in cases}
    absent |= {case.needs for case in wished if case.needs and case not in cases}
    if absent:
        notes.append(
            f"Left out, since they are not in the data folder: {', '.join(sorted(absent))}."
        )
    return notes


__all__ = ["LOOKED_AT", "study"]
