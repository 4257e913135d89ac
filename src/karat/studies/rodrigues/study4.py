"""Paper 000, table 4: noun phrases, five workers who flip labels, one worse than chance."""

from __future__ import annotations

from pathlib import Path

from karat.studies.rodrigues.data import read_phrases
from karat.studies.rodrigues.experiment import Told
from karat.studies.rodrigues.methods import Claim
from karat.studies.rodrigues.options import Options, finish
from karat.studies.rodrigues.simulated import EVERYBODY, Simulated, read_sets
from karat.studies.rodrigues.tables import worker_table
from karat.studies.table import Study

WORKERS = tuple(f"flip({p}, labels=used)" for p in (0.01, 0.1, 0.3, 0.5, 0.7))
CLAIM = Claim("crf-ma (eq. 15)", ("mv-seq", "mv-token", "crf-conc", "multicrf", "multicrf-max"))
METHODS = (*CLAIM.below, "crf-ma (eq. 15)", "crf-ma", "bsc-seq", "bsc-seq+crf", "crf-gold")
NOTES = (
    EVERYBODY,
    (
        "A token is in or out of a noun phrase (I or O): phrases that touch are one. With two "
        "labels mv-seg is mv-token, as the paper says, and is left out."
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
    train, tests = read_sets(data, read_phrases, chosen.n_sentences)
    args = (train, tests, methods, chosen.n_repeats, chosen.effort)
    experiment = Simulated("rodrigues-4", *args, WORKERS)
    names = {f"w{n}": f"w{n}, {worker}" for n, worker in enumerate(WORKERS, start=1)}
    return finish(
        "Noun phrases, simulated workers, repeated labelling (Rodrigues et al. 2013, table 4)",
        experiment,
        chosen,
        claim=CLAIM,
        notes=NOTES,
        more=lambda runs: [worker_table(runs, names)],
    )
