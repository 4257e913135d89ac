"""Looking for all signs of careless work at once."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from goldspan.aggregate import Consensus, aggregate
from goldspan.crowd import Crowd
from goldspan.errors import UnknownNameError
from goldspan.hiring.signs.base import Scene, Sign, Thresholds
from goldspan.hiring.signs.registry import SIGNS
from goldspan.hiring.truth import find_truth


def find_signs(
    crowd: Crowd,
    *,
    gold: Any = None,
    result: Consensus | None = None,
    kinds: str | Iterable[str] | None = None,
    thresholds: Thresholds | None = None,
) -> list[Sign]:
    r"""Look for signs of careless work; each comes with its evidence.

    A sign is a reason to look, not a proof: the chance that a crowd of honest workers shows one of
    a kind at all is `thresholds.alpha`, as far as its test holds.

    Args:
        crowd: The crowd; the answers that count are used.
        gold: Known labels as for `measure_reliability`; by default the crowd's own.
        result: A result of the crowd, which says what is right where there is no gold; by default
            that of `ds`.
        kinds: Which signs, by name, or one of them; all by default.
        thresholds: From where on something is a sign.

    Returns:
        The signs, the strongest first.

    Raises:
        UnknownNameError: There is no such sign.
        InputError: The gold or the result does not suit the crowd.

    >>> import goldspan
    >>> truth = goldspan.simulate.draw_truth(200, seed=1)
    >>> crowd = goldspan.simulate.simulate_crowd(truth, ["flip(0.2) x4", "eve=spammer(constant)"])
    >>> [sign.worker for sign in find_signs(crowd, kinds=["constant"])]
    ['eve']
    """
    names = list(SIGNS) if kinds is None else [kinds] if isinstance(kinds, str) else list(kinds)
    for name in names:
        if name not in SIGNS:
            raise UnknownNameError("sign", name, SIGNS)
    if not len(crowd.latest):
        return []
    known = result or aggregate(crowd, "ds")
    scene = Scene(find_truth(crowd, gold, known), thresholds or Thresholds())
    found: list[Sign] = []
    for name in names:
        module, _, function = SIGNS[name][0].partition(":")
        found += getattr(import_module(module), function)(scene)
    return sorted(found, key=lambda sign: (-sign.strength, sign.p_value, sign.worker))
