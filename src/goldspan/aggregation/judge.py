"""Which method to believe, without any gold: predict answers that were hidden.

One worker's answer is hidden on a share of the items, every candidate is fitted on the rest, and is
judged by how probable it makes the hidden labels:

    p(c | b) = sum_j q(j) A^k(j, b, c),

q the candidate's probabilities of the true label and A^k how the hidden worker k labels, learned
from their other answers under the same candidate and smoothed towards the population. b is their
label before: whoever has begun a span goes on with it, so that a long span counts once and not with
every token. A method that runs away from its workers predicts them badly, and so does one that is
too sure: q is raised to the power 1/T, and the T of an item is the one that makes the hidden labels
of the other items likeliest, for a setting that is chosen and scored by the same answers is
flattered. The candidates that predict best are averaged (docs/math.md, sections 12 and 13).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import draws, keys_of, rows_of
from goldspan.crowd import Crowd
from goldspan.crowd.model import Answers

Floats = NDArray[np.float64]
POPULATION = 10.0
"""Labels of a worker, after one label before, beside which the population counts half."""
TEMPERATURES = (1.0, 0.7, 1.4, 2.0, 2.8, 4.0, 5.6)
"""Tried on every candidate, steps of a factor sqrt(2); of equally good ones the first counts."""
LEAST_PROB = 1e-12
TELLING = 0.02
"""Share of the best candidate's loss by which another's is larger, to have 1/e of its weight, where
the hidden answers tell the two apart for certain."""
LEAST_WEIGHT = 0.01
"""Candidates with less weight in the mixture are left out."""
DOUBT = 50.0
"""Hidden labels at which what they say has half the weight, and votes have the other half."""
GROWN = 1.25
"""How many times the answers may grow or shrink before candidates are judged anew."""
LOOK_AT = 20
"""Items that a note names."""


@dataclass(frozen=True)
class Candidate:
    """A method that was tried, and what the hidden answers say of it."""

    name: str
    score: float  # Mean log-probability of a hidden label, of spans log F1; 0 if none was hidden
    temperature: float  # Above 1 it was too sure, and its evidence is discounted
    weight: float  # Its share of the result

    @property
    def is_judged(self) -> bool:
        """Whether any answer was hidden from it."""
        return self.score < 0


@dataclass(frozen=True)
class Choice:
    """What judging came to: enough to fit the chosen candidates again without judging them."""

    candidates: tuple[Candidate, ...]  # All that were tried, the largest weight first
    n_answers: int  # Of the crowd by which they were judged
    confirmation: tuple[float, ...] = ()  # How right spans are told from wrong ones, in numbers
    is_bold: bool = True  # Whether doubtful families of workers were believed (single labels)
    models_power: float = 0.0  # Power of what models among the workers say, beside people and text
    models: tuple[str, ...] = ()  # Their ids; empty where nobody is one, or everybody teaches

    @property
    def chosen(self) -> list[Candidate]:
        """The candidates that are part of the result."""
        return [one for one in self.candidates if one.weight > 0]

    def holds(self, n_answers: int) -> bool:
        """Return whether a crowd with so many answers need not be judged anew."""
        return self.n_answers <= GROWN * n_answers and n_answers <= GROWN * self.n_answers

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Make it of plain values, among which there may be others.

        >>> choice = Choice((Candidate("ds", -0.1, 1.0, 1.0),), 100, confirmation=(0.5, 1.0))
        >>> Choice.of(choice.to_dict() | {"seen": 7}) == choice
        True
        """
        own = {one.name: plain[one.name] for one in fields(cls) if one.name in plain}
        own |= {name: tuple(own.get(name, ())) for name in ("confirmation", "models")}
        own["candidates"] = tuple(Candidate(**one) for one in plain["candidates"])
        return cls(**own)


def choice_words(
    candidates: Sequence[Candidate],  # All that were tried, the largest weight first
    agreement: float,  # Share of the items (or spans) for which all of them have the same label
    names: Sequence[str],  # Of the others, those to look at first
    what: str = "items",
) -> str:
    """Say what was tried, what counts most, and where a person should look."""
    best = ", ".join(f"{one.name} ({one.weight:.0%})" for one in candidates[:3] if one.weight > 0)
    said = [f"tried {len(candidates)} methods; best: {best}"]
    said += [f"the labels of all of them agree on {int(100 * agreement + 1e-9)}% of the {what}"]
    if names:
        which = f"these {len(names)} {what}" if len(names) > 1 else "this one"
        said += [f"look at {which}: {', '.join(names)}"]
    return "; ".join(said)


# --------------------------------------------------------------------------------------------------
# Hidden answers, and how probable a candidate makes them.


def hold_out(
    crowd: Crowd, *, share: float = 0.15, family: NDArray[np.int64] | None = None, seed: int = 0
) -> tuple[Crowd, Answers]:
    """Hide some answers: at most one worker's (with all of their family) on an item."""
    # Items with a single worker or family keep it: nothing would be left to predict from
    # family int64 [n_workers]
    answers = crowd.latest
    families = np.arange(crowd.n_workers) if family is None else family
    n_families = int(families.max(initial=0)) + 1
    # A group is the answers of a family to an item. Of the family one member is asked: the others
    # say the same again.
    key = answers.item * np.int64(n_families) + families[answers.worker]
    group, place = np.unique(key, return_inverse=True)
    item = group // n_families
    items, workers = keys_of(crowd.item_ids), keys_of(crowd.worker_ids)
    both = items[answers.item], workers[answers.worker]
    order = np.lexsort((draws(seed, "member", *both), place))
    member = order[np.searchsorted(place[order], np.arange(len(group)))]
    n_groups = np.bincount(item, minlength=crowd.n_items)
    may = np.flatnonzero(n_groups >= 2)
    draw = draws(seed, "item", items)[may] / n_groups[may]
    chosen = may[draw < share]
    if len(may) and not len(chosen):  # few items: one is better than none
        chosen = may[[draw.argmin()]]
    # One group of every chosen item: the one with the smallest number.
    order = np.lexsort((draws(seed, "answer", *both)[member], item))
    hidden = order[np.searchsorted(item[order], chosen)]
    is_shown = ~np.isin(place, hidden)
    return replace(crowd, answers=answers.take(is_shown)), answers.take(np.sort(member[hidden]))


@dataclass(frozen=True, eq=False)
class Judged:
    """What the hidden answers say of a candidate."""

    score: float  # Mean of the logarithms of `likelihood`
    temperature: float  # Under which the hidden labels are likeliest
    likelihood: Floats  # [n_hidden], of every hidden label at the temperature for other items


class Judge:
    """Scores candidates by hidden answers."""

    def __init__(self, crowd: Crowd, hidden: Answers) -> None:
        shown, self.n_labels = crowd.latest, len(crowd.tagset.tags)
        outside = crowd.tagset.outside if crowd.tagset.outside >= 0 else self.n_labels
        self.token, key = _labels(crowd, hidden, outside, self.n_labels)
        self._shown, shown_key = _labels(crowd, shown, outside, self.n_labels)
        self.item = np.repeat(hidden.item, hidden.lengths)[hidden.codes >= 0]
        rows = np.union1d(key, shown_key)
        self._row, self._shown_row = np.searchsorted(rows, key), np.searchsorted(rows, shown_key)
        # A row is (worker, label before, label): all rows of a worker and label before are one
        # distribution; those of a label before and label are the population's.
        context, label = np.divmod(rows, self.n_labels)
        self._context = np.unique(context, return_inverse=True)[1]
        seen, before = np.unique(context % (self.n_labels + 1), return_inverse=True)
        self._n_before = len(seen)
        self._habit = before * self.n_labels + label

    def __len__(self) -> int:
        """Count the hidden labels."""
        return len(self.token)

    def judge(self, probs: NDArray[Any]) -> Judged:
        """Score a candidate."""
        # probs float [n_tokens, J]
        if not len(self):
            return Judged(0.0, 1.0, np.zeros(0))
        matrices = self._matrices(probs)[self._row]
        logs = np.log(np.maximum(probs[self.token].astype(np.float64), LEAST_PROB))
        logs -= logs.max(axis=1, keepdims=True)
        found = np.empty((len(TEMPERATURES), len(self)))
        for n, temperature in enumerate(TEMPERATURES):
            cooled = np.exp(logs / temperature)
            found[n] = (cooled * matrices).sum(axis=1) / cooled.sum(axis=1)
        items, place = np.unique(self.item, return_inverse=True)
        by_item = np.array([np.bincount(place, one, len(items)) for one in np.log(found)])
        total = by_item.sum(axis=1, keepdims=True)
        for_others = (total - by_item).argmax(axis=0)[place]
        likelihood = found[for_others, np.arange(len(self))]
        score = float(np.log(likelihood).mean())
        return Judged(score, TEMPERATURES[int(total.argmax())], likelihood)

    def _matrices(self, probs: NDArray[Any]) -> Floats:
        """Return P(label | true label, label before) of the workers' rows, float64 [n_rows, J]."""
        n_rows, size = len(self._context), self._n_before * self.n_labels
        n_contexts = int(self._context.max(initial=-1)) + 1
        found = np.empty((n_rows, self.n_labels))
        for j in range(self.n_labels):
            counts = np.bincount(self._shown_row, probs[self._shown, j], n_rows)
            totals = np.bincount(self._context, counts, n_contexts)[self._context]
            habits = np.bincount(self._habit, counts, size).reshape(-1, self.n_labels)
            plain = habits.sum(axis=0) + 0.1
            habits = habits + plain / plain.sum()
            habits /= habits.sum(axis=1, keepdims=True)
            own = counts + POPULATION * habits.ravel()[self._habit]
            found[:, j] = own / (totals + POPULATION)
        return found


def _labels(
    crowd: Crowd, answers: Answers, outside: int, n_labels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the token of every label given, and its number as (worker, label before, label)."""
    token = rows_of(crowd.offsets, answers.item)[1]
    before = np.empty(len(token), np.int64)
    before[1:] = answers.codes[:-1]
    before[answers.offset[:-1][answers.lengths > 0]] = outside
    before[before < 0] = outside
    worker = np.repeat(answers.worker.astype(np.int64), answers.lengths)
    given = answers.codes >= 0
    key = (worker * (n_labels + 1) + before) * n_labels + answers.codes
    return token[given], key[given]


# --------------------------------------------------------------------------------------------------
# The weights of candidates.


def weigh(
    likelihoods: Sequence[Floats],  # [n_hidden] of every candidate
    items: NDArray[np.integer],  # [n_hidden], the item of every hidden label
    prior: Floats,  # [n_candidates], the weights where nothing was hidden
    cost: Floats | float = 0.0,  # [n_candidates], what else speaks against one, per hidden label
) -> Floats:
    """Return the weights of candidates in the mixture, float64 [n_candidates], sum 1.

    A candidate has 1/e of the weight of the best if its mean log-likelihood is lower by one
    standard error of the difference (over items) and the share `TELLING` of the best one's loss.
    The likelihood of thousands of labels alone would choose a single candidate; but labels of an
    answer are no independent evidence, and methods that predict about as well make different
    mistakes, so that their mean is better than the best.
    """
    logs = np.log(np.array(likelihoods))
    if not logs.size:
        return np.asarray(prior / prior.sum())
    merits = logs.mean(axis=1) - cost
    best = int(merits.argmax())
    place = np.unique(items, return_inverse=True)[1]
    error = np.array([error_of_mean(one - logs[best], place) for one in logs])
    scale = error + TELLING * -logs[best].mean() + LEAST_PROB
    weights = np.exp((merits - merits[best]) / scale)
    weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    return np.asarray(weights / weights.sum())


def error_of_mean(values: Floats, place: NDArray[np.integer]) -> float:
    """Return the standard error of the mean of values that are independent between places only."""
    # values float64 [n]; place int [n]
    each = np.bincount(place, values) if place.max(initial=0) else values
    return float(np.sqrt(len(each) * each.var(ddof=1)) / len(place)) if len(each) > 1 else 0.0
