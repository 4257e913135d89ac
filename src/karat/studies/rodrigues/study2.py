"""Paper 000, table 2: names, five simulated workers of unequal worth who label everything."""

from __future__ import annotations

from pathlib import Path

from karat.studies.rodrigues.data import read_entities
from karat.studies.rodrigues.experiment import Told
from karat.studies.rodrigues.methods import Claim
from karat.studies.rodrigues.options import Options, finish
from karat.studies.rodrigues.simulated import EVERYBODY, PENALTY, Simulated, read_sets
from karat.studies.rodrigues.tables import worker_table
from karat.studies.table import Study

WORKERS = tuple(f"crf_noise({variance})" for variance in (0.005, 0.05, 0.05, 0.1, 0.1))
BELOW = ("mv-seq", "mv-token", "mv-seg", "crf-conc", "multicrf", "multicrf-max")
CLAIM = Claim("crf-ma (eq. 15)", BELOW)
METHODS = (*BELOW, "crf-ma (eq. 15)", "crf-ma", "bsc-seq", "bsc-seq+crf", "crf-gold")


def study(
    data: Path,
    *,
    progress: Told | None = None,
    methods: tuple[str, ...] = METHODS,
    repeats: int | None = None,
    quick: bool = False,
    sentences: int | None = None,
    state: str | Path | None = None,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `conll2003`.
        progress: Told how many of all runs are over.
        methods: Which methods.
        repeats: How many crowds are drawn; 30 by default.
        quick: Whether it is only to be seen that the study runs.
        sentences: About how many labelled sentences are used; all by default.
        state: File of finished runs, to resume from.
        threads: How many; all cores by default.
    """
    chosen = Options(methods, repeats, quick, sentences, state, threads, progress)
    train, tests = read_sets(data, read_entities, chosen.n_sentences)
    args = (train, tests, methods, chosen.n_repeats, chosen.effort)
    experiment = Simulated("rodrigues-2", *args, WORKERS)
    names = {f"w{n}": f"w{n}, {worker}" for n, worker in enumerate(WORKERS, start=1)}
    return finish(
        "Names, simulated workers, repeated labelling (Rodrigues et al. 2013, table 2)",
        experiment,
        chosen,
        claim=CLAIM,
        notes=(PENALTY, EVERYBODY),
        more=lambda runs: [worker_table(runs, names)],
    )
