"""The options that studies 2 to 6 share, and the way from an experiment to a `Study`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from goldspan.errors import InputError
from goldspan.runners import Threads
from studies.rodrigues.experiment import Experiment, Told, carry_out, finished
from studies.rodrigues.methods import FULL, QUICK, Claim, Effort, check_methods
from studies.rodrigues.pictures import score_figure
from studies.rodrigues.tables import Runs, order_notes, score_tables, seconds_table
from studies.table import Study, Table

REPEATS, QUICK_REPEATS = 30, 3
QUICK_SENTENCES = 500
ASSUMED = (
    (
        "Assumed where our copy of the paper has lost its tables: the features (its Table 1) are "
        'our set "rodrigues", the penalty of the weights is our default; the votes and others '
        "without a tagger are followed by a CRF trained on their labels, and their own labels are "
        "scored on the labelled items; the labels of votes are well-formed, by our default. All F1 "
        "is of exact spans (conlleval)."
    ),
    (
        "crf-gold, the upper bound, is one run: it does not depend on the workers. bsc-seq and "
        "bsc-seq+crf are ours and not in the paper."
    ),
)


@dataclass(frozen=True)
class Options:
    """How much is done, and where.

    Attributes:
        methods: Labels of the methods.
        repeats: How many crowds are drawn; None is 30, and 3 where it must be quick.
        quick: Whether it is only to be seen that the study runs.
        sentences: About how many sentences of the labelled items are used; None is all of them,
            and 500 where it must be quick.
        state: File of finished runs, or None.
        so_far: Make the tables of the runs that are finished, and do none.
        threads: How many; None is all cores.
        progress: Told how many of all runs are over.

    Raises:
        InputError: A number is too small.
        UnknownNameError: There is no such method.
    """

    methods: tuple[str, ...]
    repeats: int | None = None
    quick: bool = False
    sentences: int | None = None
    state: str | Path | None = None
    so_far: bool = False
    threads: int | None = None
    progress: Told | None = None

    def __post_init__(self) -> None:
        check_methods(self.methods)
        for name in ("repeats", "sentences"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")

    @property
    def n_repeats(self) -> int:
        """How many crowds are drawn."""
        return self.repeats or (QUICK_REPEATS if self.quick else REPEATS)

    @property
    def n_sentences(self) -> int | None:
        """About how many sentences are used, None for all."""
        return self.sentences or (QUICK_SENTENCES if self.quick else None)

    @property
    def is_partial(self) -> bool:
        """Whether a part of the data is used: nothing published stands beside its results."""
        return self.n_sentences is not None

    @property
    def effort(self) -> Effort:
        """How long the methods may take."""
        return QUICK if self.quick else FULL


def finish(
    title: str,
    experiment: Experiment,
    options: Options,
    *,
    claim: Claim,
    notes: tuple[str, ...] = (),
    more: Callable[[Runs], list[Table]] | None = None,
    published: dict[tuple[str, str], float] | None = None,
    scattered: str | None = None,
) -> Study:
    """Do the runs and make the tables.

    Args:
        title: Of the study.
        experiment: What is done.
        options: How.
        claim: What the paper says.
        notes: What to know of this study.
        more: Makes tables beside those of scores.
        published: F1 that the paper gives, by items and method; shown if all data are used.
        scattered: The method whose estimates of the workers are drawn.
    """
    runner = Threads(options.threads)
    state = None if options.state is None else Path(options.state)
    if options.so_far:
        runs = finished(experiment, state)
    else:
        runs = carry_out(experiment, runner, state, options.progress)
    tables = score_tables(runs, claim, None if options.is_partial else published)
    tables += [*(more(runs) if more else []), seconds_table(runs)]
    verdicts = [] if options.quick else order_notes(runs, claim)
    return Study(
        title,
        tables,
        (*_extent(experiment, options, runs), *verdicts, *notes, *ASSUMED),
        picture=partial(score_figure, runs, claim.method, scattered),
    )


def _extent(experiment: Experiment, options: Options, runs: Runs) -> list[str]:
    """Return how much was done."""
    source = experiment.source
    notes = [
        f"{source.n_items} sentences with {source.n_tokens} tokens were labelled; "
        + ", ".join(f"{name} has {crowd.n_items}" for name, crowd in experiment.tests.items())
        + "."
    ]
    if options.so_far:
        keys = experiment.keys
        n_over = sum(key in runs for key in keys)
        notes.insert(0, f"SO FAR: {n_over} of {len(keys)} runs are finished.")
    if options.quick:
        notes.insert(
            0,
            "QUICK: part of the sentences, few repeats, training that stops early. It shows that "
            "the study runs, and no result.",
        )
    return notes
