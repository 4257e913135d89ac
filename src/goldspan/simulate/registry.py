"""The kinds of simulated workers by name. A new one is one file and one line here.

The value is "module:class" of a `SimulatedWorker`, and one line for help texts. Other packages add
theirs under the entry-point group "goldspan.workers".
"""

from __future__ import annotations

WORKERS: dict[str, tuple[str, str]] = {
    "perfect": ("goldspan.simulate.base:Perfect", "always gives the truth"),
    "crf_noise": (
        "goldspan.simulate.crf_noise:CrfNoise",
        "a CRF trained on the truth, noise on its parameters: a consistent worker",
    ),
    "flip": ("goldspan.simulate.flip:Flip", "with probability p another label, uniformly"),
    "acc": ("goldspan.simulate.models:Acc", "one probability of being right"),
    "mace": ("goldspan.simulate.models:Mace", "knows, or gives a label by habit"),
    "cv": ("goldspan.simulate.models:Cv", "being right depends on the truth"),
    "cm": ("goldspan.simulate.models:Cm", "a confusion matrix"),
    "seq": ("goldspan.simulate.models:Seq", "a confusion matrix per label given before"),
    "spammer": ("goldspan.simulate.spammers:Spammer", "never looks: constant, frequent or random"),
    "copier": ("goldspan.simulate.copier:Copier", "copies another worker's answers"),
    "drift": (
        "goldspan.simulate.drift:Drift",
        "turns from one worker into another over the course",
    ),
    "early": ("goldspan.simulate.boundaries:Early", "starts spans one token early"),
    "late": ("goldspan.simulate.boundaries:Late", "ends spans one token late"),
    "merges": ("goldspan.simulate.boundaries:Merges", "joins a span to its neighbour"),
    "misses": ("goldspan.simulate.choices:Misses", "overlooks spans"),
    "invents": ("goldspan.simulate.choices:Invents", "marks tokens that are in no span"),
    "wrong_type": ("goldspan.simulate.choices:WrongType", "gives spans another type"),
}
