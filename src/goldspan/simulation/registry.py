"""The kinds of simulated workers by name: a new one is a class and one line here."""

from __future__ import annotations

WORKERS: dict[str, tuple[str, str]] = {
    "perfect": ("goldspan.simulation.base:Perfect", "always gives the truth"),
    "crf_noise": (
        "goldspan.simulation.base:CrfNoise",
        "a CRF trained on the truth, noise on its parameters: a consistent worker",
    ),
    "flip": (
        "goldspan.simulation.annotators:Flip",
        "replaces a label with a random other one, with probability p",
    ),
    "acc": ("goldspan.simulation.annotators:Acc", "one probability of being right"),
    "mace": ("goldspan.simulation.annotators:Mace", "knows the label, or answers by habit"),
    "cv": ("goldspan.simulation.annotators:Cv", "a probability of being right per true label"),
    "cm": ("goldspan.simulation.annotators:Cm", "a confusion matrix"),
    "seq": ("goldspan.simulation.annotators:Seq", "a confusion matrix per previous label"),
    "spammer": (
        "goldspan.simulation.annotators:Spammer",
        "ignores the text: constant, frequent or random",
    ),
    "copier": ("goldspan.simulation.annotators:Copier", "copies another worker's answers"),
    "drift": (
        "goldspan.simulation.annotators:Drift",
        "changes from one worker into another over time",
    ),
    "early": ("goldspan.simulation.annotators:Early", "starts spans early"),
    "late": ("goldspan.simulation.annotators:Late", "ends spans late"),
    "merges": ("goldspan.simulation.annotators:Merges", "joins a span to its neighbour"),
    "splits": ("goldspan.simulation.annotators:Splits", "cuts spans in two"),
    "misses": ("goldspan.simulation.annotators:Misses", "overlooks spans"),
    "invents": ("goldspan.simulation.annotators:Invents", "marks tokens that are in no span"),
    "wrong_type": ("goldspan.simulation.annotators:WrongType", "gives spans another type"),
    "sister": (
        "goldspan.simulation.annotators:Sister",
        "errs like the others of its family: models, or prompts of one model",
    ),
}
