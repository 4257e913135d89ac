"""Study ntoulas-text: section 4.2 of Ntoulas et al., with film sentences in place of tweets."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import aggregate
from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError, MissingExtraError
from goldspan.selection import Features, Pool
from studies.ntoulas.rounds import LOOP_NOTES
from studies.ntoulas.split import Indices, Labels, Split, deal, set_aside
from studies.ntoulas.study import Plan, Told, carry_out, chosen
from studies.ntoulas.trial import EVERYTHING, RANDOM, Rule, Training
from studies.table import Study

FOLDER = "classification/sentiment_polarity"
SPLIT = "train"
"""The part of the texts that the crowd answered; another part has the same ids."""
POSITIVE = "1"
METHOD = "ds"
GOLD_SHARE = 1268 / (3423 + 1268)
RANDOM_SHARE, COVERAGE_SHARE = 1212 / 3423, 1000 / 3423
"""The paper: 3,423 tweets to learn from, of which 1,212 and 1,000 are labelled; 1,268 of gold."""
LEAST_TEXTS = 3
"""Texts of the pool that a word must stand in, so that classifiers have it as a column."""
POINTS = (50, 100, 200, 400, 700, 1000, 1400, 2000, 2800)
ROUNDS = (150, 450, 850)
QUICK_ROUNDS = (100, 150)
QUICK_POINTS = (100, 400)
PAPER = Rule(
    "coverage", "coverage-paper(w=1000)", lambda pool: Features.fit(pool, templates=("lower",))
)
WEIGHTED = Rule("weighted", "coverage")
NOTES = (
    (
        "The paper's tweets are not public: 4,999 sentences on films with about five answers each "
        "stand in for them, and positive opinions for interesting tweets. Of them 1,351 are set "
        "aside as gold, in the paper's proportion, and scored by the truth; 35.4 and 29.2 % of "
        "the others are labelled."
    ),
    (
        "Labels to learn from are ds of the answers to the chosen sentences alone: answers that "
        "were not bought teach nothing about workers. Right labels: their share by ds and, for "
        "comparison, by votes."
    ),
    (
        "Coverage: the most words that no chosen sentence has yet, each once before any twice. "
        "Weighted: goldspan's coverage with its defaults (words, neighbours, shapes and endings; "
        "pairs weigh log df). Every sentence costs the same."
    ),
    (
        f"Classifiers are those of the campaign's toolkit with the defaults of scikit-learn, on "
        f"counts of the words that stand in at least {LEAST_TEXTS} sentences of the pool."
    ),
    "Gold sets of different repeats overlap, so that standard errors are a little too small.",
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
        data: The folder that holds `classification/sentiment_polarity`.
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
    texts = read_texts(data / FOLDER)
    n_pool = texts.crowd.n_items - texts.n_gold
    few, more = round(COVERAGE_SHARE * n_pool), round(RANDOM_SHARE * n_pool)
    everything, random = Training(EVERYTHING, n_pool), Training(RANDOM, few)
    coverage, weighted = Training(PAPER, few), Training(WEIGHTED, few)
    plan = Plan(
        "Ntoulas, Alonso and Kandylas: texts that a crowd labels",
        texts.draw,
        (everything, Training(RANDOM, more), random, coverage, weighted),
        ((coverage, everything), (random, everything), (coverage, random), (weighted, random)),
        (RANDOM, PAPER, WEIGHTED),
        QUICK_POINTS if quick else POINTS,
        (f"{'QUICK: ' if quick else ''}{times} repeats.", *NOTES, *LOOP_NOTES),
        texts.fold,
        ("naive-bayes", "logistic"),
        QUICK_ROUNDS if quick else ROUNDS,
    )
    return carry_out(plan, classifiers, times, progress)


@dataclass(frozen=True, eq=False)
class Texts:
    """Sentences, what a crowd says about them, and the truth.

    Attributes:
        crowd: The answers, with gold.
        texts: The sentences, in the crowd's order.
        counts: SciPy CSR matrix [n_items, n_words], how often every word stands in each.
    """

    crowd: Crowd
    texts: list[str]
    counts: Any

    @property
    def n_gold(self) -> int:
        """Items that are set aside."""
        return round(GOLD_SHARE * self.crowd.n_items)

    @property
    def truth(self) -> Labels:
        """Which items are positive, bool [n_items]."""
        return self._is_positive(self.crowd.gold_tagged.codes)

    def draw(self, seed: int) -> Split:
        """Set a gold set aside."""
        return self._split(*set_aside(self.crowd.n_items, self.n_gold, seed))

    def fold(self, number: int) -> Split:
        """Set a fold of ten aside."""
        return self._split(*deal(self.crowd.n_items, number))

    def _split(self, kept: Indices, gold: Indices) -> Split:
        common = np.asarray((self.counts[kept] > 0).sum(axis=0)).ravel() >= LEAST_TEXTS
        columns = self.counts[:, np.flatnonzero(common)]
        return Split(
            pool=Pool.of([self.texts[n] for n in kept.tolist()]),
            rows=columns[kept],
            gold_rows=columns[gold],
            gold=self.truth[gold],
            buy=lambda items: self._label(kept[items], METHOD),
            describe=lambda items, labels: self._describe(kept[items], labels),
        )

    def _label(self, items: Indices, method: str) -> Labels:
        """Combine the answers to some items, and no others."""
        return self._is_positive(aggregate(self.crowd.select_items(items), method).codes)

    def _is_positive(self, codes: NDArray[np.int16]) -> Labels:
        return np.asarray(codes == self.crowd.tagset.tags.index(POSITIVE))

    def _describe(self, items: Indices, labels: Labels) -> Mapping[str, float]:
        part, truth = self.crowd.select_items(items), self.truth[items]
        words = [len(self.texts[n].split()) for n in items.tolist()]
        votes = self._label(items, "mv-token")
        return {
            "labels": float(len(items)),
            "answers": float(len(part.latest.item)),
            "positive, %": 100 * float(labels.mean()),
            f"right by {METHOD}, %": 100 * float((labels == truth).mean()),
            "right by votes, %": 100 * float((votes == truth).mean()),
            "words per item": float(np.mean(words)),
        }


def read_texts(folder: Path) -> Texts:
    """Read the answers, the truth and the sentences.

    Raises:
        InputError: A file is not there, or a sentence is missing.
        MissingExtraError: scikit-learn is not installed.
    """
    paths = [folder / name for name in ("labels.csv", "truth.csv", "texts.tsv.gz")]
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path} is not there: study ntoulas-text needs it")
    try:
        from sklearn.feature_extraction.text import (  # type: ignore[import-untyped]
            CountVectorizer,
        )
    except ImportError:
        raise MissingExtraError("scikit-learn", "campaign", "a classifier") from None
    crowd = read_crowd(paths[0], gold=paths[1])
    try:
        with gzip.open(paths[2], "rt", encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            known = {row["task"]: row["text"] for row in rows if row["split"] == SPLIT}
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise InputError(f"{paths[2]} is damaged: {error}") from None
    ids = crowd.item_ids.to_pylist()
    lost = [name for name in ids if name not in known]
    if lost:
        raise InputError(f"{paths[2]}: no text of item {lost[0]} in part {SPLIT!r}")
    texts = [known[name] for name in ids]
    return Texts(crowd, texts, CountVectorizer().fit_transform(texts).tocsr())
