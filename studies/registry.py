"""The studies by name: a new one is one file and one line here."""

from __future__ import annotations

STUDIES: dict[str, tuple[str, str]] = {
    "audit": (
        "studies.audit:study",
        "how far the certificate of audited labels can be believed: coverage, width, every look",
    ),
    "bsc": (
        "studies.bsc:study",
        "Simpson and Gurevych 2019: worker models in Bayesian sequence combination",
    ),
    "campaign-ner": (
        "studies.campaign_ner.study:study",
        "a campaign on the NER crowd's answers: F1 against money, fixed and adaptive",
    ),
    "known": (
        "studies.known:study",
        "what checked items make of the labels of all others",
    ),
    "layers": (
        "studies.layers:study",
        "spans that overlap, any number of labels, labels on a scale: beside votes and oracles",
    ),
    "li-liu": (
        "studies.li_liu.study:study",
        "Li and Liu 2015: whom to hire within a budget, simulated pools and bluebirds",
    ),
    "li-liu-claims": (
        "studies.li_liu.claims:study",
        "Li and Liu 2015: which settings reproduce its simulated figures",
    ),
    "li-liu-teams": (
        "studies.li_liu.teams:study",
        "whom can I drop without loss: one coin against confusion matrices, dense crowds",
    ),
    "ntoulas-spambase": (
        "studies.ntoulas.spambase:study",
        "Ntoulas et al.: spam from a fifth of the labels, by coverage and by random",
    ),
    "ntoulas-text": (
        "studies.ntoulas.text:study",
        "Ntoulas et al.: texts that a crowd labels, by coverage and by random",
    ),
    "people-models": (
        "studies.people_models:study",
        "what models add to people, declared and not, and what people then cost",
    ),
    "purity": (
        "studies.purity.study:study",
        "every method and auto over every crowd: score, regret, confidence, seconds, memory",
    ),
    "redundancy": (
        "studies.redundancy:study",
        "how many answers stopping rules save, simulated and replayed",
    ),
    "rodrigues-2": (
        "studies.rodrigues.study2:study",
        "Rodrigues et al. 2013: names, five simulated workers who all label everything",
    ),
    "rodrigues-3": (
        "studies.rodrigues.study3:study",
        "Rodrigues et al. 2013: names, five simulated workers who label a fifth each",
    ),
    "rodrigues-4": (
        "studies.rodrigues.study4:study",
        "Rodrigues et al. 2013: noun phrases, five workers who flip labels",
    ),
    "rodrigues-5": (
        "studies.rodrigues.study5:study",
        "Rodrigues et al. 2013: every method on the real crowd, and on unseen text",
    ),
    "rodrigues-6": (
        "studies.rodrigues.study6:study",
        "Rodrigues et al. 2013: the real crowd, one worker per article",
    ),
    "scale": (
        "studies.scale.study:study",
        "how time and memory grow: crowds of 10⁸ labels, Ray, a pool of 10⁶ items, many machines",
    ),
    "selection-ner": (
        "studies.selection_ner.study:study",
        "what to label first: rules of selection on CoNLL-2003 at equal tokens",
    ),
    "selection-ner-full": (
        "studies.selection_ner.full:study",
        "which share of CoNLL-2003 gives 99 % of the F1 that all of it gives",
    ),
    "value": (
        "studies.value:study",
        "one currency for money, time and mistakes: campaigns beside fixed redundancy",
    ),
}

WITH_PICTURE = frozenset(
    {
        "campaign-ner",
        "li-liu",
        "li-liu-claims",
        "li-liu-teams",
        "redundancy",
        "scale",
        "selection-ner",
        "selection-ner-full",
        *(n for n in STUDIES if n.startswith(("ntoulas-", "rodrigues-"))),
    }
)
"""The studies that draw a picture."""

PARTS = ("sources", "labels", "copies", "families", "models", "speed", "cuts")
"""The parts of the study purity, in the order of its tables."""

WITHOUT_DATA = frozenset({"scale"})
"""The studies that make all their data."""

LONG = (
    "campaign-ner", "people-models", "rodrigues-5", "selection-ner-full", "scale",
    "rodrigues-6", "rodrigues-4", "rodrigues-3", "rodrigues-2",
)  # fmt: skip
"""The studies that take hours, the longest last."""


def names_by_length() -> list[str]:
    """Return the names of all studies, those that take hours last.

    >>> names_by_length()[-1]
    'rodrigues-2'
    """
    return [*(name for name in STUDIES if name not in LONG), *LONG]
