"""Workers who were tested for unequally long: which score is taken in by lucky beginners."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goldspan.workers import Reliability, select_workers
from studies.li_liu.pools import draw_pool
from studies.li_liu.trial import Indices, Tested, accuracy, vote
from studies.table import Table

LENGTHS = (2, 5, 20, 60)
N_WORKERS, BUDGET = 100, 11
SCORES = (("unbiased", "negative"), ("plugin", "negative"), ("posterior", "drop"))


def unequal_table(n_trials: int, told: Callable[[], None]) -> Table:
    """Compare the scores on simulated pools of two labels.

    Args:
        n_trials: Pools to draw.
        told: Told of every trial that is over.
    """
    found: dict[str, list[tuple[float, float, int]]] = {score: [] for score, _ in SCORES}
    for seed in range(n_trials):
        tested = _begin(seed)
        for score, below in SCORES:
            team = select_workers(
                tested.reliability, budget=BUDGET, score=score, below=below, random_state=seed
            )
            index: Indices = np.asarray(team.index, np.intp)
            labels = vote("wmv-linear", is_posterior=score == "posterior")(tested, index)
            shortest = float((tested.reliability.total[index] == LENGTHS[0]).mean())
            found[score].append((accuracy(tested, labels), shortest, len(index)))
        told()
    rows = []
    for score, runs in found.items():
        right, shortest, size = np.array(runs).T
        error = float(right.std(ddof=1) / np.sqrt(len(right))) if len(right) > 1 else 0.0
        means = (float(right.mean()), error, float(shortest.mean()), float(size.mean()))
        rows.append((score, *means))
    words = ", ".join(map(str, LENGTHS))
    return Table(
        f"Tests of unequal length ({words} questions, {N_WORKERS} simulated workers, budget "
        f"{BUDGET}, 1,000 items, 2 labels)",
        ("score", "accuracy", "s.e.", f"tested by {LENGTHS[0]} questions", "team"),
        tuple(rows),
        {"accuracy": 4, "s.e.": 4, f"tested by {LENGTHS[0]} questions": 2, "team": 1},
    )


def _begin(seed: int) -> Tested:
    """Draw a pool whose workers are tested before, by questions that are no items of it."""
    pool = draw_pool(2, n_workers=N_WORKERS, seed=seed)
    answers = pool.crowd.latest
    right = np.bincount(
        answers.worker, answers.codes == pool.gold[answers.item], minlength=N_WORKERS
    )
    rng = np.random.default_rng((seed, 2))
    asked = rng.choice(LENGTHS, N_WORKERS)
    hits = rng.binomial(asked, right / pool.crowd.n_items)
    ids = pool.crowd.worker_ids
    return Tested(pool, Reliability.from_counts(hits, asked, worker_ids=ids), seed)
