"""The paper's loop in rounds: pick, label, train, evaluate, and pick by what the model gets wrong.

The wrong items (D_e of the paper, section 3) are found in every round by cross-validation among the
labels that were bought; gold is scored alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from goldspan.selection import Features
from goldspan.selection.schedule import Schedule
from studies.ntoulas.learners import learn_and_label, learn_and_weigh
from studies.ntoulas.scores import Scores, mean_and_error
from studies.ntoulas.split import Indices, Labels, Split
from studies.rodrigues.paired import holm, paired_p
from studies.table import Table

BATCH = 50
"""Labels of a round."""
CROSS = 5
"""Folds in which the wrong items are found, as in a campaign."""


@dataclass(frozen=True)
class Way:
    """A rule that picks round by round.

    Attributes:
        name: In the tables.
        written: A rule or a schedule, as `goldspan select --by` reads it.
        errors: Whether it is told which items the model gets wrong.
        beside: The name of the way that it is compared with; "" for none.
    """

    name: str
    written: str
    errors: bool = False
    beside: str = ""


START = "coverage(w=1000)"
UNSURE = "least-confidence"
WAYS = (
    Way("random", "random"),
    Way("coverage", START, beside="random"),
    Way("coverage, errors weigh", START, errors=True, beside="coverage"),
    Way("coverage near errors", "coverage(w=1000, errors_as=near)", errors=True, beside="coverage"),
    Way(
        "half covers the errors",
        f"{START}, then {START}, 50% coverage(w=1000, errors_as=target)",
        errors=True,
        beside="coverage",
    ),
    Way("like the errors", f"{START}, then near-errors", errors=True, beside="coverage"),
    Way("unsure", f"{START}, then {UNSURE}", beside="random"),
    Way("unsure × errors", f"{START}, then {UNSURE}", errors=True, beside="unsure"),
    Way("unsure × errors⁴", f"{START}, then {UNSURE}(errors=4)", errors=True, beside="unsure"),
)
"""What is compared; the first labels are chosen by coverage, but for random."""
LOOP_NOTES = (
    (
        f"The loop in rounds: {BATCH} labels at a time; the first {BATCH} by weighted coverage, "
        f"but for random. What the model gets wrong is found by {CROSS}-fold cross-validation "
        "among the labels that were bought, anew in every round; gold is scored alone. Unsure: the "
        "label is least probable. p: paired t-test over the repeats; p Holm: corrected for all "
        "comparisons of the ways that are told what the model gets wrong, and apart from these for "
        "all others."
    ),
    (
        "In the 10-fold cross-validation every item is in the gold of one fold, and rules choose "
        "among the other nine tenths; the paper does not say how its folds and its gold set of 900 "
        "go together."
    ),
)


def play(
    split: Split,
    way: Way,
    classifier: str,
    points: Sequence[int],
    seed: int,
    features: Features,
) -> dict[int, Scores]:
    """Let a way spend labels round by round.

    Args:
        split: The pool and the gold set.
        way: What picks.
        classifier: In the campaign's toolkit, with probabilities.
        points: Numbers of labels after which it is scored, rising.
        seed: Of everything random.
        features: The attribute–value pairs, fitted on the pool.

    Returns:
        The scores by number of labels.
    """
    items, found = np.zeros(0, np.int64), dict[int, Scores]()
    labels, probs, wrong = np.zeros(0, np.bool_), None, dict[str, float]()
    for number, n in enumerate(_sizes(points)):
        batch = Schedule(text=way.written, round=number).select(
            split.pool, labelled=items, errors=wrong if way.errors else None, model=probs,
            n=n - len(items), features=features, random_state=seed,
        ).item  # fmt: skip
        items = np.concatenate([items, batch])
        labels = split.buy(items)  # all of them again: a crowd's labels change with its answers
        rows = split.rows[items]
        if n in points:
            guessed = learn_and_label(classifier, rows, labels, split.gold_rows, seed)
            found[n] = Scores.of(split.gold, guessed)
        if UNSURE in way.written:
            probs = learn_and_weigh(classifier, rows, labels, split.rows, seed)
        if way.errors:
            wrong = errors_of(split, classifier, items, labels, seed)
    return found


def errors_of(
    split: Split, classifier: str, items: Indices, labels: Labels, seed: int
) -> dict[str, float]:
    """Find the items that a classifier labels otherwise when it has not learned from them."""
    order = np.random.default_rng(seed).permutation(len(items))
    found: dict[str, float] = {}
    for fold in range(CROSS):
        out = np.zeros(len(items), np.bool_)
        out[order[fold::CROSS]] = True
        rows, others = split.rows[items[~out]], split.rows[items[out]]
        guessed = learn_and_label(classifier, rows, labels[~out], others, seed)
        names = split.pool.item_ids.take(items[out]).to_pylist()
        found |= dict(zip(names, (guessed != labels[out]).astype(float).tolist(), strict=True))
    return found


Played = dict[tuple[str, str], list[dict[int, Scores]]]
"""By classifier and name of the way the scores of every repeat, by number of labels."""


def play_all(
    found: Played, split: Split, classifiers: Sequence[str], points: Sequence[int], seed: int
) -> None:
    """Let every way spend labels once, and add what came of it to what was found before."""
    features = Features.fit(split.pool)
    for classifier in classifiers:
        for way in WAYS:
            scores = play(split, way, classifier, points, seed, features)
            found.setdefault((classifier, way.name), []).append(scores)


def rounds_table(
    found: Played,
    points: Sequence[int],
    caption: str,
) -> Table:
    """Show F by the number of labels, and how far every way is ahead of another, with p.

    Holm's correction is for all comparisons of ways that are told what the model gets wrong, and
    apart from these for all others.

    Args:
        found: The scores.
        points: Numbers of labels.
        caption: Above the table.
    """
    ways = {way.name: way for way in WAYS}
    tests: dict[tuple[str, str, int], float | None] = {}
    for (classifier, name), repeats in found.items():
        others = found.get((classifier, ways[name].beside), [])
        for n in points if others else ():
            ours, theirs = ([one[n].f for one in side] for side in (repeats, others))
            tests[classifier, name, n] = paired_p(ours, theirs)
    corrected: dict[tuple[str, str, int], float | None] = {}
    for told in (True, False):
        keys = [key for key in tests if ways[key[1]].errors == told]
        corrected |= zip(keys, holm([tests[key] for key in keys]), strict=True)
    rows = []
    for (classifier, name), repeats in found.items():
        beside, cells = ways[name].beside, list[float | None]()
        for n in points:
            f = [one[n].f for one in repeats]
            cells.append(float(np.mean(f)))
            key = classifier, name, n
            if key not in tests:
                cells += [None] * 4
                continue
            gaps = [a - one[n].f for a, one in zip(f, found[classifier, beside], strict=True)]
            cells += [*mean_and_error(gaps), tests[key], corrected[key]]
        rows.append((classifier, name, beside, *cells))
    heads = [f"{head}, {n}" for n in points for head in ("F", "ahead", "s.e.", "p", "p Holm")]
    digits = {head: 3 for head in heads if head.startswith("p")}
    return Table(caption, ("classifier", "way", "compared with", *heads), tuple(rows), digits)


def _sizes(points: Sequence[int]) -> list[int]:
    """Return how many labels there are after every round."""
    return sorted({*range(BATCH, points[-1], BATCH), *points})
