"""Who errs together, by the answers alone: one factor behind the agreements, and what is beyond it.

Workers who err independently agree by way of the truth only: the chance-corrected agreement of a
pair is then a_i a_j, where a is a worker's correlation with the truth (one factor; Spearman 1904).
Pairs that agree far beyond that – copies, one person under two names, one model under two prompts –
are the sparse rest (Varma et al. 2019), and have

    rho_ij = (k_ij - a_i a_j) / (1 - a_i a_j),

0 for independent mistakes, 1 for copies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from goldspan._arrays import draws, keys_of
from goldspan.aggregation.families.counting import Families
from goldspan.aggregation.kernels import (
    count_agreements,
    list_pairs,
    scatter_of_blocks,
    weighted_quantiles,
)
from goldspan.crowd import Crowd

# --------------------------------------------------------------------------------------------------
# How far pairs of workers agree beyond chance, with standard errors over blocks of items.


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
    """Pairs of workers and how far they agree."""

    left: Ints  # int64 [n_pairs], the first worker
    right: Ints  # int64 [n_pairs], the second one
    agreement: Floats  # [n_pairs]
    blocks: Floats  # [n_pairs], blocks of tokens in common
    variance: Floats  # [n_pairs], of the agreement, times the blocks
    draw: Floats  # [n_pairs], random numbers of the workers' ids, which decide among equals

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.left)

    def take(self, which: NDArray[Any]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


def pair_agreements(crowd: Crowd, known: NDArray[np.int16] | None = None) -> Pairs:
    """Measure the agreement of all pairs of workers with enough in common."""
    # Spans count by their types, whether a token begins one or not
    # known int16 [n_tokens]
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
# Who errs together: one factor behind the agreements, and what is beyond it.


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
ANY_FACTOR = 1 / 3
"""Variance of a factor of which nothing is known, -1 to 1."""
TAILS = (0.90, 0.95, 0.98)
"""Quantiles by which the tail below the fit is compared with the normal's."""


@dataclass(frozen=True, eq=False)
class Excess:
    """How far pairs agree beyond one factor."""

    pairs: Pairs
    rho: Floats  # [n_pairs], excess agreement as a share of what is possible
    error: Floats  # [n_pairs], its standard error
    z: Floats  # [n_pairs], rho over what pairs of this crowd scatter by
    joins: float  # z above which one pair alone is beyond the fit
    flags: float  # z above which it is although there are so many (Benjamini and Hochberg 1995)
    stands: float  # z above which it is although it is the largest of so many (Bonferroni)


def excess_of(pairs: Pairs, n_workers: int, apart: NDArray[np.bool_] | None = None) -> Excess:
    """Fit one factor to the agreements of pairs and say who is beyond it."""
    # Of fits from several starts the one that leaves least counts
    # apart bool [n_pairs]
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
    """Return which pairs have a say: of every worker those with most in common."""
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
    """Fit one factor again and again without the pairs that are far beyond it."""
    # allowed bool [n_pairs], pairs that may have a say
    keep, quantile = allowed, start
    weight = np.sqrt(np.minimum(pairs.blocks, np.quantile(pairs.blocks, MANY)))
    factor: Floats | None = None
    for _ in range(REFITS):
        factor, spread = _factors(pairs, weight, keep, n_workers, factor, quantile)
        one, two = factor[pairs.left], factor[pairs.right]
        common = np.clip(one * two, -0.99, 0.99)
        rest = 1 - common
        usual = np.median(pairs.variance[keep] / rest[keep])
        variance = (pairs.blocks * pairs.variance + BELIEF * usual * rest) / (pairs.blocks + BELIEF)
        sampling = np.sqrt(variance / pairs.blocks + 1e-6) / rest
        doubt = np.maximum(spread, _doubt(pairs, keep, factor, variance / pairs.blocks + 1e-6))
        unsure = _of_product(spread, one, two, pairs)
        # Who never disagree may be copies whatever their factors: rho is 1 with all of them.
        disagreements = np.maximum(pairs.blocks * (1 - pairs.agreement), 0.0)
        more = _of_product(doubt, one, two, pairs) - unsure
        unsure += more * disagreements / (1 + disagreements)
        error = np.sqrt(sampling**2 + unsure / rest**2)
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


def _of_product(variance: Floats, one: Floats, two: Floats, pairs: Pairs) -> Floats:
    """Return the variance of the pairs' products of factors, float64 [n_pairs]."""
    left, right = variance[pairs.left], variance[pairs.right]
    return np.asarray(one**2 * right + two**2 * left + left * right)


def _as_normal(t: Floats, free: Floats | float) -> Floats:
    """Turn values of Student's t into normal ones with the same tails (Wallace 1959)."""
    size = np.sqrt(free * np.log1p(t**2 / free))
    return np.asarray(np.copysign((8 * free + 1) / (8 * free + 3) * size, t))


def _factors(
    pairs: Pairs, weight: Floats, keep: NDArray[np.bool_], n_workers: int, start: Floats | None,
    quantile: float,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Fit k_ij = a_i a_j by weighted least absolute deviations, or as a quantile."""
    # returns float64 [n_workers]
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
    return factor, np.pi / 2 * off**2 / np.maximum(n_partners, 1)


def _doubt(pairs: Pairs, keep: NDArray[np.bool_], factor: Floats, variance: Floats) -> Floats:
    """Return the variance of the factors by how many answers tell them, float64 [n_workers]."""
    # Partners who hardly agree with anybody tell little
    # keep bool [n_pairs], pairs that have a say; factor float64 [n_workers]
    # variance float64 [n_pairs], of the agreements
    left, right = pairs.left[keep], pairs.right[keep]
    found = np.zeros(len(factor))
    for _ in range(2):  # squares are too large by the variance of what is squared
        telling = np.maximum(factor**2 - found, 0.0)
        told = np.full(len(factor), 1 / ANY_FACTOR)
        for me, other in ((left, right), (right, left)):
            told += np.bincount(me, telling[other] / variance[keep], len(factor))
        found = np.pi / 2 / told
    return found


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
    """Join workers whose pairs are flagged, if all of both sides' pairs are beyond the fit."""
    # What was joined stays so if its pairs together stand: n members are n - 1 findings
    # returns int64 [n_workers]
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
    """Join those who err together, the strongest clusters first."""
    # Of a cluster that was found one member stays
    # returns int64 [n_workers]
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
# The families of a crowd.


def find_families(crowd: Crowd) -> Families:
    """Find workers who err together by the answers alone.

    Pairs are flagged whose agreement is beyond what one common factor – the truth – explains,
    as measured by how far all pairs of this crowd scatter about it.

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
