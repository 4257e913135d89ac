"""The kinds of simulated workers by name: a new one is a class and one line here."""

from __future__ import annotations

WORKERS: dict[str, tuple[str, str]] = {
    "perfect": ("goldspan.simulate.base:Perfect", "always gives the truth"),
    "crf_noise": (
        "goldspan.simulate.base:CrfNoise",
        "a CRF trained on the truth, noise on its parameters: a consistent worker",
    ),
    "flip": ("goldspan.simulate.annotators:Flip", "with probability p another label, uniformly"),
    "acc": ("goldspan.simulate.annotators:Acc", "one probability of being right"),
    "mace": ("goldspan.simulate.annotators:Mace", "knows, or gives a label by habit"),
    "cv": ("goldspan.simulate.annotators:Cv", "being right depends on the truth"),
    "cm": ("goldspan.simulate.annotators:Cm", "a confusion matrix"),
    "seq": ("goldspan.simulate.annotators:Seq", "a confusion matrix per label given before"),
    "spammer": (
        "goldspan.simulate.annotators:Spammer",
        "never looks: constant, frequent or random",
    ),
    "copier": ("goldspan.simulate.annotators:Copier", "copies another worker's answers"),
    "drift": (
        "goldspan.simulate.annotators:Drift",
        "turns from one worker into another over the course",
    ),
    "early": ("goldspan.simulate.annotators:Early", "starts spans one token early"),
    "late": ("goldspan.simulate.annotators:Late", "ends spans one token late"),
    "merges": ("goldspan.simulate.annotators:Merges", "joins a span to its neighbour"),
    "misses": ("goldspan.simulate.annotators:Misses", "overlooks spans"),
    "invents": ("goldspan.simulate.annotators:Invents", "marks tokens that are in no span"),
    "wrong_type": ("goldspan.simulate.annotators:WrongType", "gives spans another type"),
}
