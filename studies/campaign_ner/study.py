"""A campaign on a real crowd's answers: how much of the money the adaptive loop saves.

The NER crowd of Rodrigues et al. (5,985 sentences, 27,990 answers) is replayed: an answer can be
bought if a worker really gave it. Fixed redundancy and random answers stand beside campaigns of
`goldspan run` that choose items and workers by expected gain per price. `auto` makes the labels of
all of them, also of sentences that nobody was asked about; gold is only scored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError
from goldspan.runners import Threads
from studies.campaign_ner.experiment import carry_out, finished
from studies.campaign_ner.picture import draw
from studies.campaign_ner.play import LABELS, PER_ANSWER, PER_TOKEN, Bench
from studies.campaign_ner.selecting import Size, selection_table, selections
from studies.campaign_ner.tables import answer_table, means, point_table
from studies.campaign_ner.ways import ROUNDS, ways
from studies.table import Study, check_repeats

REPEATS = 5
QUICK_SENTENCES, QUICK_METHOD = 300, "bsc-seq"
NOTES = (
    (
        f"An answer costs {PER_ANSWER} and {PER_TOKEN} per token. Who is asked about a sentence is "
        "one of those who really labelled it; fixed redundancy and the first answers take them in "
        "a random order."
    ),
    (
        f'The campaign is one of `goldspan run` with redundancy.by = "gain": two answers about a '
        f"random quarter of the sentences, then {ROUNDS} rounds that buy, about any sentence and "
        "of any worker who really answered it, what promises most for its price."
    ),
    f"All labels are made by {LABELS}, as it is by default, from the answers bought alone.",
    "Span F1 by conlleval's reading over all sentences, answered or not. Gold decides nothing.",
    (
        "Told what the model gets wrong: campaigns of `goldspan run` on every second article "
        f"({Size.sentences} sentences at most) of {Size.batch} sentences a round, two or three "
        f"answers each, until {Size.money} are spent. bsc-seq makes the labels, a CRF of at most "
        f"{Size.steps} steps learns from them and is scored on as many sentences of the other "
        "articles. Wrong are those items that it labels otherwise than bsc-seq in 4-fold "
        "cross-validation."
    ),
)


def study(
    data: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    repeats: int | None = None,
    quick: bool = False,
    state: str | Path | None = None,
    so_far: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the tables and the picture.

    Args:
        data: The folder that holds `ner_mturk`.
        progress: Told how many of all points are measured.
        repeats: Seeds; 5 by default, one where it must be quick.
        quick: Whether it is only to be seen that the study runs.
        state: File of finished runs, or None.
        so_far: Make the tables of the repeats that are finished, and do no run.
        threads: How many; None is all cores.

    Raises:
        InputError: The data are not there, or `repeats` is no whole number of at least 1.
    """
    check_repeats(repeats)
    times = repeats or (1 if quick else REPEATS)
    crowd = _crowd(data, quick=quick)
    bench = Bench(crowd, QUICK_METHOD if quick else LABELS, Threads(threads))
    kept = None if state is None else Path(state)
    spent, campaigns = ways(quick=quick), selections(quick=quick)
    extent = [f"{crowd.n_items} sentences, {len(crowd.latest)} answers."]
    if so_far:
        times, told = finished(bench, [*spent, *campaigns], times, kept)
        extent.insert(0, told)
    found = means(carry_out(bench, spent, times, kept, progress))
    runs = carry_out(bench, campaigns, times, kept)
    notes = [*extent, *NOTES]
    if quick:
        notes.insert(0, "QUICK: part of the sentences. It shows that the study runs, no result.")
    tables = [answer_table(found), point_table(found), selection_table(runs, campaigns)]
    return Study("A campaign on a real crowd", tables, notes, partial(draw, found))


def _crowd(data: Path, *, quick: bool) -> Crowd:
    file = data / "ner_mturk" / "crowd.tsv.gz"
    if not file.is_file():
        raise InputError(f"{file} is not there: study campaign-ner needs the NER crowd")
    crowd = read_crowd(file)
    return crowd.select_items(np.arange(crowd.n_items) < QUICK_SENTENCES) if quick else crowd
