"""Rodrigues et al. 2013, table 3: names, five simulated workers who label a fifth each."""

from __future__ import annotations

from studies.rodrigues.data import read_entities
from studies.rodrigues.methods import Claim
from studies.rodrigues.simulated import PENALTY
from studies.rodrigues.simulated_study import SimulatedStudy
from studies.rodrigues.study2 import WORKERS

CLAIM = Claim("crf-ma (c2 = 0.5)", ("crf-conc", "crf-conc (c2 = 2.5)"))
METHODS = (*CLAIM.below, "crf-ma", CLAIM.method, "hmm-ma", "bsc-seq", "bsc-seq+crf", "crf-gold")
BY_HEART = (
    "In crf-ma the weights of the workers sum up to 1, so that each of these items, which has one "
    "answer, counts about a fifth of what it counts in crf-conc: c2 = 0.5 there is c2 = 2.5 here. "
    "Both methods are shown under their defaults and under this penalty, which is stronger. "
    "Under a weak one the CRF learns every worker's labels by heart – no other answer to the item "
    "speaks against them –, finds all workers nearly as good (see their table), and crf-ma "
    "becomes crf-conc."
)

study = SimulatedStudy(
    name="rodrigues-3",
    title="Names, simulated workers, no repeated labelling (Rodrigues et al. 2013, table 3)",
    read=read_entities,
    workers=WORKERS,
    claim=CLAIM,
    methods=METHODS,
    notes=(PENALTY, BY_HEART),
    is_repeated=False,
)
