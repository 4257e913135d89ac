"""Taggers: a linear-chain CRF and an HMM, trained on hard or soft labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.tagger.crf import CRF
    from goldspan.tagger.features import Text
    from goldspan.tagger.hmm import HMM
    from goldspan.tagger.load import load_tagger

__all__ = ["CRF", "HMM", "Text", "load_tagger"]

__getattr__ = lazy(
    __name__,
    {
        "CRF": "goldspan.tagger.crf",
        "HMM": "goldspan.tagger.hmm",
        "Text": "goldspan.tagger.features",
        "load_tagger": "goldspan.tagger.load",
    },
)
