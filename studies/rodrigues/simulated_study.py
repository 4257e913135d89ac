"""What studies 2 to 4 are: they differ in their workers, their labels and the paper's claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from goldspan.crowd import Crowd
from studies.rodrigues.experiment import Told
from studies.rodrigues.methods import Claim
from studies.rodrigues.options import Options, finish
from studies.rodrigues.simulated import Simulated, read_sets
from studies.rodrigues.tables import worker_table
from studies.table import Study


@dataclass(frozen=True)
class SimulatedStudy:
    """A study with simulated workers; it is called as a function.

    Attributes:
        name: Its name.
        title: Its title.
        read: Reads a part of CoNLL-2003 with the labels that are learned.
        workers: The workers, in the words of `simulate_crowd`.
        claim: What the paper says.
        methods: The methods that run unless others are named.
        notes: What to know of it.
        is_repeated: Whether everybody labels everything; if not, every worker labels an equal part.
    """

    name: str
    title: str
    read: Callable[[Path, str], Crowd]
    workers: tuple[str, ...]
    claim: Claim
    methods: tuple[str, ...]
    notes: tuple[str, ...]
    is_repeated: bool = True

    def __call__(
        self,
        data: Path,
        *,
        progress: Told | None = None,
        methods: tuple[str, ...] | None = None,
        repeats: int | None = None,
        quick: bool = False,
        sentences: int | None = None,
        state: str | Path | None = None,
        so_far: bool = False,
        threads: int | None = None,
    ) -> Study:
        """Make the tables.

        Args:
            data: The folder that holds `conll2003`.
            progress: Told how many of all runs are over.
            methods: Which methods; the study's own by default.
            repeats: How many crowds are drawn; 30 by default.
            quick: Whether it is only to be seen that the study runs.
            sentences: About how many labelled sentences are used; all by default.
            state: File of finished runs, to resume from.
            so_far: Make the tables of the runs that are finished, and do none.
            threads: How many; all cores by default.
        """
        every = self.methods if methods is None else methods
        chosen = Options(every, repeats, quick, sentences, state, so_far, threads, progress)
        train, tests = read_sets(data, self.read, chosen.n_sentences)
        args = (train, tests, every, chosen.n_repeats, chosen.effort)
        experiment = Simulated(self.name, *args, self.workers, is_repeated=self.is_repeated)
        names = {f"w{n}": f"w{n}, {worker}" for n, worker in enumerate(self.workers, start=1)}
        return finish(
            self.title,
            experiment,
            chosen,
            claim=self.claim,
            notes=self.notes,
            more=lambda runs: [worker_table(runs, names)],
        )
