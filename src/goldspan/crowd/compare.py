"""Two crowds whose golds are compared."""

from __future__ import annotations

from dataclasses import replace

from goldspan.crowd.model import Crowd
from goldspan.errors import InputError


def aligned_sides(predicted: Crowd, truth: Crowd) -> tuple[Crowd, Crowd]:
    """Give two crowds whose golds can be compared by item id.

    Where no id is shared and the tokens are the same, the ids of the truth are taken for both.

    Raises:
        InputError: Nothing fits.
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
