"""Taggers: a linear-chain CRF, an HMM, and pre-trained encoders; on hard or soft labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.tagger.crf import CRF as CRF
    from goldspan.tagger.encoder import Encoder as Encoder
    from goldspan.tagger.encoder import SoftTags as SoftTags
    from goldspan.tagger.features import Text as Text
    from goldspan.tagger.hmm import HMM as HMM
    from goldspan.tagger.load import load_tagger as load_tagger

__getattr__, __dir__, __all__ = lazy(__name__)
