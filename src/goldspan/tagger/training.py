"""Training a linear-chain CRF on hard, soft or partial targets (MATH section 5).

    L(w) = sum_n [E_q score(y, x_n) - weight_n ln Z(x_n)] - c2 |w|^2

q is what is believed of the truth: one tag sequence, several with weights, or marginals. The first
term is linear in w, so that targets are summed up once; every evaluation is one forward-backward
per item, whatever the number of workers. Of items whose tags are known in part, ln p(what is known)
counts: ln Z(known) - ln Z. That is not concave: then the result is a local optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from goldspan.errors import InputError
from goldspan.protocols import Runner
from goldspan.tagger.columns import Merged
from goldspan.tagger.features import Features
from goldspan.tagger.kernels.training import first_without_path
from goldspan.tagger.lbfgs import Interrupted, Minimum, minimise
from goldspan.tagger.objective import Objective
from goldspan.tagger.parameters import MOST, check_number
from goldspan.tagger.targets import Clamp, Masks, Targets
from goldspan.tagger.weights import Floats, Weights

__all__ = ["Clamp", "Masks", "Targets", "check_paths", "train"]

Hear = Callable[[int, float, Callable[[], Weights]], str | None]
"""Who hears of a step: its number, the objective, and a way to ask for the weights."""


def train(
    features: Features,
    targets: Targets,
    masks: Masks,
    *,
    c2: float,
    runner: Runner,
    start: Weights | None = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    callback: Hear | None = None,
    bias: bool = True,
    merged: Merged | None = None,
) -> tuple[Weights, Minimum]:
    """Find the weights of largest penalised likelihood.

    Args:
        features: The features of all items.
        targets: What they should be labelled.
        masks: What is impossible.
        c2: Penalty; the Gaussian prior has variance 1 / (2 c2).
        runner: Where to work.
        start: Weights to begin with; 0 by default. Those of features that stand with the same
            tokens are evened out, those of features that stand nowhere become 0: both raise L.
        max_iter: Most steps of L-BFGS.
        tol: Relative decrease over ten steps at which to stop.
        callback: Told of every step; a string stops.
        bias: Whether the first and the last tag have weights.
        merged: `Merged.of` these features, to be used again where they are trained on repeatedly.

    Returns:
        The weights and how the search went; its objective is -L(w).

    Raises:
        InputError: c2 is no penalty, no possible sequence agrees with what is known of an item, or
            the objective is not finite.
        Interrupted: Ctrl-C, after the first step; it holds what was found.
    """
    check_number("c2", c2, 0, MOST)
    check_paths(features, targets, masks)
    merged = merged or Merged.of(features, len(targets.counts.state))
    n_labels = targets.counts.n_labels
    first = Weights.zeros(len(merged.root), n_labels)
    begin = first.vector if start is None else merged.join(start)
    if not bias:
        ends = Weights.of_vector(begin, len(merged.root), n_labels)
        ends.start[:] = ends.end[:] = 0.0

    def expand(vector: Floats) -> Weights:
        return merged.split(vector, n_labels)

    def hear(step: int, value: float, vector: Floats) -> str | None:
        return callback(step, value, lambda: expand(vector)) if callback else None

    objective = Objective(merged, targets, masks, c2, runner, bias)
    try:
        found = minimise(objective, begin, max_iter=max_iter, tol=tol, callback=hear)
    except Interrupted as stop:
        weights = expand(stop.found.x)
        raise Interrupted(replace(stop.found, x=weights.vector)) from None
    weights = expand(found.x)
    return weights, replace(found, x=weights.vector)


def check_paths(features: Features, targets: Targets, masks: Masks) -> None:
    """Check that some possible sequence agrees with what is known of every item.

    Raises:
        InputError: For some item there is none; the first is named.
    """
    for clamp in targets.clamps:
        chain = (masks.start, masks.step, masks.end)
        item = first_without_path(features.offsets, clamp.weight, clamp.allowed, *chain)
        if item >= 0:
            raise InputError(
                f"item {item}: no possible sequence agrees with the tags that are known of it: "
                "make them well-formed, or allow any sequence with hard=False"
            )
