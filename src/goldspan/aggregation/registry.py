"""The aggregators by name. A new one is a class and one line here.

The value is "module:class" of an `Aggregator`, and one line for help texts. Other packages add
theirs under the entry-point group "goldspan.methods".
"""

from __future__ import annotations

import re
from difflib import get_close_matches

PLACES: dict[str, tuple[str, str]] = {
    "auto": ("auto:Auto", "the mixture of methods that predicts hidden answers best"),
    "mv-token": ("votes:TokenVote", "majority vote per token (plurality)"),
    "mv-seq": ("votes:SequenceVote", "the tag sequence that most workers gave"),
    "mv-seg": ("votes:SegmentVote", "vote on segments, then on their types"),
    "wmv-linear": ("weighted:LinearVote", "votes weighted by reliability w: L w - 1"),
    "wmv-log": ("weighted:LogOddsVote", "votes weighted by log-odds of w"),
    "wawa": ("weighted:Wawa", "votes weighted by agreement with the vote"),
    "zbs": (
        "weighted:ZeroBasedSkill",
        "votes weighted by skill, learned in rounds, from chance on",
    ),
    "glad": ("glad:Glad", "ability of workers, difficulty of items"),
    "ordinal": ("ordinal:Ordinal", "labels on a scale: gain, shift and noise of every worker"),
    "ds": ("dawid_skene:DawidSkene", "Dawid-Skene: EM over confusion matrices"),
    "one-coin": ("dawid_skene:OneCoin", "EM over one accuracy per worker"),
    "ibcc": ("dawid_skene:Ibcc", "Bayesian confusion matrices, no chain"),
    "mace": ("dawid_skene:MaceTokens", "workers know or guess, no chain"),
    "bsc-acc": ("bsc.family:BscAcc", "Bayesian sequences, worker accuracy"),
    "bsc-mace": ("bsc.family:BscMace", "Bayesian sequences, know or guess"),
    "bsc-cv": ("bsc.family:BscCv", "Bayesian sequences, accuracy per label"),
    "bsc-cm": ("bsc.family:BscCm", "Bayesian sequences, confusion matrices"),
    "bsc-seq": ("bsc.family:BscSeq", "Bayesian sequences, confusion matrices per previous label"),
    "crf-conc": ("crf:CrfConc", "a CRF trained on all answers"),
    "crf-ma": ("crf:CrfMa", "a CRF and the reliability of workers, in turn"),
    "multicrf": ("crf:MultiCrf", "a CRF on soft labels, without worker models"),
    "multicrf-max": ("crf:MultiCrfMax", "a CRF on the most probable labels, without worker models"),
}
METHODS = {name: (f"goldspan.aggregation.{at}", about) for name, (at, about) in PLACES.items()}

DEFAULT = "auto"
"""The method where none is named."""

TEXTS: dict[str, str] = {
    "words": "with a word distribution per label",
    "crf": "with a cross-fitted CRF, which is returned as the tagger",
    "encoder": "with a cross-fitted encoder, which is returned as the tagger (encoder=NAME)",
}
"""What can follow a bsc method after a plus: `bsc-seq+words`, `bsc-seq+crf`, `bsc-seq+encoder`."""

ALIASES: dict[str, str] = {
    "majority": "mv-token",
    "majority-vote": "mv-token",
    "majority-voting": "mv-token",
    "mv": "mv-token",
    "vote": "mv-token",
    "plurality": "mv-token",
    "dawid-skene": "ds",
    "one-coin-dawid-skene": "one-coin",
    "worker-agreement-with-aggregate": "wawa",
    "zero-based-skill": "zbs",
    "bcc": "ibcc",
    "independent-bcc": "ibcc",
    "bsc": "bsc-seq",
    "bayesian-sequence-combination": "bsc-seq",
}
"""Names under which other papers and packages know a method."""


def canonical(method: str) -> str:
    """Return the registered name of a method that is written in another way.

    Case, hyphens and underscores do not matter. What is not known stays as it is.
    """
    base, plus, text = method.partition("+")
    if base in METHODS:
        return method
    return f"{_known().get(_squeezed(base), base)}{plus}{text}"


def nearest(method: str) -> str | None:
    """Return the method whose name, or another name of which, looks most like a text."""
    known = _known()
    found = get_close_matches(_squeezed(method.partition("+")[0]), known, n=1)
    return known[found[0]] if found else None


def _known() -> dict[str, str]:
    return {_squeezed(name): meant for name, meant in ALIASES.items()} | {
        _squeezed(name): name for name in METHODS
    }


def _squeezed(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())
