"""The accuracy that a team is expected to reach, and the check of that forecast on known items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from goldspan.aggregation import Consensus
from goldspan.crowd import Crowd
from goldspan.crowd.labels import translate
from goldspan.errors import InputError
from goldspan.money import from_micro
from goldspan.workers.beta import LEVEL, Reliability
from goldspan.workers.reliability import find_truth
from goldspan.workers.selection import prefix_accuracy, read_prices, vote_weights

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
    """Answers to items with gold.

    Attributes:
        worker: int64 [n_answers].
        item: int64 [n_answers].
        right: bool [n_answers].
        label: int64 [n_items], the true labels.
        n_workers: Number of workers, those without any answer among them.
        n_labels: Number of labels.
    """

    worker: NDArray[np.int64]
    item: NDArray[np.int64]
    right: NDArray[np.bool_]
    label: NDArray[np.int64]
    n_workers: int
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
# What accuracy votes of the first 1, 2, … workers have: forecast or measured, and at what cost.


class Reach(NamedTuple):
    """What it takes to reach a target; size and cost are None where it is out of reach."""

    size: int | None
    cost: int | None
    reason: str


@dataclass(frozen=True, eq=False)
class Curve:
    """Accuracy of votes of teams of growing size; a subclass says where it is from.

    Attributes:
        sizes: int64 [n_sizes], how many of the first workers vote.
        accuracy: float64 [n_sizes], the mean.
        low: float64 [n_sizes], lower end of the interval.
        high: float64 [n_sizes], its upper end.
        level: Of that interval.
        cost: int64 [n_sizes], millionths of money per item, or workers without prices.
        in_money: Whether cost is money.
    """

    sizes: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level: float
    cost: NDArray[np.int64]
    in_money: bool

    @property
    def label(self) -> str:
        """What it rests on, in a sentence."""
        raise NotImplementedError  # pragma: no cover

    @property
    def model_based(self) -> bool:
        """Whether it follows from a model, and was not measured."""
        raise NotImplementedError  # pragma: no cover

    @property
    def quantity(self) -> str:
        """What `accuracy` is, in a word."""
        return "accuracy"

    def at(self, size: int) -> Self:
        """Return the same curve of one size."""
        place = np.flatnonzero(self.sizes == size)
        if not len(place):
            raise InputError(f"unknown size {size}: choose from {self.sizes.tolist()}")
        return replace(
            self, sizes=self.sizes[place], accuracy=self.accuracy[place], low=self.low[place],
            high=self.high[place], cost=self.cost[place],
        )  # fmt: skip

    def cost_to(self, target: float, *, surely: bool = False) -> Reach:
        """Find the smallest team that reaches an accuracy."""
        if not 0 < target <= 1:
            raise InputError(f"a target is an accuracy between 0 and 1, not {target}")
        reached = np.flatnonzero((self.low if surely else self.accuracy) >= target)
        if len(reached):
            first = int(reached[0])
            return Reach(int(self.sizes[first]), int(self.cost[first]), "")
        best = int(np.argmax(self.low if surely else self.accuracy))
        size = int(self.sizes[best])
        shown = f"{self.accuracy[best]:.3f} ({self.low[best]:.3f} … {self.high[best]:.3f})"
        workers = f"{size} worker{'' if size == 1 else 's'}"
        return Reach(None, None, f"not reachable: the best is {shown} with {workers}")

    def costs(self) -> list[Any]:
        """Return the cost of every size: money as text, else numbers of workers."""
        values = self.cost.tolist()
        return [from_micro(cost) for cost in values] if self.in_money else values

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "model_based": self.model_based,
            "label": self.label,
            "sizes": self.sizes.tolist(),
            "cost": self.costs(),
            "accuracy": self.accuracy.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "level": self.level,
        }

    def columns(self) -> dict[str, list[str]]:
        """Return what a table shows beside size and accuracy: names and a cell per size."""
        return {"cost": [str(cost) for cost in self.costs()]} if self.in_money else {}

    def __str__(self) -> str:
        """Show a row per size, for the command line."""
        more = self.columns()
        widths = [max(map(len, [name, *cells])) for name, cells in more.items()]
        head = "".join(f"  {name:>{w}}" for name, w in zip(more, widths, strict=True))
        lines = [self.label, f"workers{head}  {self.quantity:>8}  {100 * self.level:g} % interval"]
        for n, size in enumerate(self.sizes.tolist()):
            cells = zip(more.values(), widths, strict=True)
            middle = "".join(f"  {column[n]:>{w}}" for column, w in cells)
            interval = f"{self.low[n]:.3f} … {self.high[n]:.3f}"
            lines.append(f"{size:7}{middle}  {self.accuracy[n]:8.3f}  {interval}")
        return "\n".join(lines)


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
    """Return the answers to items with gold, and the labels answered, all sorted by name.

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


# --------------------------------------------------------------------------------------------------
# What accuracy a vote of the first 1, 2, … workers will have, and what a target costs.


MOST_SIZES = 40
"""Sizes that are forecast by default."""
MOST_WORKERS = 500
"""Workers whose votes are drawn."""
DRAWS, ITEMS = 200, 200
"""Draws of the workers' chances, and items drawn for each."""
HOW = {
    "independent": "if workers err independently, not a measurement",
    "as on gold": "if items differ in difficulty, not a measurement",
    "typical": "as workers of public crowds share their mistakes, no gold of yours",
}
"""What a forecast says of mistakes that workers share."""


@dataclass(frozen=True, eq=False)
class Forecast(Curve):
    """Accuracy that a model expects of votes if all of a team answer every item.

    The interval is that of the accuracy on very many items.

    Attributes:
        vote: "linear", "log" or "majority".
        mistakes: How workers share their mistakes: "independent", "as on gold", or "typical".
    """

    vote: str
    mistakes: str

    @property
    def label(self) -> str:
        """What it rests on, in a sentence."""
        return f"model-based: a forecast of the {self.vote} vote {HOW[self.mistakes]}"

    @property
    def model_based(self) -> bool:
        """It follows from a model."""
        return True


def forecast_accuracy(
    ranked: Reliability,
    *,
    difficulty: Difficulty | None = None,
    vote: str = "linear",
    sizes: ArrayLike | None = None,
    prices: Mapping[str, Any] | Sequence[Any] | NDArray[Any] | None = None,
    answering: NDArray[np.bool_] | None = None,
    level: float = LEVEL,
    draws: int = DRAWS,
    n_items: int = ITEMS,
    random_state: int = 0,
) -> Forecast:
    """Forecast the accuracy of the vote of the first workers of a ranking, for every size.

    Args:
        ranked: Workers in the order in which they are selected: `team.tested`.
        difficulty: Draws of `fit_difficulty`; None lets workers err independently.
        vote: "linear", weights L m - 1 with the posterior means m; "log"; or "majority".
        sizes: WorkerSelection sizes; by default all up to 40 workers, else 40 of them up to 500.
        prices: Money per answer, as for `select_workers`.
        answering: bool [n_patterns, n_workers], who answers an item; a pattern is drawn for every
            item, and items without an answer do not count. By default everybody answers.
        level: Of the interval, between 0 and 1.
        draws: Draws of the workers' chances.
        n_items: Items drawn for each of them.
        random_state: Seed.

    Raises:
        InputError: There is no worker, a size is none of 1 … n_workers, or the difficulty is of
            other workers or labels.
        UnknownNameError: Unknown vote.

    >>> found = forecast_accuracy(Reliability.from_counts([18, 17, 17], 20, prior=(1, 1)))
    >>> found.sizes.tolist(), found.accuracy.round(2).tolist()
    ([1, 2, 3], [0.86, 0.86, 0.93])
    """
    chosen = read_sizes(sizes, len(ranked))
    if not 0 < level < 1:
        raise InputError(f"a level lies between 0 and 1, not {level}")
    if draws < 1 or n_items < 1:
        raise InputError(f"draws and n_items must be at least 1, not {draws} and {n_items}")
    money = None if prices is None else read_prices(prices, ranked)[: chosen[-1]]
    cost = chosen if money is None else np.cumsum(money)[chosen - 1]
    first = ranked.take(np.arange(chosen[-1]))
    if difficulty is not None:
        check_labels(difficulty, first)
    patterns = None if answering is None else answering[:, : len(first)]
    weights, rng = vote_weights(first, vote), np.random.default_rng(random_state)
    found = []
    for draw in range(draws):
        labels = draw_labels(first, difficulty, draw, n_items, rng)
        if patterns is not None:
            labels = np.where(patterns[rng.integers(0, len(patterns), n_items)], labels, -1)
        truth = np.zeros(n_items, np.int64)
        right, n = prefix_accuracy(labels, truth, weights, first.n_labels, chosen)
        found.append(right / np.maximum(n, 1))
    mean, low, high = _summary(np.array(found), n_items, level)
    mistakes = "independent" if difficulty is None else difficulty.mistakes
    return Forecast(chosen, mean, low, high, level, cost, money is not None, vote, mistakes)


def read_sizes(sizes: ArrayLike | None, n_workers: int) -> NDArray[np.int64]:
    """Return the team sizes, increasing."""
    most = min(n_workers, MOST_WORKERS)
    if not n_workers:
        raise InputError("no worker whose votes could be forecast: the selection is empty")
    if sizes is None:
        spread = np.geomspace(1, most, MOST_SIZES)
        return np.unique(np.rint(spread if most > MOST_SIZES else np.arange(1, most + 1))).astype(
            np.int64
        )
    found = np.unique(np.atleast_1d(np.asarray(sizes)))
    whole = found.dtype.kind in "iu" and len(found) > 0
    if not whole or found[0] < 1 or found[-1] > most:
        raise InputError(f"sizes must be whole numbers of 1 … {most}, not {sizes!r}")
    return found.astype(np.int64)


def check_labels(difficulty: Difficulty, ranked: Reliability) -> None:
    """Reject a difficulty of other labels."""
    if difficulty.n_labels != ranked.n_labels:
        raise InputError(
            f"the difficulty is of {difficulty.n_labels} labels and the reliability of "
            f"{ranked.n_labels}"
        )


def draw_labels(
    ranked: Reliability,
    difficulty: Difficulty | None,
    draw: int,
    n_items: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw the labels that workers give to items whose truth is called 0.

    Returns:
        int64 [n_items, n_workers].
    """
    size = (n_items, len(ranked))
    if difficulty is None:
        wrong = rng.random(size) >= rng.beta(ranked.a, ranked.b)
        return np.where(wrong, _wrong_labels(size, ranked.n_labels, np.inf, rng), 0)
    chances = difficulty.draw_chances(ranked.worker_ids, draw, n_items, rng)
    at = draw % len(difficulty.spread)
    wrong = rng.random(size) >= chances
    labels = np.where(wrong, _wrong_labels(size, ranked.n_labels, difficulty.alpha[at], rng), 0)
    misled = rng.random((n_items, 1)) < difficulty.misleading[at]
    # Where an item misleads, label 1 takes the place of the truth.
    return np.where(misled & (labels <= 1), 1 - labels, labels)


def _wrong_labels(
    size: tuple[int, int], n_labels: int, alpha: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw labels 1 … n_labels - 1, whose shares differ from item to item if alpha is finite."""
    if n_labels == 2:
        return np.ones(size, np.int64)
    if np.isinf(alpha):
        return rng.integers(1, n_labels, size)
    shares = rng.dirichlet(np.full(n_labels - 1, alpha / (n_labels - 1)), size[0])
    edges = np.cumsum(shares, axis=1)[:, :-1]
    return np.asarray(1 + (rng.random(size)[:, :, None] > edges[:, None, :]).sum(axis=2))


def _summary(
    found: NDArray[np.float64], n_items: int, level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return mean, low and high over the draws, float64 [n_sizes] each.

    A draw's accuracy scatters because its items are few, and because the chances were drawn. Only
    the latter is about very many items: the former is taken out of the interval's width.
    """
    mean, variance = found.mean(axis=0), found.var(axis=0)
    of_items = mean * (1 - mean) / n_items
    of_mean = variance / len(found)
    kept = np.sqrt(np.maximum(variance - of_items, 0) + of_mean) / np.sqrt(variance + 1e-12)
    ends = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    low, high = mean + np.minimum(kept, 1) * (ends - mean)
    return mean, np.maximum(low, 0), np.minimum(high, 1)


# --------------------------------------------------------------------------------------------------
# A forecast beside what the same votes had on items with gold that nobody was tested on.


@dataclass(frozen=True, eq=False)
class ForecastCheck:
    """A forecast and what came true.

    Attributes:
        forecast: The forecast for items that are answered as these were.
        had: float64 [n_sizes], accuracy of the votes.
        n_items: int64 [n_sizes], items that it was measured on.
        low: float64 [n_sizes], lower end of what the forecast lets expect on so many items.
        high: float64 [n_sizes], its upper end.
    """

    forecast: Forecast
    had: NDArray[np.float64]
    n_items: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def bias(self) -> float:
        """How much too high the forecast is on the average over sizes."""
        return float((self.forecast.accuracy - self.had).mean())

    @property
    def mean_error(self) -> float:
        """Mean size of the difference."""
        return float(np.abs(self.forecast.accuracy - self.had).mean())

    @property
    def coverage(self) -> float:
        """Share of sizes whose accuracy lies within the interval."""
        return float(((self.low <= self.had) & (self.had <= self.high)).mean())

    def __str__(self) -> str:
        """Show a row per size."""
        lines = [self.forecast.label, "workers  forecast  had    items  expected"]
        rows = zip(
            self.forecast.sizes, self.forecast.accuracy, self.had, self.n_items, self.low,
            self.high, strict=True,
        )  # fmt: skip
        for size, mean, had, n, low, high in rows:
            lines.append(f"{size:7}  {mean:8.3f}  {had:.3f}  {n:5}  {low:.3f} … {high:.3f}")
        return "\n".join(lines)


def check_forecast(
    ranked: Reliability,
    crowd: Crowd,
    gold: Any = None,
    *,
    difficulty: Difficulty | None = None,
    vote: str = "linear",
    sizes: ArrayLike | None = None,
    level: float = LEVEL,
    random_state: int = 0,
) -> ForecastCheck:
    r"""Compare a forecast with the votes on held-out items.

    The forecast is made for the answers that there are: a worker who gave none to an item gives
    none in the forecast either.

    Args:
        ranked: Workers in the order in which they are selected, tested on other items.
        crowd: Answers of the same workers to the held-out items: single labels.
        gold: Known labels as for `measure_reliability`; the crowd's own by default.
        difficulty: As for `forecast_accuracy`, learnt from other items.
        vote: As for `forecast_accuracy`.
        sizes: As for `forecast_accuracy`.
        level: Of the interval.
        random_state: Seed.

    Raises:
        InputError: Items are not single labels, have no gold, or a worker is not in the crowd.

    >>> import goldspan
    >>> from goldspan.workers import measure_reliability
    >>> rows = "".join(f"{i},{w},{'y' if i % 5 else 'n'}\n" for i in range(40) for w in "ab")
    >>> crowd = goldspan.read_crowd(f"item,worker,label\n{rows}".encode())
    >>> crowd = crowd.with_gold(np.full(40, crowd.tagset.tags.index("y"), np.int16))
    >>> test, rest = crowd.select_items(np.arange(20)), crowd.select_items(np.arange(20, 40))
    >>> check_forecast(measure_reliability(test), rest).had.tolist()
    [0.8, 0.8]
    """
    truth = find_truth(crowd, gold, None)
    if not truth.crowd.is_classification:
        raise InputError("a forecast is checked on single labels, and these items are tagged")
    if difficulty is not None:
        check_labels(difficulty, ranked)
    labels = answer_table(truth.crowd, ranked)
    known = (truth.gold[0] >= 0) & (labels >= 0).any(axis=1)
    if not known.any():
        raise InputError("these workers answered no item with gold: there is nothing to check")
    labels, codes = labels[known], truth.gold[0][known].astype(np.int64)
    found = forecast_accuracy(
        ranked, difficulty=difficulty, vote=vote, sizes=sizes, answering=labels >= 0, level=level,
        random_state=random_state,
    )  # fmt: skip
    n_labels = max(ranked.n_labels, len(truth.crowd.tagset.tags))
    weights = vote_weights(ranked, vote)
    right, n = prefix_accuracy(labels, codes, weights, n_labels, found.sizes)
    return ForecastCheck(found, right / np.maximum(n, 1), n, *_expected(found, n))


def answer_table(crowd: Crowd, ranked: Reliability) -> NDArray[np.int64]:
    """Return the labels of single-label items, int64 [n_items, n_ranked], -1 for none."""
    places = [crowd.worker_index(name) for name in ranked.worker_ids.to_pylist()]
    column = np.full(crowd.n_workers, -1)
    column[places] = np.arange(len(places))
    answers = crowd.latest
    used = column[answers.worker] >= 0
    found = np.full((crowd.n_items, len(places)), -1, np.int64)
    found[answers.item[used], column[answers.worker[used]]] = answers.codes[used]
    return found


def _expected(
    found: Forecast, n_items: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Widen the interval by the scatter of so many items: both parts as of normal ones."""
    from scipy.special import ndtri

    mean = found.accuracy
    scatter = ndtri((1 + found.level) / 2) ** 2 * mean * (1 - mean) / np.maximum(n_items, 1)
    low = mean - np.sqrt((mean - found.low) ** 2 + scatter)
    high = mean + np.sqrt((found.high - mean) ** 2 + scatter)
    return np.maximum(low, 0), np.minimum(high, 1)
