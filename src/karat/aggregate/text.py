"""The words of a crowd, as taggers read them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from karat.crowd import Crowd
from karat.tagger.features import Text


def text_of(crowd: Crowd) -> Text:
    """Give the words of a crowd with their documents."""
    group = None
    if crowd.groups is not None:
        names = np.asarray(crowd.groups.to_pylist(), object).astype(str)
        group = np.unique(names, return_inverse=True)[1].astype(np.int64)
    words = crowd.tokens.flatten().cast(pa.large_string())
    return Text(words, crowd.offsets, group)
