"""Comparing predictions with the truth, whatever the two are given as."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from goldspan.crowd.gold import with_same_tokens
from goldspan.crowd.io import to_crowd
from goldspan.crowd.model import Crowd
from goldspan.errors import InputError
from goldspan.spans import score as score_tags
from goldspan.spans.scoring import Score


def score(
    truth: Any,
    predicted: Any,
    *,
    encoding: str | None = None,
    policy: str = "conlleval",
    bootstrap: int = 0,
    level: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
    wrong: bool = False,
    **reading: Any,
) -> Score:
    r"""Compare predicted spans, or single labels, with the true ones.

    Either side may be a `Crowd` (its gold), a `Consensus` (its labels), anything that `read_crowd`
    reads and that holds known labels (a path, bytes, an open file, a DataFrame or list of dicts
    with a row per label), a pandas Series of labels by item as `fit_predict` returns it, a mapping
    from item ids to labels or to lists of tags, or a list of lists of tags.

    Items are matched by their ids; by order where no id is on both sides and the tokens are the
    same. Items on one side alone are left out.

    Args:
        truth: What is true.
        predicted: What is compared with it.
        encoding: Of the tags of both sides; by default that of the sides, of lists "BIO".
        policy: How malformed tags are read on both sides: "conlleval", "strict", "boundaries",
            "raise"; see `goldspan.spans.find_spans`.
        bootstrap: Number of resamples of items for the interval of F1, at least 100; 0 for none.
        level: Of that interval.
        random_state: Seed or generator of the resampling.
        wrong: List every wrong span in the result.
        reading: Options of `read_crowd` for the sides that are read.

    Raises:
        InputError: A side cannot be read or has no known labels (the message names it), nothing
            matches, or `bootstrap` is too small.
        FaultsError: A tag does not belong to the encoding.

    >>> result = score([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
    >>> result.f1, result.schemes["partial"].f1, result.policy
    (0.0, 0.5, 'conlleval')
    >>> truth = [{"item": "q1", "label": "yes"}, {"item": "q2", "label": "no"}]
    >>> score(truth, b"item,label\nq1,yes\nq2,yes\n").accuracy
    0.5
    """
    if encoding is not None:
        reading["encoding"] = encoding
    left, right = _side(truth, "truth", reading), _side(predicted, "predicted", reading)
    if isinstance(left, Crowd) and isinstance(right, Crowd):
        right, left = with_same_tokens(*aligned_sides(right, left))
    return score_tags(
        left,
        right,
        encoding=encoding,
        policy=policy,
        bootstrap=bootstrap,
        level=level,
        random_state=random_state,
        wrong=wrong,
    )


def aligned_sides(predicted: Crowd, truth: Crowd) -> tuple[Crowd, Crowd]:
    """Return two crowds whose golds can be compared by item id.

    Where no id is shared and the tokens are the same, the ids of the truth are taken for both.
    """
    shared = set(predicted.item_ids.to_pylist()) & set(truth.item_ids.to_pylist())
    if shared:
        return predicted, truth
    if predicted.tokens == truth.tokens:
        return replace(predicted, item_ids=truth.item_ids), truth
    raise InputError(
        f"no item id is on both sides ({predicted.item_ids[0].as_py()!r} …, "
        f"{truth.item_ids[0].as_py()!r} …), and the tokens differ too: are these the same texts?"
    )


def _side(data: Any, argument: str, reading: Mapping[str, Any]) -> Any:
    """Return tags as they are, and anything else as a crowd with gold."""
    if isinstance(data, Mapping) and data and not any(map(_is_tags, data.values())):
        data = [{"task": str(item), "label": label} for item, label in data.items()]
    is_rows = isinstance(data, list | tuple) and any(isinstance(row, Mapping) for row in data)
    if isinstance(data, Mapping) or (isinstance(data, list | tuple) and not is_rows):
        wrong = [row for row in _tags_in(data) if not _is_tags(row)]
        if wrong:
            raise InputError(
                f"{argument}: {wrong[0]!r} is not a list of tags: give every item a list of tags, "
                "or single labels as a mapping from item ids to labels or rows with item and label"
            )
        return data
    if isinstance(data, Crowd) or hasattr(type(data), "as_gold"):
        crowd = to_crowd(data, argument)
    else:
        crowd = to_crowd(_table_of(data), argument, **reading)
    if crowd.gold is None:
        raise InputError(
            f"{argument}: there are no known labels in it, it was read as {crowd!r}: pass its "
            "Consensus, a crowd with gold, or a table without a worker column"
        )
    return crowd


def _tags_in(data: Any) -> Iterable[Any]:
    return data.values() if isinstance(data, Mapping) else data


def _is_tags(value: Any) -> bool:
    """Return whether a value is the tags of an item, and no single label."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _table_of(data: Any) -> Any:
    """Return a pandas Series of labels by item as a DataFrame; anything else as it is."""
    kind = type(data)
    if hasattr(kind, "columns") or not hasattr(kind, "rename_axis"):
        return data
    return data.rename("label").rename_axis("task").reset_index()
