"""Rodrigues et al. 2013, table 2: names, five simulated workers who label everything."""

from __future__ import annotations

from studies.rodrigues.data import read_entities
from studies.rodrigues.methods import Claim
from studies.rodrigues.simulated import EVERYBODY, PENALTY
from studies.rodrigues.simulated_study import SimulatedStudy

WORKERS = tuple(f"crf_noise({variance})" for variance in (0.005, 0.05, 0.05, 0.1, 0.1))
BELOW = ("mv-seq", "mv-token", "mv-seg (in or out)", "crf-conc", "multicrf", "multicrf-max")
DISTINCT = ("multicrf (distinct)", "multicrf-max (distinct)")
TIED = ("mv-token (ties to spans)", "mv-seg (in or out; ties to spans)")
OTHER_FORMS = (*TIED, "mv-seg", *DISTINCT)
CLAIM = Claim("crf-ma (eq. 15)", BELOW)
BERNOULLI = ("crf-ma (Bernoulli)", "crf-ma (Bernoulli; per label)")
OURS = ("hmm-ma (eq. 15)", "crf-ma", "bsc-seq", "bsc-seq+crf")
METHODS = (*BELOW, CLAIM.method, *OURS, *OTHER_FORMS, "crf-gold")
PRIORS = (
    "multicrf and multicrf-max begin with the same prior for every worker's label of a token. "
    '"(distinct)" begins with the same prior for every different label, however many gave it: a '
    "spammer who is alone against four then begins with one half. The paper says no more than "
    '"uniform label priors". hmm-ma is crf-ma with a hidden Markov model in place of the CRF '
    '(section 5 of the paper), on our features "hmm".'
)
FORMS = (
    "mv-seg (in or out) votes as the paper describes it: whether a token is in a segment, then the "
    "segment's type. mv-seg is ours, and votes on begin and end as well. " + PRIORS
)
TIES = (
    "Ties of votes go to O, our default, or, in the rows of ties to spans, to the label that is "
    "not O; the paper does not say which."
)

study = SimulatedStudy(
    name="rodrigues-2",
    title="Names, simulated workers, repeated labelling (Rodrigues et al. 2013, table 2)",
    read=read_entities,
    workers=WORKERS,
    claim=CLAIM,
    methods=METHODS,
    notes=(PENALTY, EVERYBODY, FORMS, TIES),
)
