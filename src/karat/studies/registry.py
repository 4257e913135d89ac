"""The studies by name: a new one is one file and one line here."""

from __future__ import annotations

STUDIES: dict[str, tuple[str, str]] = {
    "bsc": (
        "karat.studies.bsc:study",
        "paper 001: worker models in Bayesian sequence combination, on the NER crowd",
    ),
    "classification": (
        "karat.studies.classification:study",
        "the Dawid-Skene family on twelve crowds of single labels",
    ),
    "li-liu": (
        "karat.studies.li_liu.study:study",
        "paper 002: whom to hire within a budget, simulated pools and bluebirds",
    ),
    "redundancy": (
        "karat.studies.redundancy:study",
        "how many answers stopping rules save, simulated and replayed",
    ),
    "rodrigues-2": (
        "karat.studies.rodrigues.study2:study",
        "paper 000: names, five simulated workers who all label everything",
    ),
    "rodrigues-3": (
        "karat.studies.rodrigues.study3:study",
        "paper 000: names, five simulated workers who label a fifth each",
    ),
    "rodrigues-4": (
        "karat.studies.rodrigues.study4:study",
        "paper 000: noun phrases, five workers who flip labels",
    ),
    "rodrigues-5": (
        "karat.studies.rodrigues.study5:study",
        "paper 000: every method on the real crowd, and on unseen text",
    ),
    "rodrigues-6": (
        "karat.studies.rodrigues.study6:study",
        "paper 000: the real crowd, one worker per article",
    ),
}

WITH_PICTURE = frozenset(
    {"li-liu", "redundancy", *(n for n in STUDIES if n.startswith("rodrigues-"))}
)
"""The studies that draw a picture."""
