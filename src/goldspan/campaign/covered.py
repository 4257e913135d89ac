"""How much of a pool the rounds have covered: attribute–value pairs of paper 003, section 3.

Beside every round stands what as many items drawn at random would cover on average: a pair that m
of N items have is missed by n of them with probability C(N - m, n) / C(N, n). Only pairs of at
least two items count, as for the rule "coverage": what occurs once tells nothing about other items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.selection import Pool
from goldspan.selection.features import Features, Incidence

MOST_TOKENS = 2_000_000
"""Of larger pools coverage is not worked out: it would take longer than a report may."""


def coverage_of(pool: Crowd, rounds: Sequence[Sequence[str]]) -> dict[str, Any] | None:
    """Work out how much of a pool is covered after every round.

    Args:
        pool: The items; answers are not looked at.
        rounds: The ids of the items that every round picked.

    Returns:
        Plain values: `pairs` of at least two items, and per round `items`, `covered` and what is
        expected of items at random, both shares of the pairs. None for a pool without words or
        attributes, one of more than two million tokens, and one whose items have nothing in common.
    """
    if pool.n_tokens > MOST_TOKENS:
        return None
    try:
        items = Pool.of(pool)
    except InputError:  # items that are names alone
        return None
    found = Features.fit(items).transform(items)
    common = found.counts >= 2
    if not common.any():
        return None
    picked: list[int] = []
    shown = []
    for names in rounds:
        picked += [items.place[name] for name in names]
        seen = found.take(np.array(picked, np.intp)).counts > 0
        shown.append(
            {
                "items": len(picked),
                "covered": round(float(seen[common].mean()), 6),
                "random": round(_at_random(found, common, len(picked)), 6),
            }
        )
    return {"pairs": int(common.sum()), "rounds": shown}


def _at_random(items: Incidence, common: NDArray[np.bool_], n: int) -> float:
    """Return the expected share of common pairs that n items drawn at random have."""
    from scipy.special import gammaln

    count, total = items.counts[common].astype(np.float64), items.n_items
    room = total - count - n
    log = gammaln(total - count + 1) - gammaln(np.maximum(room, 0) + 1)
    log += gammaln(total - n + 1) - gammaln(total + 1)
    missed = np.where(room >= 0, np.exp(log), 0.0)
    return float(1 - missed.mean())
