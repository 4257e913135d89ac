"""The aggregators by name. A new one is one file and one line here.

The value is "module:class" of an `Aggregator`, and one line for help texts. Other packages add
theirs under the entry-point group "karat.methods".
"""

from __future__ import annotations

METHODS: dict[str, tuple[str, str]] = {
    "mv-token": ("karat.aggregate.votes:TokenVote", "majority vote per token (plurality)"),
    "mv-seq": ("karat.aggregate.votes:SequenceVote", "the tag sequence that most workers gave"),
    "mv-seg": ("karat.aggregate.votes:SegmentVote", "vote on segments, then on their types"),
    "wmv-linear": (
        "karat.aggregate.weighted.wmv:LinearVote",
        "votes weighted by reliability w: L w - 1",
    ),
    "wmv-log": ("karat.aggregate.weighted.wmv:LogOddsVote", "votes weighted by log-odds of w"),
    "wawa": ("karat.aggregate.weighted.skill:Wawa", "votes weighted by agreement with the vote"),
    "zbs": ("karat.aggregate.weighted.skill:ZeroBasedSkill", "the same in rounds, from chance on"),
    "kos": ("karat.aggregate.weighted.kos:Kos", "messages between items and workers"),
    "glad": ("karat.aggregate.weighted.glad:Glad", "ability of workers, difficulty of items"),
    "mean": ("karat.aggregate.numeric.methods:Mean", "mean of labels that are numbers"),
    "median": ("karat.aggregate.numeric.methods:Median", "median of labels that are numbers"),
    "ds": ("karat.aggregate.dawid_skene:DawidSkene", "Dawid-Skene: EM over confusion matrices"),
    "one-coin": ("karat.aggregate.dawid_skene:OneCoin", "EM over one accuracy per worker"),
    "ibcc": ("karat.aggregate.dawid_skene:Ibcc", "Bayesian confusion matrices, no chain"),
    "mace": ("karat.aggregate.dawid_skene:MaceTokens", "workers know or guess, no chain"),
    "bsc-acc": ("karat.aggregate.bsc.sequence:BscAcc", "Bayesian sequences, worker accuracy"),
    "bsc-mace": ("karat.aggregate.bsc.sequence:BscMace", "Bayesian sequences, know or guess"),
    "bsc-cv": ("karat.aggregate.bsc.sequence:BscCv", "Bayesian sequences, accuracy per label"),
    "bsc-cm": ("karat.aggregate.bsc.sequence:BscCm", "Bayesian sequences, confusion matrices"),
    "bsc-seq": ("karat.aggregate.bsc.sequence:BscSeq", "Bayesian sequences, workers with memory"),
    "crf-conc": ("karat.aggregate.crf.conc:CrfConc", "a CRF trained on everybody's answers"),
    "crf-ma": ("karat.aggregate.crf.ma:CrfMa", "a CRF and the reliability of workers, in turn"),
    "multicrf": ("karat.aggregate.crf.multi:MultiCrf", "a CRF on soft labels, workers unnamed"),
    "multicrf-max": ("karat.aggregate.crf.multi:MultiCrfMax", "the same on the likeliest labels"),
}

TEXTS: dict[str, str] = {
    "words": "and a Dirichlet over the words of every label",
    "crf": "and a cross-fitted CRF, which is the tagger that you keep",
}
"""What can follow a bsc method after a plus: `bsc-seq+words`, `bsc-seq+crf`."""
