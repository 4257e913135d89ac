"""Paper 000, table 3: names, five simulated workers, each of whom labels a fifth."""

from __future__ import annotations

from pathlib import Path

from karat.studies.rodrigues.data import read_entities
from karat.studies.rodrigues.experiment import Told
from karat.studies.rodrigues.methods import Claim
from karat.studies.rodrigues.options import Options, finish
from karat.studies.rodrigues.simulated import PENALTY, Simulated, read_sets
from karat.studies.rodrigues.study2 import WORKERS
from karat.studies.rodrigues.tables import worker_table
from karat.studies.table import Study

CLAIM = Claim("crf-ma (c2 = 0.5)", ("crf-conc", "crf-conc (c2 = 2.5)"))
METHODS = (*CLAIM.below, "crf-ma", CLAIM.method, "bsc-seq", "bsc-seq+crf", "crf-gold")
BY_HEART = (
    "In crf-ma the weights of the workers sum up to 1, so that each of these items, which has one "
    "answer, counts about a fifth of what it counts in crf-conc: c2 = 0.5 there is c2 = 2.5 here. "
    "Both methods are shown under their defaults and under this penalty, which is stronger. "
    "Under a weak one the CRF learns every worker's labels by heart – no other answer to the item "
    "speaks against them –, finds all workers nearly as good (see their table), and crf-ma "
    "becomes crf-conc."
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
    train, tests = read_sets(data, read_entities, chosen.n_sentences)
    args = (train, tests, methods, chosen.n_repeats, chosen.effort)
    experiment = Simulated("rodrigues-3", *args, WORKERS, is_repeated=False)
    names = {f"w{n}": f"w{n}, {worker}" for n, worker in enumerate(WORKERS, start=1)}
    return finish(
        "Names, simulated workers, no repeated labelling (Rodrigues et al. 2013, table 3)",
        experiment,
        chosen,
        claim=CLAIM,
        notes=(PENALTY, BY_HEART),
        more=lambda runs: [worker_table(runs, names)],
    )
