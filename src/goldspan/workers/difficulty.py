"""How much workers err on the same items: learnt from items with gold, or as in public crowds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.crowd import Crowd
from goldspan.crowd.labels import translate
from goldspan.errors import InputError
from goldspan.workers.reliability import find_truth

# --------------------------------------------------------------------------------------------------
# Workers who err on the same items: drawing their abilities and the items' difficulty.


SPREAD = {"ability": 1.5, "twist": 1.0, "difficulty": 1.5}
"""Scales of the half-normal priors of the spreads, in log-odds."""
MEAN_ABILITY, MEAN_TWIST = 3.0, 1.5
"""Standard deviations of the normal priors of the means."""
MISLEADING = (1.0, 19.0)
"""Beta prior of the share of items that mislead."""
INFORMATION = 0.18
"""Of an answer about its log-odds, about: sets the size of the steps."""


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """Answers to items with gold."""

    worker: NDArray[np.int64]  # [n_answers]
    item: NDArray[np.int64]  # [n_answers]
    right: NDArray[np.bool_]  # [n_answers]
    label: NDArray[np.int64]  # [n_items], the true labels
    n_workers: int  # Number of workers, those without any answer among them
    n_labels: int


class Block:
    """Parameters of one kind, which are independent given all others."""

    def __init__(self, kind: str, group: NDArray[np.int64], size: int, sign: int) -> None:
        self.group, self.sign, self.scale = group, sign, SPREAD[kind]
        self.value, self.mean, self.spread = np.zeros(size), np.zeros(size), self.scale / 2
        self.count = np.bincount(group, minlength=size)

    def log_prior(self, step: NDArray[np.float64] | float = 0.0) -> NDArray[np.float64]:
        """Return the log density of every parameter, moved by a step, less a constant."""
        away = self.value + step - self.mean
        return np.asarray(-(away**2) / (2 * self.spread**2))

    def draw_spread(self, rng: np.random.Generator) -> None:
        """Draw the spread given the parameters, by a step on its logarithm."""
        n, squares = len(self.value), float(((self.value - self.mean) ** 2).sum())

        def log_density(spread: float) -> float:
            prior = -(spread**2) / (2 * self.scale**2)
            return float(prior - (n - 1) * np.log(spread) - squares / (2 * spread**2))

        other = self.spread * np.exp(rng.normal(scale=0.5 / np.sqrt(0.3 + n / 10)))
        if np.log(rng.random()) < log_density(other) - log_density(self.spread):
            self.spread = float(other)


class Sampler:
    """A Markov chain over all parameters of the model; `sweep` moves every one of them."""

    def __init__(self, answers: JudgedAnswers, rng: np.random.Generator) -> None:
        self.answers, self.rng = answers, rng
        n_labels, n_workers = answers.n_labels, answers.n_workers
        true = answers.label[answers.item]
        cell = answers.worker * n_labels + true
        self.ability = Block("ability", answers.worker, n_workers, 1)
        self.twist = Block("twist", cell, n_workers * n_labels, 1)
        self.difficulty = Block("difficulty", answers.item, len(answers.label), -1)
        self.ability.value[:] = 1.0
        self.log_odds = np.ones(len(answers.right))
        self.misleading = MISLEADING[0] / sum(MISLEADING)
        self.misled = np.zeros(len(answers.label), np.bool_)
        self._against = np.where(answers.right, -1.0, 1.0)
        self._likelihood = self._log_likelihood(self.log_odds, self.misled)

    def sweep(self) -> None:
        """Move every parameter."""
        for _ in range(2):
            for block in (self.ability, self.difficulty, self.twist):
                self._move(block)
        self._stretch()
        self._shift()
        self._shift_by_label()
        self._draw_means()
        self._turn(fresh=False)
        self._turn(fresh=True)
        self._draw_misleading()
        for block in (self.ability, self.difficulty, self.twist):
            block.draw_spread(self.rng)

    @property
    def label_means(self) -> NDArray[np.float64]:
        """Mean twist of every label, float64 [n_labels]."""
        return self.twist.mean[: self.answers.n_labels]

    def _log_likelihood(
        self, log_odds: NDArray[np.float64], misled: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the log-likelihood of every answer, float64 [n_answers].

        Where an item misleads, another label is given with the chance of the right one, and the
        right one as often as any wrong one else.
        """
        # Quicker than log1p, which is more exact only where this is nearly 0.
        found = -np.log(1 + np.exp(self._against * log_odds))
        which = np.flatnonzero(misled[self.answers.item])
        chance = 1 / (1 + np.exp(log_odds[which])) / (self.answers.n_labels - 1)
        seen = np.where(self.answers.right[which], chance, 1 - chance)
        found[which] = np.log(np.maximum(seen, 1e-12))
        return np.asarray(found)

    def _move(self, block: Block) -> None:
        """Propose a step for every parameter of a block, and take each or leave it."""
        n = len(block.value)
        width = 1.7 / np.sqrt(1 / block.spread**2 + INFORMATION * block.count)
        step = width * self.rng.standard_normal(n)
        moved = self.log_odds + block.sign * step[block.group]
        likelihood = self._log_likelihood(moved, self.misled)
        gain = np.bincount(block.group, likelihood - self._likelihood, n)
        odds = gain + block.log_prior(step) - block.log_prior()
        taken = np.log(self.rng.random(n)) < odds
        block.value += np.where(taken, step, 0.0)
        self._accept(taken[block.group], moved, likelihood)

    def _stretch(self) -> None:
        """Move the spread of the items and their difficulty in proportion.

        Where an item has few answers, its difficulty follows the spread and holds it fast: the
        spread moves only in company. Moves of both kinds are used in turn (Yu and Meng 2011, "To
        Center or Not to Center").
        """
        block = self.difficulty
        width = 1.7 / np.sqrt(1 + INFORMATION * len(self.answers.right))
        by = np.exp(self.rng.normal(scale=width))
        step = block.value * (by - 1)
        moved = self.log_odds - step[block.group]
        likelihood = self._log_likelihood(moved, self.misled)
        prior = (block.spread**2 - (block.spread * by) ** 2) / (2 * block.scale**2)
        odds = (likelihood - self._likelihood).sum() + prior + np.log(by)
        if np.log(self.rng.random()) < odds:
            block.value += step
            block.spread = float(block.spread * by)
            self.log_odds, self._likelihood = moved, likelihood

    def _shift(self) -> None:
        """Move all workers and all items together: no answer becomes likelier."""
        by = float(self.rng.normal(scale=0.3))
        blocks = (self.ability, self.difficulty)
        odds = sum(float((block.log_prior(by) - block.log_prior()).sum()) for block in blocks)
        if np.log(self.rng.random()) < odds:
            for block in blocks:
                block.value += by

    def _shift_by_label(self) -> None:
        """Move all twists for a label, their mean, and the items of that label together."""
        label, n_labels = self.answers.label, self.answers.n_labels
        by = self.rng.normal(scale=0.3, size=n_labels)
        items = self.difficulty.log_prior(by[label]) - self.difficulty.log_prior()
        means = self.label_means**2 - (self.label_means + by) ** 2
        odds = np.bincount(label, items, n_labels) + means / (2 * MEAN_TWIST**2)
        by = np.where(np.log(self.rng.random(n_labels)) < odds, by, 0.0)
        self.twist.value += np.tile(by, self.answers.n_workers)
        self.twist.mean = self.twist.mean + np.tile(by, self.answers.n_workers)
        self.difficulty.value += by[label]

    def _draw_means(self) -> None:
        """Draw the means of abilities and of twists given those."""
        workers = self.answers.n_workers
        twists = self.twist.value.reshape(workers, -1).sum(axis=0)
        ability = _normal_mean(self.ability.value.sum(), workers, self.ability.spread, MEAN_ABILITY)
        twist = _normal_mean(twists, workers, self.twist.spread, MEAN_TWIST)
        self.ability.mean = np.full(workers, self.rng.normal(*ability))
        self.twist.mean = np.tile(self.rng.normal(*twist), workers)

    def _turn(self, *, fresh: bool) -> None:
        """Propose for every item that it misleads if it did not, and the other way round."""
        item, block, n = self.answers.item, self.difficulty, len(self.misled)
        step = block.spread * self.rng.standard_normal(n) - block.value if fresh else np.zeros(n)
        moved, other = self.log_odds - step[item], ~self.misled
        likelihood = self._log_likelihood(moved, other)
        prior = np.log(self.misleading / (1 - self.misleading))
        gain = np.bincount(item, likelihood - self._likelihood, n)
        taken = np.log(self.rng.random(n)) < gain + np.where(other, prior, -prior)
        self.misled = np.where(taken, other, self.misled)
        block.value += np.where(taken, step, 0.0)
        self._accept(taken[item], moved, likelihood)

    def _draw_misleading(self) -> None:
        """Draw the share of items that mislead, given those that do."""
        a, b = MISLEADING[0] + self.misled.sum(), MISLEADING[1] + (~self.misled).sum()
        self.misleading = float(np.clip(self.rng.beta(a, b), 1e-9, 1 - 1e-9))

    def _accept(
        self,
        changed: NDArray[np.bool_],
        log_odds: NDArray[np.float64],
        likelihood: NDArray[np.float64],
    ) -> None:
        self.log_odds = np.where(changed, log_odds, self.log_odds)
        self._likelihood = np.where(changed, likelihood, self._likelihood)


def _normal_mean(
    total: NDArray[np.float64], n: int, spread: float, prior: float
) -> tuple[NDArray[np.float64], float]:
    """Return the posterior mean and standard deviation of a mean with the prior N(0, prior²)."""
    precision = n / spread**2 + 1 / prior**2
    return total / spread**2 / precision, float(1 / np.sqrt(precision))


# --------------------------------------------------------------------------------------------------
# How much workers err on the same items, learnt from items with gold, for forecasts.


DIFFICULTY_WORKERS, MOST_ITEMS = 2000, 2000
"""Beyond that the workers and items to learn from are drawn."""
SWEEPS, WARM_UP = 750, 150
DIFFICULTY_DRAWS = 200
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
        """Return how different the items are."""
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
        if sweep >= WARM_UP and sweep % ((SWEEPS - WARM_UP) // DIFFICULTY_DRAWS) == 0:
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
    if len(found) > DIFFICULTY_WORKERS:
        raise InputError(
            f"{len(found)} workers are more than {DIFFICULTY_WORKERS}: pass the team as workers="
        )
    return found


def _judged(
    crowd: Crowd, gold: NDArray[np.int64], wanted: NDArray[np.int64], rng: np.random.Generator
) -> tuple[JudgedAnswers, NDArray[np.int64], NDArray[np.int64]]:
    """Return the answers to items with gold, and the labels answered, all sorted by name."""
    answers = crowd.latest
    judged = (gold[answers.item] >= 0) & (answers.codes >= 0)
    items = _by_name(crowd.item_ids, np.unique(answers.item[judged]))
    if not len(items):
        raise InputError("no worker answered an item with gold: there is nothing to learn from")
    if len(items) > MOST_ITEMS:
        items = rng.permutation(items)[:MOST_ITEMS]
    ours = np.unique(wanted)
    others = _by_name(crowd.worker_ids, np.setdiff1d(answers.worker[judged], ours))
    room = DIFFICULTY_WORKERS - len(ours)
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
    """Return the place of every label among the sorted ones, int64 [n_labels]."""
    found = np.arange(n_labels)
    found[sorted(range(len(tags)), key=tags.__getitem__)] = np.arange(len(tags))
    return found


def _draw(sampler: Sampler, places: NDArray[np.int64]) -> tuple[NDArray[np.float64], float, float]:
    """Return log-odds of some workers, spread and the share of misleading items as they are now."""
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


# --------------------------------------------------------------------------------------------------
# How workers share their mistakes where no gold tells: as those of public crowds do.


WRONG_RESULTS = (1.0, 5.0)
"""Beta distribution of the share of items on which a crowd's result is wrong."""


def typical_difficulty(
    result: Consensus, *, workers: pa.Array | None = None, random_state: int = 0
) -> Difficulty:
    r"""Take the result of a crowd for gold that is as often wrong as those of public crowds.

    Args:
        result: Of a crowd with single labels.
        workers: As for `fit_difficulty`.
        random_state: Seed of the draws.

    Raises:
        InputError: Items are not single labels, or a worker is unknown.

    >>> import goldspan
    >>> rows = "".join(f"{i},{w},{'y' if i % 4 else 'n'}\n" for i in range(20) for w in "abc")
    >>> crowd = goldspan.read_crowd(f"item,worker,label\n{rows}".encode())
    >>> found = typical_difficulty(goldspan.aggregate(crowd, "ds"))
    >>> found.mistakes, bool(0.1 < found.misleading.mean() < 0.25)
    ('typical', True)
    """
    crowd = result.crowd
    codes = translate(result.codes, result.tagset, crowd.tagset)
    found = fit_difficulty(
        crowd.with_gold(codes.astype(np.int16)), workers=workers, random_state=random_state
    )
    wrong = np.random.default_rng(random_state).beta(*WRONG_RESULTS, len(found.spread))
    return replace(found, misleading=wrong, mistakes="typical")
