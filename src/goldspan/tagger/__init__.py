"""Taggers: a linear-chain CRF, an HMM, and pre-trained encoders; on hard or soft labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.tagger.crf import CRF
    from goldspan.tagger.encoder import Encoder, SoftTags
    from goldspan.tagger.features import Text
    from goldspan.tagger.hmm import HMM
    from goldspan.tagger.load import load_tagger

__all__ = ["CRF", "HMM", "Encoder", "SoftTags", "Text", "load_tagger"]

__getattr__ = lazy(
    __name__,
    {
        "CRF": "goldspan.tagger.crf",
        "Encoder": "goldspan.tagger.encoder",
        "HMM": "goldspan.tagger.hmm",
        "SoftTags": "goldspan.tagger.encoder",
        "Text": "goldspan.tagger.features",
        "load_tagger": "goldspan.tagger.load",
    },
)
