"""Rodrigues et al. 2013, table 6: the real crowd, one worker per article."""

from __future__ import annotations

from pathlib import Path

from studies.rodrigues.experiment import Told
from studies.rodrigues.methods import Claim
from studies.rodrigues.options import Options, finish
from studies.rodrigues.real import OnePerArticle, read_crowd_and_tests
from studies.rodrigues.tables import error_table
from studies.table import Study

CLAIM = Claim("crf-ma", ("crf-conc",))
METHODS = (*CLAIM.below, "crf-ma", "hmm-ma", "bsc-seq", "bsc-seq+crf", "crf-gold")
NOTES = (
    (
        "A worker is drawn from those who labelled at least a sentence of the article. Sentences "
        "that this worker's answer lacks in the crowd's file are neither learned nor scored."
    ),
)


def study(
    data: Path,
    *,
    progress: Told | None = None,
    methods: tuple[str, ...] = METHODS,
    repeats: int | None = None,
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
        repeats: How many crowds are drawn; 30 by default.
        quick: Whether it is only to be seen that the study runs.
        sentences: About how many labelled sentences are used; all by default.
        state: File of finished runs, to resume from.
        so_far: Make the tables of the runs that are finished, and do none.
        threads: How many; all cores by default.
    """
    chosen = Options(methods, repeats, quick, sentences, state, so_far, threads, progress)
    source, tests = read_crowd_and_tests(data, chosen.n_sentences)
    args = (source, tests, methods, chosen.n_repeats, chosen.effort)
    return finish(
        "The real crowd, one answer per article (Rodrigues et al. 2013, table 6)",
        OnePerArticle("rodrigues-6", *args),
        chosen,
        claim=CLAIM,
        notes=NOTES,
        more=lambda runs: [error_table(runs)],
    )
