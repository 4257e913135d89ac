"""Taggers: a linear-chain CRF and an HMM, trained on hard or soft labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat._lazy import lazy

if TYPE_CHECKING:
    from karat.tagger.crf import CRF
    from karat.tagger.features import Text
    from karat.tagger.hmm import HMM
    from karat.tagger.model_file import load_tagger

__all__ = ["CRF", "HMM", "Text", "load_tagger"]

__getattr__ = lazy(
    __name__,
    {
        "CRF": "karat.tagger.crf",
        "HMM": "karat.tagger.hmm",
        "Text": "karat.tagger.features",
        "load_tagger": "karat.tagger.model_file",
    },
)
