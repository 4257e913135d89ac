"""Families of workers who err together, found from the answers alone; what their members count.

Workers who err independently agree by way of the truth only: the chance-corrected agreement of a
pair is then a_i a_j, where a is a worker's correlation with the truth (one factor; Spearman 1904).
Pairs that agree far beyond that – copies, one person under two names, one model under two prompts –
are the sparse rest (Varma et al. 2019), and have

    rho_ij = (k_ij - a_i a_j) / (1 - a_i a_j),

0 for independent mistakes, 1 for copies. n members of a family count as n / (1 + (n - 1) rho)
independent workers (Kish 1965).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import ndtri

from goldspan.aggregation.draws import draws, keys_of
from goldspan.aggregation.kernels import (
    count_agreements,
    list_pairs,
    scatter_of_blocks,
    weighted_quantiles,
)
from goldspan.crowd import Crowd
from goldspan.errors import Fault, FormatError, InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# --------------------------------------------------------------------------------------------------
# Agreement of pairs beyond chance, with standard errors over blocks of items.


BLOCK = 100
"""Tokens: longer items are cut into blocks of this size for standard errors."""
LEAST_BLOCKS = 5
"""Pairs with fewer blocks in common say nothing."""
MOST_RECORDS = 20_000_000
"""Pairs of answers to the same item that are looked at; of larger crowds some items do."""
MOST_LABELS = 64
"""Labels of which agreement by chance is reckoned: rarer ones hardly agree by chance."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of workers and how far they agree.

    Attributes:
        left: int64 [n_pairs], the first worker.
        right: int64 [n_pairs], the second one.
        agreement: float64 [n_pairs], sum of the labels' covariances over the root of the product of
            the sums of their variances, on the tokens that both labelled: 0 by chance, 1 for the
            same labels.
        blocks: float64 [n_pairs], blocks of tokens in common.
        variance: float64 [n_pairs], of the agreement, times the blocks.
        draw: float64 [n_pairs], random numbers of the workers' ids, which decide among equals.
    """

    left: Ints
    right: Ints
    agreement: Floats
    blocks: Floats
    variance: Floats
    draw: Floats

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.left)

    def take(self, which: NDArray[Any]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


def pair_agreements(crowd: Crowd, known: NDArray[np.int16] | None = None) -> Pairs:
    """Measure the agreement of all pairs of workers with enough in common.

    Spans count by their types, whether a token begins one or not.

    Args:
        crowd: The answers.
        known: int16 [n_tokens], -1 unknown; if given it is one more worker, the last, and only
            tokens where it is known count.
    """
    answers, n_workers = crowd.latest, crowd.n_workers
    kinds = _kinds(crowd)
    codes = np.where(answers.codes < 0, -1, kinds[answers.codes])
    item, worker, offset = answers.item.astype(np.int64), answers.worker, answers.offset
    if known is not None:
        truth = np.where(known < 0, -1, kinds[known])
        codes = np.where(truth[crowd.token_of] < 0, -1, codes)
        codes = np.concatenate([codes, truth])
        item = np.concatenate([item, np.arange(crowd.n_items)])
        worker = np.concatenate([worker, np.full(crowd.n_items, n_workers)])
        offset = np.concatenate([offset, offset[-1] + crowd.offsets[1:]])
        n_workers += 1
    order = np.argsort(item, kind="stable")
    bounds = np.searchsorted(item[order], np.arange(crowd.n_items + 1))
    per_item, every = np.diff(bounds), np.arange(crowd.n_items)
    step = 1 + int((per_item * (per_item - 1.0)).sum() / 2) // MOST_RECORDS
    seen = np.argsort(draws(0, "item", keys_of(crowd.item_ids)))[::step] if step > 1 else every
    arrays = (order, bounds, np.sort(seen), worker.astype(np.int64), np.diff(crowd.offsets))
    n_records = int((per_item * (per_item - 1) // 2)[seen].sum())
    pair = np.empty(n_records, np.int64)
    both = np.empty((n_records, 2), np.int64)
    blocks = np.empty(n_records, np.int64)
    list_pairs(*arrays, n_workers, BLOCK, pair, both, blocks)
    names, number = _numbered(pair, blocks, n_workers)
    shape = (len(names), min(int(kinds.max(initial=0)) + 1, MOST_LABELS))
    counts, agreed = np.zeros((*shape, 2)), np.zeros((len(names), 2))
    count_agreements(number, both, offset, codes, counts, agreed)
    total = np.maximum(agreed[:, 1], 1)
    shares = counts / total[:, None, None]
    own = (shares**2).sum(axis=1)
    chance = (shares[:, :, 0] * shares[:, :, 1]).sum(axis=1)
    spread = 1 - own
    scale = np.sqrt(spread[:, 0] * spread[:, 1])
    usable = scale > 0
    agreement = np.divide(
        agreed[:, 0] / total - chance, scale, out=np.zeros(shape[0]), where=usable
    )
    sums = np.zeros((len(names), 2))
    scatter_of_blocks(
        number, both, offset, codes, BLOCK, shares, own, chance, np.where(usable, scale, 1.0),
        np.where(spread > 0, spread, 1.0), agreed[:, 0] / total, agreement, sums,
    )  # fmt: skip
    n = np.maximum(sums[:, 1], 2)
    variance = sums[:, 0] / total**2 * n * n / (n - 1)
    left, right = np.divmod(names, n_workers)
    keys = np.append(keys_of(crowd.worker_ids), np.uint64(0))  # the truth has no id
    low, high = np.minimum(keys[left], keys[right]), np.maximum(keys[left], keys[right])
    found = Pairs(left, right, agreement, sums[:, 1], variance, draws(0, "pair", low, high))
    return found.take(usable & (sums[:, 1] >= LEAST_BLOCKS))


def _kinds(crowd: Crowd) -> Ints:
    """Number what labels mean, the most frequent first: types of spans, or plain labels."""
    codec, given = crowd.tagset, crowd.latest.codes
    kinds = (
        np.arange(len(codec.tags)) if codec.rules.is_plain else codec.type_of.astype(np.int64) + 1
    )
    often = np.bincount(kinds[given[given >= 0]], minlength=int(kinds.max(initial=0)) + 1)
    rank = np.empty(len(often), np.int64)
    rank[np.argsort(-often, kind="stable")] = np.arange(len(often))
    return np.asarray(rank[kinds], np.int64)


def _numbered(pair: Ints, blocks: Ints, n_workers: int) -> tuple[Ints, Ints]:
    """Return the pairs with enough in common, and every record's index among them, -1 without."""
    if n_workers * n_workers <= max(4 * len(pair), 1 << 22):
        total = np.bincount(pair, blocks, n_workers * n_workers)
        names = np.flatnonzero(total >= LEAST_BLOCKS)
        place = np.full(len(total), -1)
        place[names] = np.arange(len(names))
        return names, place[pair]
    every, inverse = np.unique(pair, return_inverse=True)
    kept = np.bincount(inverse, blocks, len(every)) >= LEAST_BLOCKS
    place = np.where(kept, np.cumsum(kept) - 1, -1)
    return every[kept], place[inverse]


# --------------------------------------------------------------------------------------------------
# One factor behind the agreements, and what is far beyond it.


ROUNDS = 20
"""Most rounds of a fit."""
STILL = 5e-3
"""Largest change of a factor at which it stands still."""
REFITS = 4
"""Most fits, each without the pairs that were beyond the one before."""
MANY = 0.9
"""Quantile of blocks in common from which on a pair has no more say in the first fit."""
BELIEF = 10.0
"""Blocks that a pair is believed to have had more, scattering as those of all pairs do."""
OUTLYING = 3.0
"""Pairs this many standard errors beyond the fit have no say in the next one."""
STARTS = (0.5, 0.35, 0.2)
"""Quantiles of the first fits: a low one heeds less who agrees much."""
LEVEL = 0.01
"""Share of flagged pairs that err independently."""
LEAST_PARTNERS = 3
"""Of a worker whose pairs can be told from the fit."""
PARTNERS = 50
"""Of a worker who have a say in the fit."""
LEAST_FACTOR = 0.05
"""What agreements are divided by at least."""
TAILS = (0.90, 0.95, 0.98)
"""Quantiles by which the tail below the fit is compared with the normal's."""


@dataclass(frozen=True, eq=False)
class Excess:
    """How far pairs agree beyond one factor.

    Attributes:
        pairs: The pairs.
        rho: float64 [n_pairs], excess agreement as a share of what is possible.
        error: float64 [n_pairs], its standard error.
        z: float64 [n_pairs], rho over what pairs of this crowd scatter by; -inf for pairs that
            cannot be told from the fit.
        joins: z above which one pair alone is beyond the fit.
        flags: z above which it is although there are so many (Benjamini and Hochberg 1995).
        stands: z above which it is although it is the largest of so many (Bonferroni).
    """

    pairs: Pairs
    rho: Floats
    error: Floats
    z: Floats
    joins: float
    flags: float
    stands: float


def excess_of(pairs: Pairs, n_workers: int, apart: NDArray[np.bool_] | None = None) -> Excess:
    """Fit one factor to the agreements of pairs and say who is beyond it.

    Of fits from several starts the one that leaves least counts: a large family, too, explains
    many agreements – as the truth that its members alone know – but not those of all others.

    Args:
        pairs: The pairs.
        n_workers: Number of workers.
        apart: bool [n_pairs], pairs that have no say in the fit.
    """
    allowed = _telling(pairs, n_workers)
    if apart is not None:
        allowed &= ~apart
    if not allowed.any():
        nothing = np.zeros(len(pairs))
        return Excess(pairs, nothing, nothing + 1, nothing - np.inf, *[np.inf] * 3)
    found = [_fit(pairs, n_workers, allowed, start) for start in STARTS]
    best = min(found, key=lambda fit: fit.left)
    z, keep = best.z, best.keep
    both = np.concatenate([pairs.left[keep], pairs.right[keep]])
    partners = np.bincount(both, minlength=n_workers)
    told = np.minimum(partners[pairs.left], partners[pairs.right]) >= LEAST_PARTNERS
    free = int(keep.sum()) - len(np.unique(both))
    if free < 1:
        told[:] = False
    z = np.where(told, _as_normal(z, max(free, 1)), -np.inf)
    below = -z[keep & told & (z < 0)]
    wide = 1.0
    if len(below):  # tails heavier than the normal's, as seen below the fit, where no family is
        seen = np.quantile(below, TAILS)
        wide = max(1.0, float((seen / ndtri((1 + np.array(TAILS)) / 2)).max()))
    n = max(1, int(told.sum()))
    steps = wide * -ndtri(LEVEL * np.arange(1, n + 1) / n)
    beyond = np.flatnonzero(np.sort(z[told])[::-1] > steps[: told.sum()])
    flags = steps[beyond[-1] if len(beyond) else 0]
    cuts = float(wide * -ndtri(LEVEL)), float(flags), float(steps[0])
    return Excess(pairs, best.rho, best.error, z, *cuts)


def _telling(pairs: Pairs, n_workers: int) -> NDArray[np.bool_]:
    """Return which pairs have a say: every worker's with those whom he has most in common with."""
    both = np.concatenate([pairs.left, pairs.right])
    # Ties are drawn: neighbours in the list of workers may be of one family.
    order = np.lexsort((np.tile(pairs.draw, 2), np.tile(-pairs.blocks, 2), both))
    n_partners = np.bincount(both, minlength=n_workers)
    place = np.arange(len(both)) - np.repeat(np.cumsum(n_partners) - n_partners, n_partners)
    found = np.zeros(len(pairs), np.bool_)
    found[order[place < PARTNERS] % len(pairs)] = True
    return found


class _Fit(NamedTuple):
    """One factor, and what pairs have beyond it: rho, its error, z; who had a say; what is left."""

    rho: Floats
    error: Floats
    z: Floats
    keep: NDArray[np.bool_]
    left: float


def _fit(pairs: Pairs, n_workers: int, allowed: NDArray[np.bool_], start: float) -> _Fit:
    """Fit one factor again and again without the pairs that are far beyond it.

    Args:
        pairs: The pairs.
        n_workers: Number of workers.
        allowed: bool [n_pairs], pairs that may have a say.
        start: Which quantile the first fit takes in the place of medians.
    """
    keep, quantile = allowed, start
    weight = np.sqrt(np.minimum(pairs.blocks, np.quantile(pairs.blocks, MANY)))
    factor: Floats | None = None
    for _ in range(REFITS):
        factor, doubt = _factors(pairs, weight, keep, n_workers, factor, quantile)
        common = np.clip(factor[pairs.left] * factor[pairs.right], -0.99, 0.99)
        rest = 1 - common
        usual = np.median(pairs.variance[keep] / rest[keep])
        variance = (pairs.blocks * pairs.variance + BELIEF * usual * rest) / (pairs.blocks + BELIEF)
        sampling = np.sqrt(variance / pairs.blocks + 1e-6) / rest
        error = np.sqrt(sampling**2 + doubt / rest**2)
        rho = (pairs.agreement - common) / rest
        scatter = _scatter(rho[keep], error[keep])
        t = rho / np.sqrt(error**2 + scatter**2)
        z = _as_normal(t, pairs.blocks + BELIEF)
        weight = 1 / np.sqrt(usual / pairs.blocks + scatter**2 + 1e-6)
        middle = np.median(z[keep]) if quantile < 0.5 else 0.0  # a low fit is low everywhere
        now = allowed & (z - middle < OUTLYING)
        if not now.any() or ((now == keep).all() and quantile == 0.5):
            break
        keep, quantile = now, 0.5
    left = np.minimum(np.abs(rho[allowed] / sampling[allowed]), OUTLYING).sum()
    return _Fit(rho, error, z, keep, float(left))


def _as_normal(t: Floats, free: Floats | float) -> Floats:
    """Turn values of Student's t into normal ones with the same tails (Wallace 1959)."""
    size = np.sqrt(free * np.log1p(t**2 / free))
    return np.asarray(np.copysign((8 * free + 1) / (8 * free + 3) * size, t))


def _factors(
    pairs: Pairs, weight: Floats, keep: NDArray[np.bool_], n_workers: int, start: Floats | None,
    quantile: float,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Fit k_ij = a_i a_j by weighted least absolute deviations, or as a quantile.

    Returns:
        float64 [n_workers], a; and float64 [n_pairs], the variance of a_i a_j.
    """
    left, right = pairs.left[keep], pairs.right[keep]
    me = np.concatenate([left, right])
    order = np.argsort(me, kind="stable")
    n_partners = np.bincount(me, minlength=n_workers)
    bounds = np.concatenate([[0], np.cumsum(n_partners)])
    me, other = me[order], np.concatenate([right, left])[order]
    agreement, own = np.tile(pairs.agreement[keep], 2)[order], np.tile(weight[keep], 2)[order]
    factor = start
    if factor is None:
        factor = np.sqrt(np.clip(_medians(agreement, own, bounds, quantile), 0.01, 1))
    for _ in range(ROUNDS):
        by = _away_from_zero(factor[other])
        new = np.clip(_medians(agreement / by, own * np.abs(by), bounds, quantile), -1, 1)
        moved = float(np.abs(new - factor).max(initial=0.0))
        factor = (factor + new) / 2
        if moved < STILL:
            break
    by = _away_from_zero(factor[other])
    off = 1.4826 * _medians(np.abs(agreement / by - factor[me]), own * np.abs(by), bounds)
    doubt = np.pi / 2 * off**2 / np.maximum(n_partners, 1)
    i, j = pairs.left, pairs.right
    return factor, factor[i] ** 2 * doubt[j] + factor[j] ** 2 * doubt[i]


def _away_from_zero(values: Floats) -> Floats:
    return np.where(np.abs(values) < LEAST_FACTOR, LEAST_FACTOR, values)


def _medians(values: Floats, weight: Floats, bounds: Ints, quantile: float = 0.5) -> Floats:
    """Return the weighted median of values[bounds[g]:bounds[g + 1]], [n_groups]; 0 of none."""
    found = np.zeros(len(bounds) - 1)
    weighted_quantiles(values, weight, bounds, quantile, found)
    return found


def _scatter(rho: Floats, error: Floats) -> float:
    """Return by how much pairs scatter beyond their standard errors, seen below 0 only."""
    low, high = 0.0, 2.0
    below = rho < 0
    if not below.any():
        return 0.0
    size, error = -rho[below], error[below]
    every = np.array([0, len(size)])
    for _ in range(30):
        middle = (low + high) / 2
        variance = error**2 + middle**2
        spread = 1.4826 * _medians(size / np.sqrt(variance), 1 / variance, every)[0]
        low, high = (middle, high) if spread > 1 else (low, middle)
    return low


def clusters(excess: Excess, n_workers: int) -> tuple[Ints, Floats]:
    """Join workers whose pairs are flagged, if all of both sides' pairs are beyond the fit.

    What was joined stays so if its pairs together stand: n members are n - 1 findings.

    Returns:
        int64 [n_workers], the first member of every worker's cluster; and float64 [n_workers], by
        first members, the mean z of the cluster's pairs times the root of its findings.
    """
    left, right, z = excess.pairs.left, excess.pairs.right, excess.z
    of = np.arange(n_workers)
    flagged = np.flatnonzero(z > excess.flags)
    weak = z <= excess.joins
    for p in flagged[np.argsort(-z[flagged], kind="stable")].tolist():
        one, two = of[left[p]], of[right[p]]
        if one == two:
            continue
        ours = ((of[left] == one) & (of[right] == two)) | ((of[left] == two) & (of[right] == one))
        if not (ours & weak).any():
            of[of == max(one, two)] = min(one, two)
    told = np.isfinite(z) & (of[left] == of[right])
    n_pairs = np.bincount(of[left][told], minlength=n_workers)
    mean = np.bincount(of[left][told], z[told], n_workers) / np.maximum(n_pairs, 1)
    findings = np.maximum(np.bincount(of, minlength=n_workers) - 1, 0)
    strength = mean * np.sqrt(findings)
    return np.where(strength[of] > excess.stands, of, np.arange(n_workers)), strength


def join_workers(pairs: Pairs, n_workers: int) -> Ints:
    """Join those who err together, the strongest clusters first.

    Of a cluster that was found one member stays: what the others agree on with anybody has no say
    any more, so that the rest of the crowd is judged as if they had never answered. Nobody joins
    the one who stays: he who errs with him need not err with the others.

    Returns:
        int64 [n_workers], number of every worker's family, in the order of the first members.
    """
    family, stays = np.arange(n_workers), np.zeros(n_workers, np.bool_)
    while len(pairs):
        excess = excess_of(pairs, n_workers)
        z = np.where(stays[pairs.left] | stays[pairs.right], -np.inf, excess.z)
        of, strength = clusters(replace(excess, z=z), n_workers)
        joined = of != np.arange(n_workers)
        if not joined.any():
            break
        joined &= strength[of] >= strength[of[joined]].max() / 2
        of = np.where(joined, of, np.arange(n_workers))
        family = of[family]
        stays[of[joined]] = True
        pairs = pairs.take(~(joined[pairs.left] | joined[pairs.right]))
    return np.unique(family, return_inverse=True)[1].astype(np.int64)


# --------------------------------------------------------------------------------------------------
# Families of workers, and what the answers of their members count.


COPIES = 0.8
"""Workers whose mistakes correlate so much are copies, and not those who know more than others."""
WEAK = 0.4
"""Found families of single labels that share less are not heeded: six of them count as two."""
LEAST_RHO = 0.1
"""Found families that err together less, as known truth tells, are none."""
CAUTION = 4.0
"""Weight of rho = 1 in that of a given family: a pair measured with a standard error of 1/2."""


@dataclass(frozen=True, eq=False)
class Families:
    """Which workers err together, and how much.

    Attributes:
        number: int64 [n_workers], family of every worker, numbered in the order of the first
            members; who errs alone has a number of his own.
        rho: float64 [n_families], correlation of the members' mistakes, 0 to 1; 0 of who is alone.
        worker_ids: Arrow string array [n_workers].
        given: Names of families that were given, by number.
        assumed: Numbers of families whose rho could not be estimated: 1 was taken.

    >>> import goldspan
    >>> rows = [{"item": n, "worker": w, "label": "xy"[n % 2]} for n in range(9) for w in "abc"]
    >>> crowd = goldspan.read_crowd(rows)
    >>> families = given_families(crowd, {"a": "one", "b": "one"})
    >>> families.names(), families.number.tolist()
    ({'a': 'one', 'b': 'one'}, [0, 0, 1])
    >>> families.answer_weights(crowd)[:3].tolist()
    [0.5, 0.5, 1.0]
    """

    number: Ints
    rho: Floats
    worker_ids: pa.Array
    given: Mapping[int, str] = field(default_factory=dict)
    assumed: frozenset[int] = frozenset()

    @cached_property
    def sizes(self) -> Ints:
        """Count the members of every family, int64 [n_families]."""
        return np.bincount(self.number, minlength=len(self.rho))

    def __bool__(self) -> bool:
        """Return whether any family has two members or more."""
        return bool((self.sizes > 1).any())

    def names(self) -> dict[str, str]:
        """Return the name of the family of every worker who has one, by worker id.

        Found ones are called "family 1" and so on; `families=` of the aggregators takes it.
        """
        found = np.flatnonzero(self.sizes > 1).tolist()
        called = {n: self.given.get(n, f"family {i + 1}") for i, n in enumerate(found)}
        pairs = zip(self.worker_ids.to_pylist(), self.number.tolist(), strict=True)
        return {worker: called[n] for worker, n in pairs if n in called}

    def on(self, worker_ids: pa.Array) -> Families:
        """Return the same families among other workers, found by id; newcomers err alone.

        Args:
            worker_ids: Arrow string array [n_workers].
        """
        place = pc.fill_null(pc.index_in(worker_ids, value_set=self.worker_ids), -1)
        known = np.asarray(place.to_numpy(zero_copy_only=False), np.int64)
        number = np.where(known < 0, -1, self.number[known])
        return self._renumbered(number, worker_ids)

    def _renumbered(self, number: Ints, worker_ids: pa.Array) -> Families:
        """Give workers with these numbers, -1 for who errs alone, their families."""
        alone = len(self.rho) + np.arange(len(number))
        kept, first, place = np.unique(
            np.where(number < 0, alone, number), return_index=True, return_inverse=True
        )
        order = np.argsort(first, kind="stable")  # in the order of the first members
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        rho = np.append(self.rho, np.zeros(len(number)))[kept[order]]
        old = kept[order].tolist()
        given = {n: self.given[k] for n, k in enumerate(old) if k in self.given}
        assumed = frozenset(n for n, k in enumerate(old) if k in self.assumed)
        return Families(rank[place.ravel()], rho, worker_ids, given, assumed)

    @cached_property
    def effective(self) -> Floats:
        """What every worker's whole family counts, n / (1 + (n - 1) rho), float64 [n_workers]."""
        return self.effective_of(self.sizes, np.arange(len(self.rho)))[self.number]

    def effective_of(self, size: NDArray[Any], family: NDArray[Any]) -> Floats:
        """Return what some members of families count together, n / (1 + (n - 1) rho).

        Args:
            size: int64 [n], members.
            family: int64 [n], their family.
        """
        return np.asarray(size / (1 + np.maximum(size - 1, 0) * self.rho[family]), np.float64)

    def answer_counts(self, crowd: Crowd) -> Floats:
        """Return how many independent answers the items have, float64 [n_items].

        Args:
            crowd: Latest answers count; its workers are looked up by id.
        """
        kin, answers = self.on(crowd.worker_ids), crowd.latest
        return np.bincount(
            answers.item, kin.weights(answers.item, answers.worker), crowd.n_items
        ).astype(np.float64)

    def answer_weights(self, crowd: Crowd) -> Floats:
        """Return what every latest answer counts, 1 / (1 + (n - 1) rho), float64 [n_answers].

        Args:
            crowd: The crowd of these families; n members of a worker's family answered the item.
        """
        answers = crowd.latest
        return self.weights(answers.item, answers.worker)

    def label_weights(self, crowd: Crowd) -> Floats:
        """Return the same of every label of the latest answers, float64 [n_labels].

        n members labelled the token: an answer may skip some. Skipped tokens count nothing.

        Args:
            crowd: The crowd of these families.
        """
        given = crowd.latest.codes >= 0
        found = np.zeros(len(given))
        found[given] = self.weights(crowd.token_of[given], crowd.worker_of[given])
        return found

    def weights(self, place: NDArray[Any], worker: NDArray[Any]) -> Floats:
        """Return what every label counts beside those of its family in the same place.

        Args:
            place: int64 [n], the item or token.
            worker: int64 [n].

        Returns:
            float64 [n].
        """
        own = self.number[worker]
        found = np.ones(len(worker))
        related = np.flatnonzero(self.sizes[own] > 1)
        key = place[related] * np.int64(len(self.rho)) + own[related]
        _, inverse, n = np.unique(key, return_inverse=True, return_counts=True)
        found[related] = 1 / (1 + (n[inverse] - 1) * self.rho[own[related]])
        return found

    def opinions(self, crowd: Crowd) -> list[Families | None]:
        """Return what may be believed of families that were found, the boldest first.

        Weak ones are left out: they count nearly as many as they are, and are easily mistaken. So
        are, in a second opinion, those that are neither copies nor give half of the answers to
        their items: it is open whether they err together or know more than the rest, and if they
        err the rest outvotes them.

        Args:
            crowd: The crowd of these families.

        Returns:
            One or two; None: everybody errs alone.
        """
        answers, size = crowd.latest, len(self.rho)
        key = answers.item * np.int64(size) + self.number[answers.worker]
        cells, n_own = np.unique(key, return_counts=True)
        item, own = np.divmod(cells, size)
        n_all = np.bincount(answers.item, minlength=crowd.n_items)[item]
        share = np.bincount(own, n_own, size) / np.maximum(np.bincount(own, n_all, size), 1)
        weak = self.rho < WEAK
        doubtful = weak | ((self.rho < COPIES) & (share < 0.5))
        bold, sure = (
            self._renumbered(np.where(left_out[self.number], -1, self.number), self.worker_ids)
            for left_out in (weak, doubtful)
        )
        if (bold.number == sure.number).all():
            return [bold or None]
        return [bold, sure or None]

    def thin(self, crowd: Crowd) -> Crowd:
        """Return the crowd with one answer per item and family: that of the first member."""
        answers = crowd.latest
        key = answers.item * np.int64(len(self.rho)) + self.number[answers.worker]
        first = np.unique(key, return_index=True)[1]
        if len(first) == len(answers):
            return crowd
        return replace(crowd, answers=answers.take(np.sort(first)))

    @property
    def note(self) -> str:
        """Say who they are, and what follows."""
        fewer, in_full = self._listed(is_telling=True), self._listed(is_telling=False)
        said = [f"workers who err together count as fewer: {fewer}"] if fewer else []
        said += [f"families who err independently count in full: {in_full}"] if in_full else []
        return "; ".join(said)

    def _listed(self, *, is_telling: bool) -> str:
        """List those families whose rho is seen, or those of whom it is not."""
        members: dict[str, list[str]] = {}
        for worker, name in self.names().items():
            members.setdefault(name, []).append(worker)
        said = []
        numbers = np.flatnonzero(self.sizes > 1).tolist()
        for number, ids in zip(numbers, members.values(), strict=True):
            rho = float(self.rho[number])
            if (rho >= SEEN) == is_telling:
                how = f"rho {rho:.2f}{', assumed' if number in self.assumed else ''}"
                said.append(f"{', '.join(ids[:SAID])}{' …' if len(ids) > SAID else ''} ({how})")
        more = f"; and {len(said) - SAID} more families" if len(said) > SAID else ""
        return "; ".join(said[:SAID]) + more


SEEN = 0.005
"""Least rho that is not shown as 0.00."""
SAID = 8
"""Most families, and members of each, that a note lists."""


def find_families(crowd: Crowd) -> Families:
    """Find workers who err together by the answers alone.

    Pairs are flagged whose agreement is beyond what one common factor – the truth – explains,
    as measured by how far all pairs of this crowd scatter about it.

    Args:
        crowd: The answers; of repeated ones the latest counts.

    >>> import goldspan
    >>> from goldspan.simulation import draw_truth, simulate_crowd
    >>> crowd = simulate_crowd(draw_truth(200), ["flip(0.2) x8"])
    >>> find_families(crowd).names()
    {}
    """
    n = crowd.n_workers
    pairs = pair_agreements(crowd)
    if not len(pairs):
        return Families(np.arange(n), np.zeros(n), crowd.worker_ids)
    number = join_workers(pairs, n)
    return Families(number, _mean_rho(number, pairs), crowd.worker_ids)


def _mean_rho(number: Ints, pairs: Pairs) -> Floats:
    """Return the mean of rho over the pairs of every family, who have no say in the fit."""
    own, size = number[pairs.left], int(number.max(initial=-1)) + 1
    inside = own == number[pairs.right]
    if not inside.any():
        return np.zeros(size)
    excess = excess_of(pairs, len(number), apart=inside)
    total = np.bincount(own[inside], excess.rho[inside], size)
    found = total / np.maximum(np.bincount(own[inside], minlength=size), 1)
    return np.asarray(np.clip(found, 0, 1))


def given_families(
    crowd: Crowd, families: Mapping[str, str], known: NDArray[np.int16] | None = None
) -> Families:
    """Take families that are known, and estimate how much their members err together.

    Args:
        crowd: The answers; workers who are not in it do not matter.
        families: Name of the family by worker id.
        known: int16 [n_tokens], known truth, -1 unknown: where members answered enough of it, rho
            is estimated by it, else by the answers. Of what cannot be estimated rho is 1.
    """
    number, given = _numbered_names(families, crowd.worker_ids)
    sizes = np.bincount(number)
    size = len(sizes)
    rho, assumed = np.zeros(size), sizes > 1
    if assumed.any():
        own, found, error = _within(crowd, number, known)
        weight = 1 / (error**2 + 1e-4)
        assumed &= np.bincount(own, minlength=size) == 0
        total = CAUTION + np.bincount(own, weight * found, size)
        rho = np.where(
            sizes > 1, np.clip(total / (CAUTION + np.bincount(own, weight, size)), 0, 1), 0
        )
    unknown = frozenset(np.flatnonzero(assumed).tolist())
    return Families(number, rho, crowd.worker_ids, given, unknown)


def _within(
    crowd: Crowd, number: Ints, known: NDArray[np.int16] | None
) -> tuple[Ints, Floats, Floats]:
    """Return the family, rho and its standard error of all pairs within families."""
    pairs = pair_agreements(crowd)
    inside = number[pairs.left] == number[pairs.right]
    excess = excess_of(pairs, crowd.n_workers, apart=inside)
    told = inside & np.isfinite(excess.z)
    own = number[pairs.left]
    if known is None:
        return own[told], excess.rho[told], excess.error[told]
    judged, rho, error = _by_truth(crowd, number, known)
    rest = told & ~np.isin(own, judged)
    return (
        np.concatenate([judged, own[rest]]),
        np.concatenate([rho, excess.rho[rest]]),
        np.concatenate([error, excess.error[rest]]),
    )


def _by_truth(crowd: Crowd, number: Ints, known: NDArray[np.int16]) -> tuple[Ints, Floats, Floats]:
    """Do the same where the truth is known: it is one more worker, who is always right."""
    pairs, n = pair_agreements(crowd, known), crowd.n_workers
    with_truth = pairs.right == n
    skill = np.full(n, np.nan)
    skill[pairs.left[with_truth]] = pairs.agreement[with_truth]
    own = pairs.take(~with_truth)
    own = own.take(number[own.left] == number[own.right])
    common = np.clip(skill[own.left] * skill[own.right], -0.99, 0.99)
    own, common = own.take(~np.isnan(common)), common[~np.isnan(common)]
    error = np.sqrt(own.variance / own.blocks) / (1 - common)
    return number[own.left], (own.agreement - common) / (1 - common), error


# --------------------------------------------------------------------------------------------------
# The parameter `families` of the aggregators.


def check_families(families: Any) -> None:
    """Reject what is neither "auto", "none", a file, a mapping, nor `Families`.

    Raises:
        InputError: It is something else, or a name in the mapping is empty.
    """
    if isinstance(families, Mapping):
        _check_names(families)
    elif not isinstance(families, str | Path | Families) or not str(families):
        raise InputError(
            'families must be "auto", "none", a file with columns worker and family, or a mapping '
            f"from worker ids to names of families, not {families!r}"
        )


def _check_names(families: Mapping[Any, Any]) -> None:
    bad = [
        worker for worker, name in families.items() if not _is_name(worker) or not _is_name(name)
    ]
    if bad:
        raise InputError(
            "families must give names to workers: text that is not empty, but "
            + ", ".join(f"{worker!r} has {families[worker]!r}" for worker in bad[:SAID])
        )


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and bool(str(value).strip())


def read_families(path: str | Path) -> dict[str, str]:
    """Read the families of workers from a CSV file with columns worker and family.

    Workers whose family is empty err alone, as do those who are not in the file.

    Args:
        path: The file; other columns do not matter.

    Raises:
        FormatError: There is no such file, it is no CSV, a column is missing or there twice, a row
            has other cells than columns, a worker is empty or has two families; all faults are
            listed.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError([Fault(f"it is not UTF-8: {error.reason}", str(path))]) from None
    except OSError:
        message = 'there is no such file; families are "auto", "none", or a file'
        raise FormatError([Fault(message, str(path))]) from None
    reader = csv.reader(lines)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise FormatError([Fault(f"it is no CSV: {error}", str(path), reader.line_num)]) from None
    head = [name.strip() for name in rows[0][1]] if rows else []
    if [head.count(name) for name in ("worker", "family")] != [1, 1]:
        seen = ", ".join(head) or "nothing"
        message = f"a table of families has columns worker and family, with a comma, not {seen}"
        if {"worker", "family"} <= set(head):
            message = f"a table of families has the columns worker and family once, not {seen}"
        raise FormatError([Fault(message, str(path), 1, kind="header")])
    found: dict[str, str] = {}
    faults: list[Fault] = []
    for line, row in rows[1:]:
        if not any(map(str.strip, row)):
            continue
        cells = {name: cell.strip() for name, cell in zip(head, row, strict=False)}
        worker = cells.get("worker", "")
        message = f"{len(row)} cells for {len(head)} columns" if len(row) != len(head) else ""
        message = message or _clash(worker, cells["family"], found)
        if message:
            faults.append(Fault(message, str(path), line, worker=worker, kind="family"))
    if faults:
        raise FormatError(faults)
    return {worker: name for worker, name in found.items() if name}


def _clash(worker: str, family: str, found: dict[str, str]) -> str:
    """Take the family of a worker, and return what is wrong with it, "" if nothing is."""
    if not worker:
        return "the worker is empty"
    known = found.setdefault(worker, family)
    if known == family:
        return ""
    return f"the worker is in {f'family {known!r}' if known else 'no family'} already"


def names_nobody(families: Any) -> bool:
    """Return whether a file of families has a heading and names no family."""
    if not isinstance(families, str | Path) or families in {"auto", "none"}:
        return False
    return Path(families).is_file() and not read_families(families)  # a pipe can be read once


def families_for(
    families: Any, crowd: Crowd, known: NDArray[np.int16] | None = None
) -> Families | None:
    """Find or take the families of a crowd; None where everybody errs alone.

    Args:
        families: "auto", "none", a file as for `read_families`, a mapping from worker ids to names,
            or `Families`.
        crowd: The crowd.
        known: As for `given_families`; of families that were found, those whose members do not err
            together where the truth is known, but know more than others, are none.

    Raises:
        InputError: A worker who is given a family is not in the crowd.
    """
    if families == "auto":
        found: Families | None = _measured(find_families(crowd), crowd, known)
    elif families == "none":
        found = None
    elif isinstance(families, Families):
        found = families.on(crowd.worker_ids)
    else:
        given = families if isinstance(families, Mapping) else read_families(families)
        check_known(given, crowd.worker_ids)
        found = given_families(crowd, given, known)
    return found or None


def _measured(found: Families, crowd: Crowd, known: NDArray[np.int16] | None) -> Families:
    """Measure found families by known truth, as far as there is enough; rho of 0 is no family."""
    if not found or known is None or not (known >= 0).any():
        return found
    own, rho, error = _by_truth(crowd, found.number, known)
    size, weight = len(found.rho), 1 / (error**2 + 1e-4)
    total = CAUTION * found.rho + np.bincount(own, weight * rho, size)
    new = np.clip(total / (CAUTION + np.bincount(own, weight, size)), 0, 1)
    is_none = new < LEAST_RHO
    measured = replace(found, rho=np.where(found.sizes > 1, new, 0.0))
    number = np.where(is_none[found.number], -1, found.number)
    return measured._renumbered(number, crowd.worker_ids)  # noqa: SLF001 - of this module


def check_known(families: Mapping[str, str], worker_ids: pa.Array) -> None:
    """Reject families of workers who are not there.

    Raises:
        InputError: There are some.
    """
    there = set(worker_ids.to_pylist())
    unknown = [str(worker) for worker in families if str(worker) not in there]
    if unknown:
        more = f" and {len(unknown) - SAID} more" if len(unknown) > SAID else ""
        raise InputError(
            f"families: no worker {', '.join(map(repr, unknown[:SAID]))}{more} among the "
            f"{len(there)} workers"
        )


def as_copies(families: Mapping[str, str], worker_ids: pa.Array) -> Families:
    """Take families whose members are as one: rho is 1 where there are no answers to tell it by.

    Args:
        families: Name of the family by worker id.
        worker_ids: Arrow string array [n_workers].

    Raises:
        InputError: A worker is not there, or a name is empty.
    """
    check_families(families)
    check_known(families, worker_ids)
    number, given = _numbered_names(families, worker_ids)
    assumed = np.bincount(number) > 1
    unknown = frozenset(np.flatnonzero(assumed).tolist())
    return Families(number, assumed.astype(np.float64), worker_ids, given, unknown)


def _numbered_names(
    families: Mapping[str, str], worker_ids: pa.Array
) -> tuple[Ints, dict[int, str]]:
    """Number families in the order of the first members; and return their names."""
    names = {str(worker): str(family).strip() for worker, family in families.items()}
    first: dict[tuple[bool, str], int] = {}
    keys = [(w in names, names.get(w, w)) for w in worker_ids.to_pylist()]
    number = np.array([first.setdefault(key, len(first)) for key in keys], np.int64)
    return number, {n: name for (is_named, name), n in first.items() if is_named}
