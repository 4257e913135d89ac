"""A CRF that need not read the words of the pool again: their features are numbered once.

To find the features of a pool of 200,000 tokens takes longer than all else that a rule does with a
model. The tokens of the study's pool carry their item's number, by which the features are found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from goldspan.params import result
from goldspan.tagger import CRF, Text
from goldspan.tagger.features import Features

ITEM = "item"
"""The column of a text that holds the number of every token's item."""


class PoolCRF(CRF):
    """A CRF as its base, with the features of the pool looked up.

    Attributes:
        marks: The features of all items of the pool, set beside `features_`.
    """

    marks: Features = result()

    def _features(self, X: Any) -> Features:
        if isinstance(X, Text) and ITEM in X.columns:
            return self.marks.select(X.columns[ITEM].take(pa.array(X.offsets[:-1])).to_numpy())
        return super()._features(X)


def numbered(text: Text) -> Text:
    """Return a text whose tokens carry the number of their item.

    >>> numbered(Text.of([["so", "be"], ["it"]])).columns["item"].to_pylist()
    [0, 0, 1]
    """
    sizes = np.diff(text.offsets)
    item = pa.array(np.repeat(np.arange(len(sizes)), sizes))
    return Text(text.words, text.offsets, text.group, {**text.columns, ITEM: item})
