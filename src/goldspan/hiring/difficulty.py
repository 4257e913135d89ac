"""How much workers err on the same items, learnt from items with gold, for forecasts.

The draws of abilities and difficulty are those of `goldspan.hiring.shared_mistakes`. Where there
are more than two labels, wrong answers may also agree: the shares of the wrong labels of an item
are Dirichlet(α / (L - 1), …), a small α where the wrong answers to an item are mostly the same one.

Items, workers, labels and answers are sorted by name first, so that a seed gives the same draws in
whatever order the answers stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.hiring.shared_mistakes import JudgedAnswers, Sampler
from goldspan.hiring.truth import find_truth

MOST_WORKERS, MOST_ITEMS = 2000, 2000
"""Beyond that the workers and items to learn from are drawn."""
SWEEPS, WARM_UP = 750, 150
DRAWS = 200
"""Draws that are kept of the sweeps after warming up."""
BATCHES = 8
"""Parts of the draws that are compared with each other to tell the error of a median."""
ALPHAS = np.array([0.25, 0.5, 1, 2, 4, 8, 16, 64, 256])
"""Concentrations of the wrong labels that are weighed against each other."""


@dataclass(frozen=True, eq=False)
class Difficulty:
    """Draws from what gold says about workers and items.

    Attributes:
        worker_ids: Arrow string array [n_workers].
        log_odds: float64 [n_draws, n_workers, n_labels], of being right on an item of middling
            difficulty with that true label.
        spread: float64 [n_draws], standard deviation of the items' difficulty in log-odds.
        shares: float64 [n_draws, n_labels], of the true labels among items.
        alpha: float64 [n_draws], concentration of the wrong labels; infinite for two labels.
        misleading: float64 [n_draws], share of items on which workers take another label for the
            true one.
        n_items: Items that it was learnt from.
        mistakes: "as on gold", or "typical" where the crowd's result took the place of gold.
    """

    worker_ids: pa.Array
    log_odds: NDArray[np.float64]
    spread: NDArray[np.float64]
    shares: NDArray[np.float64]
    alpha: NDArray[np.float64]
    misleading: NDArray[np.float64]
    n_items: int
    mistakes: str = "as on gold"

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.shares.shape[1])

    def draw_chances(
        self, worker_ids: pa.Array, draw: int, n_items: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw items, and give the chances that workers are right on them by one of the draws.

        Args:
            worker_ids: Arrow string array [n_workers].
            draw: Number of the draw; it begins again after the last.
            n_items: Number of items.
            rng: Draws their labels and difficulty.

        Returns:
            float64 [n_items, n_workers].

        Raises:
            InputError: A worker is unknown.
        """
        from scipy.special import expit

        at = draw % len(self.spread)
        label = rng.choice(self.n_labels, n_items, p=self.shares[at])
        log_odds = self.log_odds[at][self.places(worker_ids)][:, label].T
        found = expit(log_odds - self.spread[at] * rng.standard_normal((n_items, 1)))
        return np.asarray(found)

    def places(self, worker_ids: pa.Array) -> NDArray[np.int64]:
        """Find workers, int64 [n].

        Raises:
            InputError: One of them is not among those that it was learnt for.
        """
        place = {name: i for i, name in enumerate(self.worker_ids.to_pylist())}
        names = worker_ids.to_pylist()
        missing = [name for name in names if name not in place]
        if missing:
            raise InputError(
                f"the difficulty does not know worker {missing[0]!r} (and {len(missing) - 1} "
                "others): pass workers=… to fit_difficulty"
            )
        return np.array([place[name] for name in names], np.int64)

    @property
    def spread_error(self) -> float:
        """Standard error of the median of `spread`: another seed gives about so different a median.

        Draws are few and each is near the last. It comes from the medians of batches of them
        (batch means, Geyer 1992, "Practical Markov Chain Monte Carlo").
        """
        batches = np.array_split(self.spread, BATCHES)
        medians = [np.median(batch) for batch in batches]
        return float(np.std(medians, ddof=1) / np.sqrt(BATCHES))

    def __str__(self) -> str:
        """Say how different the items are."""
        low, middle, high = np.quantile(self.spread, [0.025, 0.5, 0.975])
        return (
            f"difficulty of items: standard deviation {middle:.2f} log-odds "
            f"({low:.2f} … {high:.2f}; error of the draws {self.spread_error:.2f}), "
            f"{100 * np.mean(self.misleading):.1f} % misleading, "
            f"from {self.n_items} items {'with gold' if self.mistakes == 'as on gold' else 'alone'}"
        )


def fit_difficulty(
    crowd: Crowd, gold: Any = None, *, workers: pa.Array | None = None, random_state: int = 0
) -> Difficulty:
    r"""Learn from items with gold how much workers err on the same ones.

    Args:
        crowd: Answers to single labels.
        gold: Known labels as for `measure_reliability`; the crowd's own by default. Give the
            questions of the test, not items that a forecast shall be checked on.
        workers: Ids of the workers that are wanted, at most 2000, all by default. Others serve
            to learn what workers are like.
        random_state: Seed of the draws.

    Raises:
        InputError: Items are not single labels, there is no answer to an item with gold, or a
            worker is unknown.

    >>> import goldspan
    >>> rows = "".join(f"{i},{w},{'y' if i % 4 else 'n'}\n" for i in range(20) for w in "abc")
    >>> crowd = goldspan.read_crowd(f"item,worker,label\n{rows}".encode())
    >>> found = fit_difficulty(crowd, {str(i): "y" for i in range(20)})
    >>> bool(found.misleading.mean() > 0.1)
    True
    """
    truth = find_truth(crowd, gold, None)
    if not truth.crowd.is_classification:
        raise InputError("difficulty is learnt from single labels, and these items are tagged")
    rng = np.random.default_rng(random_state)
    wanted = _wanted(truth.crowd, workers)
    codes = np.asarray(truth.gold[0], np.int64)
    answers, labels, places = _judged(truth.crowd, codes, wanted, rng)
    sampler, kept = Sampler(answers, rng), []
    for sweep in range(SWEEPS):
        sampler.sweep()
        if sweep >= WARM_UP and sweep % ((SWEEPS - WARM_UP) // DRAWS) == 0:
            kept.append(_draw(sampler, places))
    counts = np.bincount(answers.label, minlength=answers.n_labels)
    # Labels as the crowd has them again.
    column = _ranks(truth.crowd.tagset.tags, answers.n_labels)
    return Difficulty(
        worker_ids=truth.crowd.worker_ids.take(pa.array(wanted)),
        log_odds=np.stack([log_odds for log_odds, _, _ in kept])[:, :, column],
        spread=np.array([spread for _, spread, _ in kept]),
        shares=rng.dirichlet(counts + 1.0, len(kept))[:, column],
        alpha=_draw_alpha(answers, labels, len(kept), rng),
        misleading=np.array([share for _, _, share in kept]),
        n_items=len(answers.label),
    )


def _wanted(crowd: Crowd, workers: pa.Array | None) -> NDArray[np.int64]:
    if workers is None:
        found = np.arange(crowd.n_workers)
    else:
        found = np.array([crowd.worker_index(name) for name in workers.to_pylist()], np.int64)
    if len(found) > MOST_WORKERS:
        raise InputError(
            f"{len(found)} workers are more than {MOST_WORKERS}: pass those of the team as workers="
        )
    return found


def _judged(
    crowd: Crowd, gold: NDArray[np.int64], wanted: NDArray[np.int64], rng: np.random.Generator
) -> tuple[JudgedAnswers, NDArray[np.int64], NDArray[np.int64]]:
    """Give the answers to items with gold, and the labels answered, all sorted by name.

    Returns:
        The answers; int64 [n_answers], their labels; int64 [n_wanted], where those workers are.
    """
    answers = crowd.latest
    judged = (gold[answers.item] >= 0) & (answers.codes >= 0)
    items = _by_name(crowd.item_ids, np.unique(answers.item[judged]))
    if not len(items):
        raise InputError("no worker answered an item with gold: there is nothing to learn from")
    if len(items) > MOST_ITEMS:
        items = rng.permutation(items)[:MOST_ITEMS]
    ours = np.unique(wanted)
    others = _by_name(crowd.worker_ids, np.setdiff1d(answers.worker[judged], ours))
    room = MOST_WORKERS - len(ours)
    if len(others) > room:
        others = rng.permutation(others)[:room]
    workers = _by_name(crowd.worker_ids, np.concatenate([ours, others]))
    place_of_worker, place_of_item = np.full(crowd.n_workers, -1), np.full(crowd.n_items, -1)
    place_of_worker[workers] = np.arange(len(workers))
    place_of_item[items] = np.arange(len(items))
    worker, item = place_of_worker[answers.worker], place_of_item[answers.item]
    used = np.flatnonzero(judged & (worker >= 0) & (item >= 0))
    used = used[np.lexsort((item[used], worker[used]))]
    n_labels = max(2, len(crowd.tagset.tags))
    code = _ranks(crowd.tagset.tags, n_labels)
    labels, true = code[answers.codes[used]], code[gold[items]]
    right = labels == true[item[used]]
    found = JudgedAnswers(worker[used], item[used], right, true, len(workers), n_labels)
    return found, labels, place_of_worker[wanted]


def _by_name(names: pa.Array, which: NDArray[np.integer]) -> NDArray[np.int64]:
    """Sort indexes by the names that they stand for."""
    texts = names.take(pa.array(which)).to_pylist()
    return np.array([which[i] for i in sorted(range(len(which)), key=texts.__getitem__)], np.int64)


def _ranks(tags: Sequence[str], n_labels: int) -> NDArray[np.int64]:
    """Give the place of every label among the sorted ones, int64 [n_labels]."""
    found = np.arange(n_labels)
    found[sorted(range(len(tags)), key=tags.__getitem__)] = np.arange(len(tags))
    return found


def _draw(sampler: Sampler, places: NDArray[np.int64]) -> tuple[NDArray[np.float64], float, float]:
    """Give log-odds of some workers, spread and the share of misleading items as they are now."""
    twist = sampler.twist.value.reshape(-1, sampler.answers.n_labels)[places]
    log_odds = sampler.ability.value[places, None] + twist
    return log_odds, sampler.difficulty.spread, sampler.misleading


def _draw_alpha(
    answers: JudgedAnswers, labels: NDArray[np.int64], n_draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the concentration of wrong labels by the likelihood of the Pólya distribution."""
    from scipy.special import gammaln

    n_labels, wrong = answers.n_labels, ~answers.right
    if n_labels == 2:
        return np.full(n_draws, np.inf)
    cell = answers.item[wrong] * n_labels + labels[wrong]
    counts = np.bincount(cell, minlength=len(answers.label) * n_labels).reshape(-1, n_labels)
    part = ALPHAS[:, None] / (n_labels - 1)
    found = gammaln(ALPHAS) * len(counts) - gammaln(ALPHAS[:, None] + counts.sum(axis=1)).sum(
        axis=1
    )
    times = np.bincount(counts.ravel())
    values = np.arange(1, len(times))
    # Labels that nobody gave add nothing, the true one among them.
    found += (times[1:] * (gammaln(part + values) - gammaln(part))).sum(axis=1)
    weight = np.exp(found - found.max())
    return np.asarray(rng.choice(ALPHAS, n_draws, p=weight / weight.sum()))
