"""Paper 000, table 2: names, five simulated workers of unequal worth who label everything."""

from __future__ import annotations

from studies.rodrigues.data import read_entities
from studies.rodrigues.methods import Claim
from studies.rodrigues.simulated import EVERYBODY, PENALTY
from studies.rodrigues.simulated_study import SimulatedStudy

WORKERS = tuple(f"crf_noise({variance})" for variance in (0.005, 0.05, 0.05, 0.1, 0.1))
BELOW = ("mv-seq", "mv-token", "mv-seg", "crf-conc", "multicrf", "multicrf-max")
CLAIM = Claim("crf-ma (eq. 15)", BELOW)
METHODS = (*BELOW, "crf-ma (eq. 15)", "crf-ma", "bsc-seq", "bsc-seq+crf", "crf-gold")

study = SimulatedStudy(
    name="rodrigues-2",
    title="Names, simulated workers, repeated labelling (Rodrigues et al. 2013, table 2)",
    read=read_entities,
    workers=WORKERS,
    claim=CLAIM,
    methods=METHODS,
    notes=(PENALTY, EVERYBODY),
)
