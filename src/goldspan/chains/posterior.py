"""Posteriors under a chain: marginals, entropy, best paths, and the mass of paths and of spans.

The posterior of a span is exact: the summed probability of all paths that hold exactly this span,

    P(span [a, b) of a type) = sum over tags of  enter_a . stay_{a+1} ... stay_{b-1} . leave_b / Z,

the forward mass that starts a span of the type at a, goes on without starting another one, and ends
it before b (constrained forward-backward: Culotta & McCallum 2004). The pair table says which step
starts, continues or ends a span. The entropy is that of the whole path (Hernando et al. 2005).

Everything is computed with logarithms: this is done once, after the iterations. The kernels are
small and called for blocks of items, because what they have in common is then compiled once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldspan._arrays import fixed
from goldspan._kernel import inner, kernel
from goldspan.chains.decoding import best_paths
from goldspan.chains.forward_backward import backward_log, forward_log, gather_log, largest, log_sum
from goldspan.spans.encoding import ENDED, STARTS

Floats = NDArray[np.float64]

BLOCK_TOKENS = 1 << 13
"""Tokens of the items that are worked on at a time: few enough for a processor's cache."""


def blocks(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the first item of every block, and one past its last."""
    starts = np.arange(offsets[0], offsets[-1], BLOCK_TOKENS)
    edges = np.searchsorted(offsets, starts)
    yield from pairwise(np.unique([0, *edges.tolist(), len(offsets) - 1]).tolist())


# --------------------------------------------------------------------------------------------------
# The lattice of all paths through some items: forward and backward.


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


def lattice_of(
    offsets: NDArray[np.int64],
    bounds: NDArray[np.int64],
    row: NDArray[np.int32],
    active: NDArray[np.bool_],
    gold: NDArray[np.int16],
    unary: Floats,
    log_table: Floats,
    chain: Chain,
) -> Lattice:
    """Run forward and backward; the arguments are those of `expect_items` and of `Lattice`."""
    n_tokens, n_labels = int(offsets[-1] - offsets[0]), len(chain.start)
    shape = n_tokens, n_labels
    made = Lattice(
        offsets=fixed(offsets - offsets[0], np.int64),
        active=fixed(active, np.bool_),
        evidence=np.zeros(shape),
        forward=np.zeros(shape),
        backward=np.zeros(shape),
        log_z=np.zeros(len(active)),
        step=fixed(chain.step, np.float64),
        log_start=np.empty(n_labels),
        log_step=np.empty((n_labels, n_labels)),
        log_end=np.empty(n_labels),
    )
    _fill(
        made.offsets, fixed(bounds, np.int64), fixed(row, np.int32), made.active,
        fixed(gold, np.int16), fixed(unary, np.float64), fixed(log_table, np.float64),
        fixed(chain.start, np.float64), made.step, fixed(chain.end, np.float64),
        made.evidence, made.forward, made.backward, made.log_z,
        made.log_start, made.log_step, made.log_end,
    )  # fmt: skip
    return made


@kernel
def _fill(
    offsets, bounds, row, active, gold, unary, log_table, start, step, end,
    evidence, forward, backward, log_z, log_start, log_step, log_end,
):  # fmt: skip
    """Write the arrays of a lattice."""
    for i in range(len(start)):
        log_start[i], log_end[i] = np.log(start[i]), np.log(end[i])
        for j in range(len(start)):
            log_step[i, j] = np.log(step[i, j])
    for n in range(len(active)):
        first, length = offsets[n], offsets[n + 1] - offsets[n]
        if not active[n] or length == 0:
            continue
        here, before, after = evidence[first:], forward[first:], backward[first:]
        gather_log(first, length, bounds, row, gold, unary, log_table, here)
        log_z[n] = forward_log(length, here, start, step, end, before)
        backward_log(length, here, step, end, after)


# --------------------------------------------------------------------------------------------------
# Marginals, entropies and best paths.


def marginals(lattice: Lattice) -> tuple[Floats, Floats]:
    """Return the marginals and the entropy of every item's path, in nats."""
    # returns float64 [n_tokens, J]
    probs, entropy = np.zeros_like(lattice.evidence), np.zeros_like(lattice.log_z)
    _marginals(
        lattice.offsets, lattice.active, lattice.forward, lattice.backward, lattice.log_z,
        lattice.step, lattice.log_step, lattice.log_end, probs, entropy,
    )  # fmt: skip
    return probs, entropy


def best_codes(lattice: Lattice, start: Floats, step: Floats, end: Floats) -> NDArray[np.int16]:
    """Return the best path of every item, int16 [n_tokens].

    It is -1 in items that are not active, and tag 0 where there is no path.
    """
    # start float64 [J]; step float64 [J, J], likewise; end float64 [J], likewise
    codes = np.zeros(len(lattice.evidence), np.int16)
    chain = [fixed(part, np.float64) for part in (start, step, end)]
    evidence, first = fixed(lattice.evidence, np.float64), 0
    while first >= 0:
        found = int(best_paths(lattice.offsets[first:], evidence, *chain, codes))
        first = -1 if found < 0 else first + found + 1
    codes[np.repeat(~lattice.active, np.diff(lattice.offsets))] = -1
    return codes


@kernel
def _marginals(
    offsets, active, forward, backward, log_z, step, log_step, log_end, probs, entropy
):  # fmt: skip
    """Write the marginals, and H_t(j) = sum_i p(i | j) (H_{t-1}(i) - ln p(i | j)) at the end."""
    n_labels = len(log_end)
    work, before, now = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    for n in range(len(active)):
        first, stop = offsets[n], offsets[n + 1]
        if not active[n] or stop == first:
            continue
        for t in range(first, stop):
            total = 0.0
            for j in range(n_labels):
                work[j] = np.exp(forward[t, j] + backward[t, j] - log_z[n])
                total += work[j]
            for j in range(n_labels):
                probs[t, j] = work[j] / total
        for j in range(n_labels):
            before[j] = 0.0
        for t in range(first + 1, stop):
            most = largest(forward[t - 1])
            for i in range(n_labels):
                work[i] = np.exp(forward[t - 1, i] - most)
            for j in range(n_labels):
                total = 0.0
                for i in range(n_labels):
                    total += work[i] * step[i, j]
                now[j] = 0.0
                if not total > 1e-250:  # as unlikely as to add nothing
                    continue
                norm = most + np.log(total)
                for i in range(n_labels):
                    p = work[i] * step[i, j] / total
                    if p > 1e-300:
                        log_p = forward[t - 1, i] + log_step[i, j] - norm
                        now[j] += p * (before[i] - log_p)
            for j in range(n_labels):
                before[j] = now[j]
        total = 0.0
        for j in range(n_labels):
            log_p = forward[stop - 1, j] + log_end[j] - log_z[n]
            if log_p > -700.0:
                total += np.exp(log_p) * (before[j] - log_p)
        entropy[n] = max(total, 0.0)


# --------------------------------------------------------------------------------------------------
# The mass of a span: paths enter it, stay in it without starting another, and leave it.


def likely_spans(
    lattice: Lattice, steps: Spans, probs: Floats, least: float
) -> tuple[NDArray[np.int64], Floats]:
    """List the spans with at least some posterior mass."""
    # probs float64 [n_tokens, J], the marginals; returns int64 [n_spans, 4]
    room = len(probs) // 4 + 1000
    while True:
        spans, masses = np.empty((room, 4), np.int64), np.empty(room)
        n_found = _list_spans(
            lattice.offsets, lattice.active, lattice.evidence, lattice.forward, lattice.backward,
            lattice.log_z, fixed(steps.kind, np.int16), *steps[1:], probs, float(least), spans,
            masses,
        )  # fmt: skip
        if n_found <= room:
            return spans[:n_found], masses[:n_found]
        room = n_found


def masses_of(
    lattice: Lattice, steps: Spans, codes: NDArray[np.int16], spans: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return the posteriors of given paths and of given spans."""
    # codes int16 [n_tokens]; spans int64 [n_spans, 4]; returns float64 [n_items]
    paths, masses = np.zeros(len(lattice.active)), np.zeros(len(spans))
    _weigh(
        lattice.offsets, lattice.active, lattice.evidence, lattice.forward, lattice.backward,
        lattice.log_z, fixed(steps.kind, np.int16), *steps[1:], lattice.log_start, lattice.log_step,
        fixed(codes, np.int16), fixed(spans, np.int64), paths, masses,
    )  # fmt: skip
    return paths, masses


@kernel
def _list_spans(
    offsets, active, evidence, forward, backward, log_z, kind, begin, enter, stay, leave, end,
    probs, least, spans, masses,
):  # fmt: skip
    """Write spans, as many as there is room for, and return how many there are."""
    n_labels = len(end)
    n_types = 0
    for j in range(n_labels):
        n_types = max(n_types, kind[j] + 1)
    inside, work, log_least = np.empty(n_labels), np.empty((2, n_labels)), np.log(least)
    found = 0
    for n in range(len(active)):
        first, stop = offsets[n], offsets[n + 1]
        if not active[n]:
            continue
        for a in range(first, stop):
            for own in range(n_types):
                share = 0.0
                for j in range(n_labels):
                    if kind[j] == own:
                        share += probs[a, j]
                if share < 0.999 * least:  # no span can begin here
                    continue
                _enter(a, first, own, evidence, forward, kind, begin, enter, inside, work)
                for b in range(a + 1, stop + 1):
                    for j in range(n_labels):
                        work[0, j] = inside[j] + backward[b - 1, j]
                    if not log_sum(work[0]) - log_z[n] > log_least:
                        break
                    mass = _leave(b, stop, inside, evidence, backward, leave, end, work)
                    mass = np.exp(mass - log_z[n])
                    if mass >= least:
                        if found < len(masses):
                            spans[found, 0], spans[found, 1] = n, a - first
                            spans[found, 2], spans[found, 3] = b - first, own
                            masses[found] = min(mass, 1.0)
                        found += 1
                    if b < stop:
                        _move(inside, stay, own, kind, evidence[b], inside, work)
    return found


@kernel
def _weigh(
    offsets, active, evidence, forward, backward, log_z, kind, begin, enter, stay, leave, end,
    log_start, log_step, codes, spans, paths, masses,
):  # fmt: skip
    """Write the posteriors of paths and spans."""
    n_labels = len(end)
    inside, work = np.empty(n_labels), np.empty((2, n_labels))
    at = 0
    for n in range(len(active)):
        first, stop = offsets[n], offsets[n + 1]
        if not active[n] or stop == first:
            continue
        score = 0.0
        for t in range(first, stop):
            code = codes[t]
            if code < 0:
                score = -np.inf
                break
            score += evidence[t, code]
            score += log_start[code] if t == first else log_step[codes[t - 1], code]
        if score > -np.inf:
            paths[n] = np.exp(min(0.0, score + end[codes[stop - 1]] - log_z[n]))
        while at < len(spans) and spans[at, 0] == n:
            a, b, own = first + spans[at, 1], first + spans[at, 2], spans[at, 3]
            _enter(a, first, own, evidence, forward, kind, begin, enter, inside, work)
            for t in range(a + 1, b):
                _move(inside, stay, own, kind, evidence[t], inside, work)
            mass = _leave(b, stop, inside, evidence, backward, leave, end, work)
            masses[at] = np.exp(min(0.0, mass - log_z[n]))
            at += 1


@inner
def _enter(a, first, own, evidence, forward, kind, begin, enter, inside, work):
    """Set inside[j] to the log mass of paths up to token `a` that start a span of a type there."""
    if a > first:
        _move(forward[a - 1], enter, own, kind, evidence[a], inside, work)
        return
    for j in range(len(inside)):
        inside[j] = begin[j] + evidence[a, j] if kind[j] == own else -np.inf


@inner
def _move(before, steps, own, kind, evidence, inside, work):
    """Set inside[j] to ln sum_i exp(before[i] + steps[i, j]) + evidence[j] for tags of a type."""
    n_labels = len(inside)
    for j in range(n_labels):
        work[1, j] = -np.inf
        if kind[j] == own:
            for i in range(n_labels):
                work[0, i] = before[i] + steps[i, j]
            work[1, j] = log_sum(work[0]) + evidence[j]
    for j in range(n_labels):
        inside[j] = work[1, j]


@inner
def _leave(b, stop, inside, evidence, backward, leave, end, work):
    """Return the log mass of ending the span before token b."""
    n_labels = len(inside)
    if b == stop:
        for j in range(n_labels):
            work[0, j] = inside[j] + end[j]
        return log_sum(work[0])
    for i in range(n_labels):
        for j in range(n_labels):
            work[0, j] = leave[i, j] + evidence[b, j] + backward[b, j]
        work[1, i] = inside[i] + log_sum(work[0])
    return log_sum(work[1])
