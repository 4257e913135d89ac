"""Rodrigues et al. 2013, table 5: the real crowd."""

from __future__ import annotations

from pathlib import Path

from studies.rodrigues.experiment import Told
from studies.rodrigues.methods import OWN, Claim
from studies.rodrigues.options import Options, finish
from studies.rodrigues.real import Everybody, read_crowd_and_tests
from studies.rodrigues.study2 import BELOW, BERNOULLI, FORMS, OTHER_FORMS, TIES
from studies.rodrigues.tables import error_table
from studies.table import Study

CLAIM = Claim("crf-ma", BELOW)
LETTER = ("crf-ma (eq. 12)", "crf-ma (eq. 15)", *BERNOULLI, "hmm-ma")
METHODS = (*BELOW, *OTHER_FORMS, "ds", "crf-ma", *LETTER, "bsc-seq", "bsc-seq+crf", "crf-gold")
NOTES = (
    FORMS,
    TIES,
    (
        "Workers labelled different articles, so that eq. 12 and eq. 15 differ; crf-ma compares "
        "them by their mean per label."
    ),
)
PUBLISHED = {(OWN, "crf-ma"): 74.4}
"""The cell of the table that is known; its 62.6 on unseen text is not known to be of testb."""
ERROR = {"crf-ma": 8.61}
"""Root mean square error of the workers' F1, in per cent (section 4.2)."""


def study(
    data: Path,
    *,
    progress: Told | None = None,
    methods: tuple[str, ...] = METHODS,
    quick: bool = False,
    sentences: int | None = None,
    state: str | Path | None = None,
    so_far: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `ner_mturk` and `conll2003`.
        progress: Told how many of all runs are over.
        methods: Which methods.
        quick: Whether it is only to be seen that the study runs.
        sentences: About how many labelled sentences are used; all by default.
        state: File of finished runs, to resume from.
        so_far: Make the tables of the runs that are finished, and do none.
        threads: How many; all cores by default.
    """
    chosen = Options(methods, 1, quick, sentences, state, so_far, threads, progress)
    source, tests = read_crowd_and_tests(data, chosen.n_sentences)
    experiment = Everybody("rodrigues-5", source, tests, methods, 1, chosen.effort)
    return finish(
        "The real crowd (Rodrigues et al. 2013, table 5)",
        experiment,
        chosen,
        claim=CLAIM,
        notes=NOTES,
        more=lambda runs: [error_table(runs, None if chosen.is_partial else ERROR)],
        published=PUBLISHED,
        scattered="crf-ma",
    )
