"""What every worker brought to a result, and what one more answer of each would bring.

All of it is expected under the result's own posterior, without gold; where the posterior is too
sure, so are these numbers. What a worker added is what the F1 (of single labels, the accuracy) of
the labels is expected to lose without the worker. Nothing is fitted again: the evidence of the
worker's answers is taken out of the probabilities of the labels,

    q_-w(t) ∝ q(t) / pi_w(t, y)^u,

with the confusion matrix pi_w by the result, and u = 1 / (1 + (n - 1) rho) for n members of a
family. The labels that are likeliest then are scored by the posterior that has all answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.crowd import Crowd
from goldspan.money import MICRO
from goldspan.spans import Tagged, find_spans
from goldspan.workers.gain import mean_confusions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_LABELS = 3_000_000
"""Of larger crowds nothing is worked out: it would take longer than a report may."""
NEXT = 50
"""Answers that the next ones are: to the items where they bring most."""
SURE = 0.999
"""Labels that are as likely need no answer."""
LEAST = 1e-9
"""Of a probability."""


@dataclass(frozen=True)
class Contribution:
    """What some workers brought, as the posterior expects it."""

    answers: int  # How many they gave
    marked: int  # Spans that they marked; of single labels, labels
    right: float  # Of them, as many as are expected to be right
    lost: float  # F1 (of single labels, accuracy) that the labels lose without all of them, 0 to 1
    more: float  # Labels of tokens that one more answer is expected to set right
    items: int  # Items that such answers could be about
    # The same of all answers that a unit of money pays for, the best first; None without a price
    buys: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(self).items()}


def contributions(
    result: Consensus,  # The result; its crowd has the answers
    groups: Mapping[str, Sequence[str]],  # Ids of workers by a name
    prices: Mapping[str, float] | None = None,
) -> dict[str, Contribution] | None:
    """Work out what groups of workers brought to a result: each alone, or all of a kind.

    >>> import goldspan
    >>> from goldspan.simulation import draw_truth, simulate_crowd
    >>> crowd = simulate_crowd(draw_truth(90, seed=1), ["flip(0.1) x3", "eve=flip(0.5)"], seed=1)
    >>> found = contributions(goldspan.aggregate(crowd, "ds"), {w: [w] for w in ("w1", "eve")})
    >>> found["w1"].lost > found["eve"].lost
    True
    """
    crowd = result.crowd
    if result.entropy is None or not 0 < len(crowd.latest.codes) <= MOST_LABELS:
        return None
    worked = _Worked.of(result)
    place = {name: n for n, name in enumerate(crowd.worker_ids.to_pylist())}
    found = {}
    for name, ids in groups.items():
        own = np.array([place[one] for one in ids if one in place], np.int64)
        found[name] = worked.contribution(own, (prices or {}).get(name, 0.0))
    return found


@dataclass(frozen=True, eq=False)
class _Worked:
    """A result as it is asked by every group."""

    result: Consensus
    probs: Floats  # [n_tokens, J]
    token: Ints  # int64 [n_labels], of every label given; so `worker` and `code`
    worker: Ints
    code: Ints
    means: Floats  # [n_workers, J, J], confusion matrices
    evidence: Floats  # [n_labels, J], ln of the matrices' columns
    cell: Ints  # int64 [n_labels], token and family
    rho: Floats  # [n_cells]
    mass: tuple[Ints, Floats]  # Posterior of spans (single labels: of labels) by their keys, sorted
    n_true: float  # Spans that the truth is expected to have

    @classmethod
    def of(cls, result: Consensus) -> _Worked:
        crowd, families = result.crowd, result.families
        given = crowd.latest.codes >= 0
        token = crowd.token_of[given].astype(np.int64)
        worker = crowd.worker_of[given].astype(np.int64)
        code = crowd.latest.codes[given].astype(np.int64)
        probs = result.token_probs.astype(np.float64)
        n_workers, n_labels = crowd.n_workers, probs.shape[1]
        cells, size = worker * n_labels + code, n_workers * n_labels
        counts = np.stack([np.bincount(cells, probs[token, t], size) for t in range(n_labels)], 1)
        counts = counts.reshape(n_workers, n_labels, n_labels).transpose(0, 2, 1)
        means = mean_confusions(counts.astype(np.float64))
        number = np.arange(n_workers) if families is None else families.number
        rho = np.zeros(n_workers) if families is None else families.rho
        key, cell = np.unique(token * np.int64(len(rho)) + number[worker], return_inverse=True)
        evidence = np.log(np.maximum(means[worker, :, code], LEAST))
        mass, n_true = _masses(result)
        return cls(
            result, probs, token, worker, code, means, evidence, cell.ravel(),
            rho[key % len(rho)], mass, n_true,
        )  # fmt: skip

    def contribution(self, workers: Ints, price: float) -> Contribution:
        """Return what some workers brought; an answer costs `price` millionths, 0: not known."""
        crowd = self.result.crowd
        inside = np.zeros(crowd.n_workers, np.bool_)
        inside[workers] = True
        own = inside[self.worker]
        answers = np.flatnonzero(inside[crowd.latest.worker])
        marked, right = self._right(answers)
        gain = self._gains(workers, inside)
        more = float(gain[:NEXT].mean()) if len(gain) else 0.0
        lost = self._score(self.result.codes) - self._score(self._without(own))
        return Contribution(
            len(answers), marked, right, lost, more, len(gain), _bought(gain, price)
        )

    def _right(self, answers: Ints) -> tuple[int, float]:
        """Count what answers mark, and how much of it is expected to be right."""
        crowd = self.result.crowd
        given = crowd.latest.take(answers)
        keys = _keys(given.codes, given.offset, crowd.offsets[given.item], crowd)
        return len(keys), float(self._likely(keys).sum())

    def _likely(self, keys: Ints) -> Floats:
        """Return the posterior of spans or labels by their keys; 0 of what is most unlikely."""
        known, mass = self.mass
        if not len(known):
            return np.zeros(len(keys))
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, mass[at], 0.0)

    def _score(self, codes: NDArray[np.int16]) -> float:
        """Return the F1, or accuracy, that labels are expected to have."""
        crowd = self.result.crowd
        keys = _keys(codes, crowd.offsets, crowd.offsets[:-1], crowd)
        hits = float(self._likely(keys).sum())
        total = len(keys) + self.n_true
        return 2 * hits / total if total else 1.0

    def _without(self, own: NDArray[np.bool_]) -> NDArray[np.int16]:
        """Return the labels that are likeliest without some of the answers."""
        cells = np.unique(self.cell[own])
        touched = np.zeros(len(self.rho), np.bool_)
        touched[cells] = True
        used = np.flatnonzero(touched[self.cell])
        place = np.cumsum(touched) - 1
        at, n_labels = place[self.cell[used]], self.probs.shape[1]
        out = own[used]

        def counted(which: NDArray[np.bool_]) -> Floats:
            n = np.bincount(at[which], minlength=len(cells))
            weight = 1 / (1 + np.maximum(n - 1, 0) * self.rho[cells])
            rows = self.evidence[used[which]]
            total = [np.bincount(at[which], rows[:, t], len(cells)) for t in range(n_labels)]
            return np.asarray(weight[:, None] * np.stack(total, axis=1))

        change = counted(np.ones(len(used), np.bool_)) - counted(~out)
        token_of = np.zeros(len(cells), np.int64)
        token_of[at] = self.token[used]
        tokens, row = np.unique(token_of, return_inverse=True)
        state = np.log(np.maximum(self.probs[tokens], LEAST))
        np.subtract.at(state, row.ravel(), change)
        before, after = self.probs[tokens].argmax(axis=1), state.argmax(axis=1)
        codes = self.result.codes.copy()
        known = self.result.known
        changed = before != after
        if known is not None:
            changed &= known[tokens] < 0
        codes[tokens[changed]] = after[changed]
        return codes

    def _gains(self, workers: Ints, inside: NDArray[np.bool_]) -> Floats:
        """Return how many labels one more answer would set right, by item, the most first.

        Where others of a worker's family have answered, it brings 1 - rho of that.
        """
        crowd, families = self.result.crowd, self.result.families
        n_items = crowd.n_items
        if not len(workers):
            return np.zeros(0)
        open_ = np.flatnonzero((self.result.codes >= 0) & (self.probs.max(axis=1) < SURE))
        if self.result.known is not None:
            open_ = open_[self.result.known[open_] < 0]
        item = np.searchsorted(crowd.offsets, open_, side="right") - 1
        size = np.bincount(self.worker, minlength=len(inside))[workers] + 1e-9
        matrix = np.average(self.means[workers], axis=0, weights=size)
        now = self.probs[open_]
        told = (now[:, :, None] * matrix[None]).max(axis=1).sum(axis=1) - now.max(axis=1)
        gain = np.bincount(item, np.maximum(told, 0), n_items)
        can = np.bincount(item, minlength=n_items) > 0
        answers, who = crowd.latest, int(workers[0])
        n_own = np.bincount(answers.item[inside[answers.worker]], minlength=n_items)
        can &= n_own < len(workers)
        if len(workers) == 1 and families is not None and families.sizes[families.number[who]] > 1:
            others = np.unique(
                answers.item[families.number[answers.worker] == families.number[who]]
            )
            gain[others] *= 1 - families.rho[families.number[who]]
        return np.asarray(np.sort(gain[can])[::-1], np.float64)


def _bought(gain: Floats, price: float) -> float | None:
    """Return what a unit of money buys of gains, the most first."""
    if price <= 0:
        return None
    n = min(MICRO / price, len(gain))
    whole = int(n)
    rest = (n - whole) * gain[whole] if whole < len(gain) else 0.0
    return float(gain[:whole].sum() + rest)


def _masses(result: Consensus) -> tuple[tuple[Ints, Floats], float]:
    """Return the posterior of spans by their keys, sorted; and how many the truth has."""
    crowd, probs = result.crowd, result.token_probs.astype(np.float64)
    if crowd.tagset.rules.is_plain:
        return (np.arange(probs.size), probs.ravel()), float(np.count_nonzero(result.codes >= 0))
    if result.posterior is None:  # what is known of spans is that of the result
        found = result.span_array
        token, stop, kind = found.start, found.end, found.type.astype(np.int64)
        mass = result.span_confidence.astype(np.float64)
    else:
        all_ = result.posterior.marginals()
        begin = crowd.offsets[all_.item]
        token, stop, kind, mass = begin + all_.begin, begin + all_.stop, all_.kind, all_.mass
    key = _span_key(token, stop, kind, crowd)
    order = np.argsort(key, kind="stable")
    return (key[order], mass[order]), float(mass.sum())


def _keys(codes: NDArray[np.int16], offset: Ints, begin: Ints, crowd: Crowd) -> Ints:
    """Return the keys of spans, or of single labels; `begin` is where their items begin."""
    shift = begin - offset[:-1]
    if crowd.tagset.rules.is_plain:
        owner = np.repeat(np.arange(len(begin)), np.diff(offset))
        given = np.flatnonzero(codes >= 0)
        token = given + shift[owner[given]]
        return np.asarray(token * len(crowd.tagset.tags) + codes[given], np.int64)
    found = find_spans(Tagged(codes, offset), crowd.tagset)
    more = shift[found.item]
    return _span_key(found.start + more, found.end + more, found.type.astype(np.int64), crowd)


def _span_key(start: Ints, end: Ints, kind: Ints, crowd: Crowd) -> Ints:
    longest = np.int64(np.diff(crowd.offsets).max(initial=0) + 1)
    return np.asarray((start * longest + end - start) * len(crowd.tagset.types) + kind, np.int64)
