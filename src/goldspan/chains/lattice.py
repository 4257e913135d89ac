"""The lattice of all paths through some items, its steps by what they do to spans; few tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from goldspan.spans.encoding import ENDED, STARTS

Floats = NDArray[np.float64]


class Chain(NamedTuple):
    """Scores of steps."""

    start: Floats  # [J], 0 where forbidden
    step: Floats  # [J, J], likewise
    end: Floats  # [J], likewise


class Lattice(NamedTuple):
    """All paths through some items."""

    offsets: NDArray[np.int64]  # [n_items + 1], from 0
    active: NDArray[np.bool_]  # [n_items]; of others nothing is known
    evidence: Floats  # [n_tokens, J], ln e_t
    forward: Floats  # [n_tokens, J], ln f_t
    backward: Floats  # [n_tokens, J], ln b_t
    log_z: Floats  # [n_items], -inf where there is no path
    step: Floats  # [J, J]
    log_start: Floats  # [J]
    log_step: Floats  # [J, J]
    log_end: Floats  # [J]
    once: bool = True  # Whether this is done once and not again and again


class Spans(NamedTuple):
    """The steps of a lattice by what they do to spans."""

    kind: NDArray[np.int16]  # [J], type of every tag, -1 for `O`
    begin: Floats  # [J], ln, of tags that start a span at an item's first token
    enter: Floats  # [J, J], ln, of steps that start a span
    stay: Floats  # [J, J], ln, of steps that go on with it
    leave: Floats  # [J, J], ln, of steps that end it
    end: Floats  # [J], ln, of the end of an item

    @classmethod
    def of(cls, lattice: Lattice, pairs: NDArray[np.uint8], kind: NDArray[np.int16]) -> Spans:
        """Sort the steps of a lattice by the pair table, uint8 [J + 1, J + 1]."""
        starts, ends = (pairs & STARTS) > 0, (pairs & ENDED) > 0
        goes_on = ~starts[1:, 1:] & (kind[:, None] == kind)
        return cls(
            kind,
            np.where(starts[0, 1:], lattice.log_start, -np.inf),
            np.where(starts[1:, 1:], lattice.log_step, -np.inf),
            np.where(goes_on, lattice.log_step, -np.inf),
            np.where(ends[1:, 1:], lattice.log_step, -np.inf),
            lattice.log_end,
        )


# --------------------------------------------------------------------------------------------------
# What `posterior` computes, for few tokens, in NumPy: items go on together, token by token.
# Nothing need be compiled for them, which takes longer than all of their work.


Indexes = NDArray[np.int64]

TINY = 1e-250
"""Sums below this beside a largest term of 1 are computed again, term by term."""


def fill_few(
    made: Lattice, bounds: Indexes, row: NDArray[np.int32], gold: NDArray[np.int16],
    unary: Floats, log_table: Floats, start: Floats, end: Floats,
) -> None:  # fmt: skip
    """Write the arrays of a lattice; see `lattice_of`."""
    evidence, forward, backward = made.evidence, made.forward, made.backward
    with np.errstate(divide="ignore", invalid="ignore"):
        made.log_start[:], made.log_end[:] = np.log(start), np.log(end)
        made.log_step[:] = np.log(made.step)
    first = _add_evidence(made, bounds, row, gold, unary, log_table)
    lengths = np.diff(made.offsets)
    for t, token in _together(first, lengths):
        if not t:
            forward[token] = made.log_start + evidence[token]
        else:
            before = forward[token - 1]
            forward[token] = _moved(before, made.step, made.log_step) + evidence[token]
    some = first >= 0
    last = first[some] + lengths[some] - 1
    made.log_z[some] = logsumexp(forward[last] + made.log_end, axis=1)
    backward[last] = made.log_end
    back, log_back = made.step.T, made.log_step.T
    for t, token in reversed(list(_together(first, lengths))):
        if t:
            backward[token - 1] = _moved(evidence[token] + backward[token], back, log_back)


def _add_evidence(
    made: Lattice, bounds: Indexes, row: NDArray[np.int32], gold: NDArray[np.int16],
    unary: Floats, log_table: Floats,
) -> Indexes:  # fmt: skip
    """Sum up the evidence; return the first token of every active item, -1 of others."""
    lengths = np.diff(made.offsets)
    is_active = made.active & (lengths > 0)
    evidence = made.evidence
    if len(unary):
        evidence[:] = unary
    if len(row):
        np.add.at(evidence, np.repeat(np.arange(len(evidence)), np.diff(bounds)), log_table[row])
    if len(gold):
        known = np.flatnonzero(gold >= 0)
        kept = evidence[known, gold[known]]
        evidence[known] = -np.inf
        evidence[known, gold[known]] = kept
    evidence[np.repeat(~is_active, lengths)] = 0.0
    return np.where(is_active, made.offsets[:-1], -1)


def few_marginals(lattice: Lattice) -> tuple[Floats, Floats]:
    """Return marginals and entropies: H_t(j) = sum_i p(i | j) (H_{t-1}(i) - ln p(i | j))."""
    lengths, log_z = np.diff(lattice.offsets), lattice.log_z
    forward, is_active = lattice.forward, lattice.active & (lengths > 0)
    with np.errstate(invalid="ignore", over="ignore"):
        probs = np.exp(forward + lattice.backward - np.repeat(log_z, lengths)[:, None])
        probs /= probs.sum(axis=1, keepdims=True)
    probs[np.repeat(~is_active, lengths)] = 0.0
    first = np.where(is_active, lattice.offsets[:-1], -1)
    entropy = np.zeros_like(lattice.evidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        for t, token in _together(first, lengths):
            if t:
                entropy[token] = _entropies(forward[token - 1], entropy[token - 1], lattice)
        last = first[is_active] + lengths[is_active] - 1
        log_p = forward[last] + lattice.log_end - log_z[is_active, None]
        parts = np.where(log_p > -700.0, np.exp(log_p) * (entropy[last] - log_p), 0.0)
    found = np.zeros_like(log_z)
    found[is_active] = np.maximum(parts.sum(axis=1), 0.0)
    return probs, found


def _entropies(forward: Floats, before: Floats, lattice: Lattice) -> Floats:
    """Return H_t from H_{t-1}, float64 [n_items, J]."""
    most = forward.max(axis=1, keepdims=True)
    joint = np.exp(forward - most)[:, :, None] * lattice.step
    total = joint.sum(axis=1)
    share = joint / total[:, None, :]
    norm = most + np.log(total)
    log_share = forward[:, :, None] + lattice.log_step - norm[:, None, :]
    parts = np.where(share > 1e-300, share * (before[:, :, None] - log_share), 0.0)
    return np.where(total > TINY, parts.sum(axis=1), 0.0)


def few_best_codes(lattice: Lattice, start: Floats, step: Floats, end: Floats) -> NDArray[np.int16]:
    """Return the best paths; among equals the lowest tag wins."""
    evidence, lengths = lattice.evidence, np.diff(lattice.offsets)
    codes, source = np.zeros(len(evidence), np.int16), np.zeros(evidence.shape, np.int16)
    score = np.empty_like(evidence)
    first = np.where(lengths > 0, lattice.offsets[:-1], -1)
    for t, token in _together(first, lengths):
        if not t:
            score[token] = start + evidence[token]
        else:
            through = score[token - 1][:, :, None] + step
            source[token] = through.argmax(axis=1)
            score[token] = through.max(axis=1) + evidence[token]
    last = (first + lengths - 1)[first >= 0]
    final = score[last] + end
    codes[last] = final.argmax(axis=1)
    for t, token in reversed(list(_together(first, lengths))):
        if t:
            codes[token - 1] = source[token, codes[token]]
    lost = np.zeros(len(lengths), np.bool_)
    lost[first >= 0] = final.max(axis=1) == -np.inf
    codes[np.repeat(lost, lengths)] = 0
    codes[np.repeat(~lattice.active, lengths)] = -1
    return codes


def few_likely_spans(
    lattice: Lattice, steps: Spans, probs: Floats, least: float
) -> tuple[Indexes, Floats]:
    """List the spans with at least some posterior mass; see `posterior.likely_spans`."""
    n_types = int(steps.kind.max(initial=-1)) + 1
    of_type = steps.kind[:, None] == np.arange(n_types)
    token, kind = np.nonzero(probs @ of_type >= 0.999 * least)
    item = np.searchsorted(lattice.offsets, token, side="right") - 1
    walk = _Walk(lattice, steps, item, token, kind)
    log_least = np.log(least) if least > 0 else -np.inf
    rows, masses = [np.zeros((0, 4), np.int64)], [np.zeros(0)]
    while len(walk.item):
        with np.errstate(invalid="ignore"):
            through = logsumexp(walk.inside + lattice.backward[walk.token], axis=1) - walk.log_z
            walk = walk.only(through > log_least)
        mass = np.exp(walk.leave() - walk.log_z)
        found = mass >= least
        base = lattice.offsets[walk.item]
        place = np.stack([walk.item, walk.begin - base, walk.token + 1 - base, walk.kind], axis=1)
        rows.append(place[found])
        masses.append(np.minimum(mass[found], 1.0))
        walk = walk.only(~walk.is_last).stay()
    spans, mass = np.concatenate(rows), np.concatenate(masses)
    order = np.lexsort((spans[:, 2], spans[:, 3], spans[:, 1], spans[:, 0]))
    return spans[order], mass[order]


def few_masses(
    lattice: Lattice, steps: Spans, codes: NDArray[np.int16], spans: Indexes
) -> tuple[Floats, Floats]:
    """Return the posteriors of given paths and spans; see `posterior.masses_of`."""
    lengths = np.diff(lattice.offsets)
    first = np.where(lattice.active & (lengths > 0), lattice.offsets[:-1], -1)
    item = np.repeat(np.arange(len(lengths)), lengths)
    known = np.maximum(codes, 0).astype(np.int64)
    paths, masses = np.zeros(len(lengths)), np.zeros(len(spans))
    some = first >= 0
    heads = np.zeros(len(codes), np.bool_)
    heads[first[some]] = True
    before = np.concatenate([known[:1], known[:-1]])
    with np.errstate(invalid="ignore"):
        parts = lattice.evidence[np.arange(len(codes)), known]
        parts = parts + np.where(heads, lattice.log_start[known], lattice.log_step[before, known])
        score = np.bincount(item, parts, len(lengths))
        whole = some & (score > -np.inf) & (np.bincount(item, codes < 0, len(lengths)) == 0)
        last = (first + lengths - 1)[some]
        score[some] += lattice.log_end[known[last]] - lattice.log_z[some]
    paths[whole] = np.exp(np.minimum(score[whole], 0.0))
    if not len(spans):
        return paths, masses
    own, a, b, kind = spans.T
    base = lattice.offsets[own]
    walk = _Walk(lattice, steps, own, base + a, kind)
    number, stop = np.arange(len(spans)), base + b
    while len(number):
        done = walk.token + 1 == stop[number]
        ended = walk.only(done)
        masses[number[done]] = np.exp(np.minimum(ended.leave() - ended.log_z, 0.0))
        walk, number = walk.only(~done).stay(), number[~done]
    masses[~lattice.active[own]] = 0.0
    return paths, masses


class _Walk:
    """Paths that are within spans."""

    def __init__(
        self, lattice: Lattice, steps: Spans, item: Indexes, token: Indexes, kind: Indexes
    ) -> None:
        """Enter spans."""
        self.lattice, self.steps = lattice, steps
        self.item, self.begin, self.token, self.kind = item, token, token, kind
        before = lattice.forward[np.maximum(token - 1, 0)]
        entered = logsumexp(before[:, :, None] + steps.enter, axis=1)
        is_head = token == lattice.offsets[item]
        entered = np.where(is_head[:, None], steps.begin, entered)
        self.inside = self._own(entered)

    def _own(self, moved: Floats) -> Floats:
        """Add the evidence of the tokens, and leave only the tags of the spans' types."""
        is_own = self.steps.kind == self.kind[:, None]
        return np.where(is_own, moved + self.lattice.evidence[self.token], -np.inf)

    @property
    def log_z(self) -> Floats:
        """Return ln Z of their items, float64 [n_spans]."""
        return self.lattice.log_z[self.item]

    @property
    def is_last(self) -> NDArray[np.bool_]:
        """Return whether they are at the last token of an item."""
        return np.asarray(self.token + 1 == self.lattice.offsets[self.item + 1])

    def only(self, kept: NDArray[np.bool_]) -> _Walk:
        """Return some of them."""
        part = object.__new__(_Walk)
        part.lattice, part.steps = self.lattice, self.steps
        for name in ("item", "begin", "token", "kind", "inside"):
            setattr(part, name, getattr(self, name)[kept])
        return part

    def stay(self) -> _Walk:
        """Go on to the next token without starting another span."""
        self.token = self.token + 1
        self.inside = self._own(logsumexp(self.inside[:, :, None] + self.steps.stay, axis=1))
        return self

    def leave(self) -> Floats:
        """Return ln of the mass that ends the spans after their tokens, float64 [n_spans]."""
        lattice, steps = self.lattice, self.steps
        after = np.minimum(self.token + 1, len(lattice.evidence) - 1)
        goes_on = lattice.evidence[after] + lattice.backward[after]
        ways = np.where(
            self.is_last[:, None], steps.end, logsumexp(goes_on[:, :, None] + steps.leave.T, axis=1)
        )
        return np.asarray(logsumexp(self.inside + ways, axis=1))


def _together(first: Indexes, lengths: Indexes) -> Iterator[tuple[int, Indexes]]:
    """Yield t = 0, 1, … and the t-th token of all items that have one."""
    order = np.argsort(-np.where(first >= 0, lengths, 0), kind="stable")
    begin = first[order]
    left = lengths[order][begin >= 0]
    for t in range(int(left.max(initial=0))):
        yield t, begin[: np.searchsorted(-left, -t, side="left")] + t


def _moved(values: Floats, step: Floats, log_step: Floats) -> Floats:
    """Return ln sum_i exp(values[:, i]) step[i, j], without a logarithm of every pair."""
    most = values.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(most > -np.inf, np.exp(values - most), 0.0)
        # Not a product of matrices: its bits would depend on how many items there are.
        total = (shares[:, :, None] * step).sum(axis=1)
        moved: Floats = most + np.log(total)
    lost = np.flatnonzero((total <= TINY).any(axis=1))
    if len(lost):
        moved[lost] = np.where(
            total[lost] > TINY, moved[lost], logsumexp(values[lost][:, :, None] + log_step, axis=1)
        )
    return moved
