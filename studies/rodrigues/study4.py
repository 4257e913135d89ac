"""Rodrigues et al. 2013, table 4: noun phrases, five workers who flip labels."""

from __future__ import annotations

from studies.rodrigues.data import read_phrases
from studies.rodrigues.methods import Claim
from studies.rodrigues.simulated import EVERYBODY
from studies.rodrigues.simulated_study import SimulatedStudy
from studies.rodrigues.study2 import BERNOULLI, DISTINCT, OURS, PRIORS, TIED, TIES

WORKERS = tuple(f"flip({p}, labels=used)" for p in (0.01, 0.1, 0.3, 0.5, 0.7))
CLAIM = Claim("crf-ma (eq. 15)", ("mv-seq", "mv-token", "crf-conc", "multicrf", "multicrf-max"))
METHODS = (*CLAIM.below, CLAIM.method, *BERNOULLI, *OURS, TIED[0], *DISTINCT, "crf-gold")
NOTES = (
    EVERYBODY,
    PRIORS,
    TIES,
    (
        "A token is in or out of a noun phrase (I or O): phrases that touch are one. With two "
        "labels mv-seg is mv-token, as the paper says, and is left out."
    ),
)

study = SimulatedStudy(
    name="rodrigues-4",
    title="Noun phrases, simulated workers, repeated labelling (Rodrigues et al. 2013, table 4)",
    read=read_phrases,
    workers=WORKERS,
    claim=CLAIM,
    methods=METHODS,
    notes=NOTES,
)
