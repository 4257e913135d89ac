"""Who errs together, by the answers alone: two tests propose families, and hidden answers decide.

Workers who err independently agree by way of the truth only. Pairs that agree far beyond that –
copies, one person under two names, one model under two prompts – have a positive

    rho_kl = (agreement - expected) / (most possible - expected),

0 for independent mistakes, 1 for copies. Two tests reckon what is expected:

* One factor (Spearman 1904; its sparse rest: Varma et al. 2019): the chance-corrected agreement is
  a_k a_l, whoever is the majority. It holds for workers whose mistakes do not depend on the class.
* Confusion matrices: the agreement is sum_j q(j) sum_c A^k(j, c) A^l(j, c), with q the posterior of
  Dawid and Skene's model without the pair. It holds for all independent workers; but where half of
  the answers are a family's, q is what the family says, and the others look like one.

A family is believed if hidden answers of others are clearly likelier with it, or if confusion
matrices tell it and they are no less likely.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri, softmax

from goldspan._arrays import draws, keys_of
from goldspan.aggregation.families.counting import COPIES, Families
from goldspan.aggregation.kernels import list_pairs, soft_labels, weighted_quantiles
from goldspan.crowd import Crowd

# --------------------------------------------------------------------------------------------------
# Labels, and pairs of workers who labelled the same tokens.


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Family = tuple[int, ...]  # Numbers of workers, increasing
BLOCK = 100
"""Tokens: longer items are cut into blocks of this size for standard errors."""
LEAST_BLOCKS = 5
"""Pairs with fewer blocks in common say nothing."""
MOST_KINDS = 16
"""Labels that are told apart: rarer ones count as one."""
MOST_CELLS = 5_000_000
"""Of all confusion matrices."""
MOST_SEEN = 5_000_000
"""Pairs of labels of a token, times the kinds of labels: of larger crowds some items do."""
POPULATION = 2.0
"""Labels of a worker and true label beside which the whole crowd's matrix counts half."""
EM_ROUNDS, MOVED = 15, 1e-2
"""Most rounds of Dawid and Skene's model, and the mean change at which it stands still."""


class Labels(NamedTuple):
    """Tokens with two labels or more; those of a block with the same labels stand there once."""

    bounds: Ints  # int64 [n + 1]
    worker: Ints  # int64 [n_labels]
    code: Ints  # int64 [n_labels]
    times: Floats  # [n], such tokens in the block
    block: Ints  # int64 [n], increasing
    item: Ints  # int64 [n]
    known: Floats  # [n, J], 0, or -inf of labels that are known not to be the true one
    n_workers: int

    @classmethod
    def of(cls, crowd: Crowd, known: NDArray[np.int16] | None = None) -> Labels:
        """Read the labels of a crowd; of known truth (int16 [n_tokens]) only the tokens with it."""
        kinds, n = _kinds(crowd), crowd.n_workers
        size = min(
            int(kinds.max(initial=0)) + 1, MOST_KINDS, max(2, int((MOST_CELLS / max(n, 1)) ** 0.5))
        )
        kinds = np.minimum(kinds, size - 1)
        truth = np.full(crowd.n_tokens, -1)
        codes, token, worker = crowd.latest.codes, crowd.token_of, crowd.worker_of
        per_item = np.bincount(crowd.latest.item, minlength=crowd.n_items)
        n_pairs = (np.diff(crowd.offsets) * per_item * (per_item - 1.0) / 2).sum()
        item = np.repeat(np.arange(crowd.n_items), np.diff(crowd.offsets))
        seen = np.ones(crowd.n_tokens, np.bool_)
        if (share := MOST_SEEN / max(n_pairs * size, 1)) < 1:
            seen = (draws(0, "seen", keys_of(crowd.item_ids)) < share)[item]
        if known is not None:
            truth = np.where(known < 0, -1, kinds[known])
            seen &= truth >= 0
        given = np.flatnonzero((codes >= 0) & seen[token])
        token, worker, code = token[given], worker[given].astype(np.int64), kinds[codes[given]]
        name = np.random.default_rng(0).integers(1 << 40, size=(n, size)) * 1.0
        pattern = np.bincount(token, name[worker, code], crowd.n_tokens) % (1 << 30) + 64 * truth
        block = np.cumsum((np.arange(crowd.n_tokens) - crowd.offsets[:-1][item]) % BLOCK == 0)
        order = np.flatnonzero(np.bincount(token, minlength=crowd.n_tokens) > 1)
        key = (block[order] << 32) + pattern[order].astype(np.int64)
        by_key = np.argsort(key, kind="stable")
        order, key = order[by_key], key[by_key]
        new = np.diff(key, prepend=-1) != 0
        first = order[new]
        place = np.full(crowd.n_tokens, -1)
        place[first] = np.arange(len(first))
        row = place[token]
        kept = np.flatnonzero(row >= 0)
        kept = kept[np.argsort(row[kept] * n + worker[kept], kind="stable")]
        bounds = np.append(0, np.cumsum(np.bincount(row[kept], minlength=len(first))))
        count = np.diff(np.append(np.flatnonzero(new), len(order))).astype(np.float64)
        is_out = (truth[first, None] >= 0) & (truth[first, None] != np.arange(size))
        known_not = np.where(is_out, -np.inf, 0.0)
        of = worker[kept], code[kept], count, block[first], item[first]
        return cls(bounds, *of, known_not, n)  # type: ignore[arg-type]

    @property
    def token(self) -> Ints:
        """Return the token of every label, int64 [n_labels]."""
        return np.repeat(np.arange(len(self.times)), np.diff(self.bounds))

    def take(self, which: Flags) -> Labels:
        """Return some of the tokens."""
        own, n = which[self.token], np.diff(self.bounds)[which]
        return self._replace(
            bounds=np.append(0, np.cumsum(n)), worker=self.worker[own], code=self.code[own],
            times=self.times[which], block=self.block[which], item=self.item[which],
            known=self.known[which],
        )  # fmt: skip

    def fit(self, kin: Families) -> tuple[Floats, Floats]:
        """Fit Dawid and Skene's model: log-prior [J] and log-matrices [n_workers, J, J]."""
        size, share = self.known.shape[1], kin.weights(self.token, self.worker)
        prior, probs = np.zeros(size), np.zeros_like(self.known)
        matrices = np.full((self.n_workers, size, size), 0.3 / max(size - 1, 1))
        matrices += (0.7 - 0.3 / max(size - 1, 1)) * np.eye(size)  # at first the votes count
        for _ in range(EM_ROUNDS):
            old, probs, counts = probs, self.known + prior, np.zeros_like(matrices)
            arrays = self.bounds, self.worker, self.code, self.times, share
            soft_labels(*arrays, np.log(matrices), counts, probs)
            usual = counts.sum(axis=0) + 0.1
            matrices = counts + POPULATION * (usual / usual.sum(axis=1, keepdims=True))
            matrices /= matrices.sum(axis=2, keepdims=True)
            shares = (self.times[:, None] * probs).sum(axis=0) + 1
            prior = np.log(shares / shares.sum())
            if (self.times[:, None] * np.abs(probs - old)).sum() <= MOVED * self.times.sum():
                break
        return prior, np.log(matrices)

    def evidence(
        self, prior: Floats, logs: Floats, kin: Families, apart: Ints
    ) -> tuple[Floats, Floats]:
        """Return log p(t, labels) of tokens [n, J], and what of it a label's group says."""
        # apart int64 [n_workers], groups; returns also float64 [n_labels, J]
        token = self.token
        ours: NDArray[Any] = logs[self.worker, :, self.code]
        if kin:
            ours *= kin.weights(token, self.worker)[:, None]
        every = np.stack([np.bincount(token, x, len(self.times)) for x in ours.T], axis=1)
        if len(np.unique(apart)) < len(apart):
            own = np.unique(token * self.n_workers + apart[self.worker], return_inverse=True)[1]
            ours = np.stack([np.bincount(own, x) for x in ours.T], axis=1)[own]
        return self.known + prior + every, ours


class Common(NamedTuple):
    """Pairs of labels that two workers gave to the same tokens."""

    number: Ints  # int64 [n_common], the pair of workers
    one: Ints  # int64 [n_common], the label of the first worker
    two: Ints  # int64 [n_common]
    cell: Ints  # int64 [n_common], the pair and block
    pair_of: Ints  # int64 [n_cells], the pair of a cell


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of workers and how far they agree."""

    left: Ints  # int64 [n_pairs], the first worker
    right: Ints  # int64 [n_pairs], the second one
    agreement: Floats  # [n_pairs], corrected for chance
    blocks: Floats  # [n_pairs], blocks of tokens in common
    variance: Floats  # [n_pairs], of the agreement, times the blocks
    draw: Floats  # [n_pairs], random numbers of the workers' ids, which decide among equals

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.left)

    def take(self, which: NDArray[Any]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


def pair_agreements(crowd: Crowd, labels: Labels | None = None) -> tuple[Pairs, Common]:
    """Measure the agreement of all pairs of workers with enough in common."""
    # Spans count by their types, whether a token begins one or not
    labels = Labels.of(crowd) if labels is None else labels
    n, per_token, size = labels.n_workers, np.diff(labels.bounds), labels.known.shape[1]
    pair, one, two = np.empty((3, int((per_token * (per_token - 1) // 2).sum())), np.int64)
    list_pairs(labels.bounds, labels.worker, n, pair, one, two)
    n_blocks, token = int(labels.block.max(initial=0)) + 1, labels.token
    key, cell = np.unique(pair * n_blocks + labels.block[token[one]], return_inverse=True)
    names, pair_of, many = np.unique(key // n_blocks, return_inverse=True, return_counts=True)
    place = np.where(many >= LEAST_BLOCKS, np.cumsum(many >= LEAST_BLOCKS) - 1, -1)
    pair_of, names = place[pair_of], names[place >= 0]
    blocks = many[place >= 0].astype(np.float64)
    kept = np.flatnonzero(pair_of[cell] >= 0)
    number, cell = pair_of[cell[kept]], (np.cumsum(pair_of >= 0) - 1)[cell[kept]]
    common = Common(number, one[kept], two[kept], cell, pair_of[pair_of >= 0])
    p, x, y = common.number, labels.code[common.one], labels.code[common.two]
    count, hit = labels.times[token[common.one]], x == y
    total = np.bincount(p, count, len(names))
    a, b = (
        np.bincount(p * size + z, count, len(names) * size).reshape(-1, size) / total[:, None]
        for z in (x, y)
    )
    same, chance = np.bincount(p, count * hit, len(names)) / total, (a * b).sum(axis=1)
    own_a, own_b = (a**2).sum(axis=1), (b**2).sum(axis=1)
    scale = np.sqrt((1 - own_a) * (1 - own_b))
    scale = np.where(scale > 0, scale, np.inf)
    agreement = (same - chance) / scale
    part = (hit - same[p] - b[p, x] - a[p, y] + 2 * chance[p]) / scale[p]
    part += agreement[p] * (a[p, x] - own_a[p]) / np.maximum(1 - own_a, 1e-12)[p]
    part += agreement[p] * (b[p, y] - own_b[p]) / np.maximum(1 - own_b, 1e-12)[p]
    squares = np.bincount(common.pair_of, np.bincount(cell, count * part) ** 2, len(names))
    variance = squares / total**2 * blocks**2 / np.maximum(blocks - 1, 1)
    left, right = np.divmod(names, max(n, 1))
    keys = keys_of(crowd.worker_ids)
    low, high = np.minimum(keys[left], keys[right]), np.maximum(keys[left], keys[right])
    draw = draws(0, "pair", low, high)
    return Pairs(left, right, agreement, blocks, variance, draw), common


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


# --------------------------------------------------------------------------------------------------
# Whose agreement is beyond what a test expects.


LEVEL = 0.01
"""Share of flagged pairs that err independently."""
MOST_TRIED = 8
"""Families that a test proposes at once."""
TAILS = (0.90, 0.95, 0.98)
"""Quantiles by which the tail below the middle is compared with the normal's."""


class Excess(NamedTuple):
    """How far pairs agree beyond what is expected of independent workers."""

    pairs: Pairs
    rho: Floats  # [n_pairs], excess agreement as a share of what is possible
    error: Floats  # [n_pairs], its standard error
    z: Floats  # [n_pairs], rho over what pairs of this crowd scatter by; -inf if it is not known
    flags: float  # z above which a pair is beyond (Benjamini and Hochberg 1995)
    stands: float  # z above which it is although it is the largest of so many (Bonferroni)

    @classmethod
    def of(cls, rho: Floats, error: Floats, known: Flags, pairs: Pairs) -> Excess:
        """Compare pairs with how all pairs of this crowd scatter, seen below the middle only."""
        z, n = rho / error, max(1, int(known.sum()))
        middle = max(float(np.median(z[known])), 0.0) if known.any() else 0.0
        below, wide = middle - z[known & (z < middle)], 1.0
        if len(below) > 1 / (1 - TAILS[0]):
            normal = ndtri((1 + np.array(TAILS)) / 2)
            wide = max(1.0, float((np.quantile(below, TAILS) / normal).max()))
        z = np.where(known, (z - middle) / wide, -np.inf)
        steps = -ndtri(LEVEL * np.arange(1, n + 1) / n)
        beyond = np.flatnonzero(np.sort(z)[::-1][:n] > steps)
        flags = steps[beyond[-1] if len(beyond) else 0]
        return cls(pairs, rho, error, z, float(flags), float(steps[0]))

    def clusters(self, n_workers: int) -> list[Family]:
        """Join workers whose pairs are flagged if all of both sides' pairs are; strongest first."""
        # What was joined stays so if its pairs together stand: n members are n - 1 findings
        left, right, z = self.pairs.left, self.pairs.right, self.z
        of = np.arange(n_workers)
        flagged = np.flatnonzero(z > self.flags)
        weak = z <= -ndtri(LEVEL)
        for p in flagged[np.argsort(-z[flagged], kind="stable")].tolist():
            one, two = of[left[p]], of[right[p]]
            ours = (of[left] == one) & (of[right] == two) | (of[left] == two) & (of[right] == one)
            if one != two and not (ours & weak).any():
                of[of == max(one, two)] = min(one, two)
        found = {}
        for first in np.unique(of[left[flagged]]).tolist():
            members = np.flatnonzero(of == first)
            inside = np.isfinite(z) & (of[left] == first) & (of[right] == first)
            strength = z[inside].mean() * np.sqrt(len(members) - 1) if inside.any() else 0.0
            if strength > self.stands:
                found[tuple(members.tolist())] = strength
        return sorted(found, key=lambda one: -found[one])[:MOST_TRIED]


# --------------------------------------------------------------------------------------------------
# The first test: one factor.


ROUNDS, STILL = 20, 5e-3
"""Most rounds of a fit, and the largest change of a factor at which it stands still."""
BELIEF = 10.0
"""Blocks that a pair is believed to have had more, scattering as those of all pairs do."""
REFITS, OUTLYING = 4, 3.0
"""Most fits, and the standard errors beyond one at which a pair has no say in the next."""
STARTS = (0.5, 0.35, 0.2)
"""Quantiles of the first fits: a low one heeds less who agrees much."""
LEAST_PARTNERS = 3
"""Of a worker whose pairs can be told from the fit."""
LEAST_FACTOR = 0.05
"""What agreements are divided by at least."""


def beyond_one_factor(pairs: Pairs, n_workers: int) -> Excess:
    """Fit one factor to the agreements of pairs and say who is beyond it."""
    # Of fits from several starts the one that leaves least counts
    fits = [_fit(pairs, n_workers, start) for start in STARTS]
    rho, error, keep = min(
        fits, key=lambda fit: np.minimum(np.abs(fit[0] / fit[1]), OUTLYING).sum()
    )
    return Excess.of(rho, error, _partnered(pairs, keep, n_workers), pairs)


def _partnered(pairs: Pairs, keep: Flags, n_workers: int) -> Flags:
    """Return which pairs are of workers who have enough other partners."""
    partners = np.bincount(np.append(pairs.left[keep], pairs.right[keep]), minlength=n_workers)
    return np.minimum(partners[pairs.left], partners[pairs.right]) >= LEAST_PARTNERS


def _fit(pairs: Pairs, n_workers: int, quantile: float) -> tuple[Floats, Floats, Flags]:
    """Fit one factor again and again without the pairs that are far beyond it."""
    # returns rho and its standard error [n_pairs], and who had a say
    keep, factor = np.ones(len(pairs), np.bool_), None
    for _ in range(REFITS):
        factor, spread = _factors(pairs.take(keep), n_workers, factor, quantile)
        one, two = factor[pairs.left], factor[pairs.right]
        common = np.clip(one * two, -0.99, 0.99)
        rest = 1 - common
        usual = np.median(pairs.variance[keep] / rest[keep])
        variance = (pairs.blocks * pairs.variance + BELIEF * usual * rest) / (pairs.blocks + BELIEF)
        left, right = spread[pairs.left], spread[pairs.right]
        # Who never disagree may be copies whatever their factors: rho is 1 with all of them
        unsure = one**2 * right + two**2 * left + left * right
        unsure *= 1 - 1 / (1 + np.maximum(pairs.blocks * (1 - pairs.agreement), 0))
        error = np.sqrt(variance / pairs.blocks + unsure + 1e-6) / rest
        rho = (pairs.agreement - common) / rest
        z = rho / error
        middle = np.median(z[keep]) if quantile < 0.5 else 0.0  # a low fit is low everywhere
        now = z - middle < OUTLYING
        if not now.any() or ((now == keep).all() and quantile == 0.5):
            break
        keep, quantile = now, 0.5
    return rho, error, keep


def _factors(
    pairs: Pairs, n_workers: int, factor: Floats | None, quantile: float
) -> tuple[Floats, Floats]:
    """Fit k_ij = a_i a_j by weighted least absolute deviations, or as a quantile."""
    # factor float64 [n_workers], where the fit begins; returns also its variance
    me = np.append(pairs.left, pairs.right)
    order = np.argsort(me, kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(me, minlength=n_workers)))
    other = np.append(pairs.right, pairs.left)[order]
    agreement, weight = (np.tile(x, 2)[order] for x in (pairs.agreement, np.sqrt(pairs.blocks)))
    found = np.zeros(n_workers)
    if factor is None:
        weighted_quantiles(agreement, weight, bounds, quantile, found)
        factor = np.sqrt(np.clip(found, 0.01, 1))
    for _ in range(ROUNDS):
        by = factor[other]
        by = np.where(np.abs(by) < LEAST_FACTOR, LEAST_FACTOR, by)
        weighted_quantiles(agreement / by, weight * np.abs(by), bounds, quantile, found)
        new = np.clip(found, -1, 1)
        moved = float(np.abs(new - factor).max(initial=0.0))
        factor = (factor + new) / 2
        if moved < STILL:
            break
    off = np.abs(agreement / by - np.repeat(factor, np.diff(bounds)))
    weighted_quantiles(off, weight * np.abs(by), bounds, 0.5, found)
    return factor, np.pi / 2 * (1.4826 * found) ** 2 / np.maximum(np.diff(bounds), 1)


# --------------------------------------------------------------------------------------------------
# The second test: confusion matrices, and a posterior without the pair and its families.


def beyond_matrices(labels: Labels, pairs: Pairs, common: Common, kin: Families) -> Excess:
    """Say whose agreement is beyond what confusion matrices explain, some families being known."""
    prior, logs = labels.fit(kin)
    every, ours = labels.evidence(prior, logs, kin, kin.number)
    p, one, two, matrices = common.number, common.one, common.two, np.exp(logs)
    is_own = kin.number[labels.worker[one]] == kin.number[labels.worker[two]]
    alike = (matrices[pairs.left] * matrices[pairs.right]).sum(axis=2)
    rest = every[labels.token[one]] - ours[one] - np.where(is_own[:, None], 0.0, ours[two])
    expected = (softmax(rest, axis=1) * alike[p]).sum(axis=1)
    count = labels.times[labels.token[one]]
    beyond = count * ((labels.code[one] == labels.code[two]) - expected)
    possible = np.maximum(np.bincount(p, count * (1 - expected), len(pairs)), 1e-9)
    variance = np.bincount(common.pair_of, np.bincount(common.cell, beyond) ** 2, len(pairs))
    least = np.bincount(p, count * expected * (1 - expected), len(pairs))
    error = np.sqrt(np.maximum(variance, least) + 1) / possible
    known = _partnered(pairs, kin.number[pairs.left] != kin.number[pairs.right], labels.n_workers)
    return Excess.of(np.bincount(p, beyond, len(pairs)) / possible, error, known, pairs)


# --------------------------------------------------------------------------------------------------
# Hidden answers decide.


BARELY = 2.0
"""Standard errors by which hidden answers must be likelier, where confusion matrices tell that
somebody errs together; and by which their family must be ahead of one of the first test."""


def _likelihoods(labels: Labels, half: Flags, kin: Families, apart: Ints) -> Floats:
    """Return log-probabilities of labels, by those of others and by matrices of other items."""
    # apart int64 [n_workers], groups of workers who are hidden together; returns [n_labels]
    found = np.zeros(len(labels.worker))
    for shown in (half, ~half):
        prior, logs = labels.take(shown).fit(kin)
        hidden = labels.take(~shown)
        every, ours = hidden.evidence(prior, logs, kin, apart)
        rest, own = every[hidden.token] - ours, logs[hidden.worker, :, hidden.code]
        found[~shown[labels.token]] = logsumexp(rest + own, axis=1) - logsumexp(rest, axis=1)
    return found


def _ahead(labels: Labels, one: Floats, other: Floats) -> tuple[float, float]:
    """Return by how much all labels are likelier, and its standard error over blocks."""
    more = np.bincount(labels.block[labels.token], labels.times[labels.token] * (one - other))
    more = more[np.unique(labels.block)]
    return float(more.sum()), float(np.sqrt(len(more)) * more.std())


# --------------------------------------------------------------------------------------------------
# The families of a crowd.


MOST_FAMILIES, LEAST_RHO = 20, 0.1
"""Families that are looked for; those that err together less are none."""


def find_families(crowd: Crowd) -> Families:
    """Find workers who err together by the answers alone.

    Two tests propose families: pairs agree beyond one common factor – the truth –, or beyond what
    confusion matrices explain. Hidden answers of others decide, the best family first.

    >>> import goldspan
    >>> from goldspan.simulation import draw_truth, simulate_crowd
    >>> crowd = simulate_crowd(draw_truth(200), ["flip(0.2) x8"])
    >>> find_families(crowd).names()
    {}
    """
    n, labels = crowd.n_workers, Labels.of(crowd)
    pairs, common = pair_agreements(crowd, labels)
    kin, rest = Families(np.arange(n), np.zeros(n), crowd.worker_ids), pairs
    for _ in range(MOST_FAMILIES):
        if not len(rest):
            break
        by_factor = beyond_one_factor(rest, n).clusters(n)
        by_matrices = beyond_matrices(labels, pairs, common, kin).clusters(n)
        more = _believed(crowd, labels, pairs, common, kin, by_factor, by_matrices)
        if more is None:
            break
        # Of a family one member stays
        kin, stays = more, np.isin(np.arange(n), np.unique(more.number, return_index=True)[1])
        rest = pairs.take(stays[pairs.left] & stays[pairs.right])
    return kin


def _believed(
    crowd: Crowd, labels: Labels, pairs: Pairs, common: Common, kin: Families,
    by_factor: list[Family], by_matrices: list[Family],
) -> Families | None:  # fmt: skip
    """Add the proposed family with which hidden answers are likeliest, if any is believed."""
    alone = kin.sizes[kin.number] == 1
    every = [one for one in dict.fromkeys([*by_factor, *by_matrices]) if alone[[*one]].all()]
    if not every:
        return None
    apart = kin.number.copy()
    for one in every:  # proposals that overlap are hidden together
        apart[np.isin(apart, apart[[*one]])] = apart[one[0]]
    half = (draws(0, "half", keys_of(crowd.item_ids)) < 0.5)[labels.item]
    without = _likelihoods(labels, half, kin, apart)
    found = []
    for one in every:
        rho, stands = _measured(labels, pairs, common, kin, one)
        joined = _joined(kin, one, rho)
        logs = _likelihoods(labels, half, joined, apart)
        ahead, error = _ahead(labels, logs, without)
        needed = BARELY if by_matrices else -ndtri(LEVEL / len(every))
        needed = -1.0 if one in by_matrices or (stands and rho >= COPIES) else needed
        is_told = ahead > needed * error
        if is_told and rho >= LEAST_RHO:
            found.append((ahead, logs, one, joined))
    if not found:
        return None
    found.sort(key=lambda one: -one[0])
    best = found[0]
    # Where a family is half of the crowd, confusion matrices take the others for one
    for other in found[1:]:
        if best[2] not in by_factor and other[2] in by_factor:
            ahead, error = _ahead(labels, best[1], other[1])
            best = other if ahead < BARELY * error else best
    return best[3]


def _joined(kin: Families, members: Family, rho: float) -> Families:
    """Return families with one more."""
    number = kin.number.copy()
    number[[*members]] = len(kin.rho)
    return replace(kin, rho=np.append(kin.rho, rho)).renumbered(number, kin.worker_ids)


def _measured(
    labels: Labels, pairs: Pairs, common: Common, kin: Families, members: Family
) -> tuple[float, bool]:
    """Return rho of members by the answers of the others, and if all their pairs stand so."""
    inside = np.isin(pairs.left, members) & np.isin(pairs.right, members)
    excess = beyond_matrices(labels, pairs, common, _joined(kin, members, 1.0))
    weight = inside / excess.error**2
    rho = float(np.clip((weight @ excess.rho) / weight.sum(), 0, 1))
    return rho, bool((excess.z[inside] > excess.stands).all())
