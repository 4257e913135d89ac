"""The kinds of simulated workers by name. A new one is one file and one line here.

The value is "module:class" of a `SimulatedWorker`, and one line for help texts. Other packages add
theirs under the entry-point group "karat.workers".
"""

from __future__ import annotations

WORKERS: dict[str, tuple[str, str]] = {
    "perfect": ("karat.simulate.base:Perfect", "always gives the truth"),
    "crf_noise": (
        "karat.simulate.crf_noise:CrfNoise",
        "a CRF trained on the truth, noise on its parameters: a consistent worker",
    ),
    "flip": ("karat.simulate.flip:Flip", "with probability p another label, uniformly"),
    "acc": ("karat.simulate.models:Acc", "one probability of being right"),
    "mace": ("karat.simulate.models:Mace", "knows, or gives a label by habit"),
    "cv": ("karat.simulate.models:Cv", "being right depends on the truth"),
    "cm": ("karat.simulate.models:Cm", "a confusion matrix"),
    "seq": ("karat.simulate.models:Seq", "a confusion matrix per label given before"),
    "spammer": ("karat.simulate.spammers:Spammer", "never looks: constant, frequent or random"),
    "copier": ("karat.simulate.copier:Copier", "copies another worker's answers"),
    "drift": ("karat.simulate.drift:Drift", "turns from one worker into another over the course"),
    "early": ("karat.simulate.boundaries:Early", "starts spans one token early"),
    "late": ("karat.simulate.boundaries:Late", "ends spans one token late"),
    "merges": ("karat.simulate.boundaries:Merges", "joins a span to its neighbour"),
    "misses": ("karat.simulate.choices:Misses", "overlooks spans"),
    "invents": ("karat.simulate.choices:Invents", "marks tokens that are in no span"),
    "wrong_type": ("karat.simulate.choices:WrongType", "gives spans another type"),
}
