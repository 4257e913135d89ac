"""Study ntoulas-spambase: section 4.1 of Ntoulas et al. on the same mails, beside random."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldspan.errors import InputError
from goldspan.selection import Features, Pool
from studies.ntoulas.rounds import LOOP_NOTES
from studies.ntoulas.split import Indices, Labels, Split, deal, set_aside
from studies.ntoulas.study import Plan, Told, carry_out, chosen
from studies.ntoulas.trial import EVERYTHING, RANDOM, Rule, Training
from studies.table import Study

FILE = "spambase/spambase.csv.gz"
TARGET = "spam"
N_GOLD, N_RANDOM, N_COVERAGE = 900, 912, 850
"""The paper's numbers, of 4,601 mails."""
POINTS = (50, 100, 200, 300, 450, 650, 850, 1100, 1600, 2400)
ROUNDS = (150, 450, 850)
QUICK_ROUNDS = (100, 150)
QUICK_POINTS = (100, 300, 850)


def _tens(pool: Pool) -> Features:
    return Features.fit(pool, numeric="nearest(10)")


PAPER = Rule("coverage", "coverage-paper(w=1000)", _tens)
REPEATED = Rule("coverage, duplicates kept", "coverage-paper(w=1000, duplicates=True)", _tens)
WEIGHTED = Rule("weighted, tens", "coverage(w=1000)", _tens)
QUANTILES = Rule("weighted, quantiles", "coverage(w=1000)")
NOTES = (
    (
        "A repeat sets 900 mails of 4,601 aside as gold; what is bought are true labels of the "
        "others. Positive is spam. Gold sets of different repeats overlap, so that standard errors "
        "are a little too small."
    ),
    (
        "Coverage: the most new attribute–value pairs, numbers to the nearest tens, level by level "
        "(w = 1000) since everything is covered once after about 250 mails; of mails with the same "
        "pairs one is picked, unless duplicates are kept, of which the paper says nothing. "
        "Weighted: goldspan's coverage (pairs weigh log df), by tens or by "
        "tenths of the pool (goldspan's default for numbers)."
    ),
    (
        "Classifiers are those of the campaign's toolkit with the defaults of scikit-learn; "
        "logistic regression, SVM (linear) and neighbours on standardised columns, the others on "
        'columns as they are. gaussian-nb is the "Naive Bayes" that we compare with the paper.'
    ),
)


def study(
    data: Path,
    *,
    progress: Told | None = None,
    methods: tuple[str, ...] | None = None,
    repeats: int | None = None,
    quick: bool = False,
    threads: int | None = None,  # noqa: ARG001 - liblinear has one generator for all threads
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `spambase`.
        progress: Told how many repeats are over.
        methods: Which classifiers; all of the toolkit by default.
        repeats: How often a gold set is drawn; 10 by default.
        quick: Whether it is only to be seen that the study runs.
        threads: Of no use here.

    Raises:
        InputError: The data are not there, or `repeats` is no positive number.
        UnknownNameError: There is no such classifier.
    """
    classifiers, times = chosen(methods, repeats, quick=quick)
    mails = read_mails(data / FILE)
    n_pool = len(mails.is_spam) - N_GOLD
    everything, random = Training(EVERYTHING, n_pool), Training(RANDOM, N_COVERAGE)
    coverage, quantiles = Training(PAPER, N_COVERAGE), Training(QUANTILES, N_COVERAGE)
    others = (Training(rule, N_COVERAGE) for rule in (REPEATED, WEIGHTED))
    plan = Plan(
        "Ntoulas, Alonso and Kandylas: spam from a fifth of the labels",
        mails.draw,
        (everything, Training(RANDOM, N_RANDOM), random, coverage, *others, quantiles),
        ((coverage, everything), (random, everything), (coverage, random), (quantiles, random)),
        (RANDOM, PAPER, QUANTILES),
        QUICK_POINTS if quick else POINTS,
        (f"{'QUICK: ' if quick else ''}{times} repeats.", *NOTES, *LOOP_NOTES),
        mails.fold,
        ("gaussian-nb", "logistic"),
        QUICK_ROUNDS if quick else ROUNDS,
    )
    return carry_out(plan, classifiers, times, progress)


@dataclass(frozen=True, eq=False)
class Mails:
    """The data set.

    Attributes:
        rows: float64 [n_mails, n_columns].
        is_spam: bool [n_mails].
    """

    rows: NDArray[np.float64]
    is_spam: Labels

    def draw(self, seed: int) -> Split:
        """Set a gold set aside."""
        return self._split(*set_aside(len(self.rows), N_GOLD, seed))

    def fold(self, number: int) -> Split:
        """Set a fold of ten aside."""
        return self._split(*deal(len(self.rows), number))

    def _split(self, kept: Indices, gold: Indices) -> Split:
        labels = self.is_spam[kept]
        return Split(
            pool=Pool.of(self.rows[kept]),
            rows=self.rows[kept],
            gold_rows=self.rows[gold],
            gold=self.is_spam[gold],
            buy=lambda items: np.asarray(labels[items]),
            describe=_describe,
        )


def read_mails(path: Path) -> Mails:
    """Read the mails.

    Raises:
        InputError: The file is not there, or is another.
    """
    if not path.is_file():
        raise InputError(f"{path} is not there: study ntoulas-spambase needs it")
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            heads, *rows = csv.reader(file)
        cells = np.array(rows, np.float64)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    if heads[-1:] != [TARGET]:
        raise InputError(f"{path}: the last column must be {TARGET!r}")
    if len(cells) <= N_GOLD + N_RANDOM:
        raise InputError(f"{path}: {len(cells)} mails are too few: {N_GOLD} are set aside")
    return Mails(cells[:, :-1], cells[:, -1] > 0)


def _describe(items: Indices, labels: Labels) -> Mapping[str, float]:
    return {"labels": float(len(items)), "spam, %": 100 * float(labels.mean())}
