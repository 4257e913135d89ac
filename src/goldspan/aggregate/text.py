"""The words of a crowd, as taggers read them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.tagger.features import Text


def text_of(crowd: Crowd) -> Text:
    """Give the words of a crowd with their documents."""
    group = None
    if crowd.groups is not None:
        names = np.asarray(crowd.groups.to_pylist(), object).astype(str)
        group = np.unique(names, return_inverse=True)[1].astype(np.int64)
    words = crowd.tokens.flatten().cast(pa.large_string())
    return Text(words, crowd.offsets, group)


def check_words(crowd: Crowd) -> None:
    """Refuse a crowd of single labels without text, whose only words are the items' names.

    Raises:
        InputError: It is one.
    """
    words = crowd.tokens.flatten().cast(pa.string())
    if crowd.is_classification and words.equals(crowd.item_ids.cast(pa.string())):
        raise InputError(
            "a CRF learns from words, and these single labels have none but their items' names: "
            "use ds, ibcc or mace"
        )
