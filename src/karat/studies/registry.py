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
}
