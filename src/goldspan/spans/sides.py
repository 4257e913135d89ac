"""Two sides of a comparison, aligned by item id."""

from __future__ import annotations

from typing import Any

from goldspan.errors import InputError


def align_by_id(
    truth: Any, predicted: Any, encoding: str | None
) -> tuple[list[list[str | None]], list[list[str | None]], str]:
    """Bring two crowds, consensus results or mappings from item id to tags into one order.

    Only items on both sides are compared, and of these only tokens whose truth is known.

    Args:
        truth: Has `tagged_by_id()` (a `Crowd` gives its gold, a `Consensus` its labels), or is
            a mapping; the other side may be a plain list in the same order.
        predicted: The same.
        encoding: Of both; None takes that of the two sides, which must agree.

    Raises:
        InputError: No item is on both sides, or an item has two lengths.
    """
    left, right = _by_id(truth, predicted), _by_id(predicted, truth)
    names = {side.tagset.encoding for side in (truth, predicted) if hasattr(side, "tagset")}
    if encoding is None and len(names) > 1:
        raise InputError(
            f"one side is {' and the other '.join(sorted(names))}: convert one of them first "
            "(goldspan convert), or pass encoding=… for both"
        )
    shared = [key for key in left if key in right]
    if not shared:
        raise InputError(
            f"no item is on both sides: one has ids like {next(iter(left), '')!r}, "
            f"the other like {next(iter(right), '')!r}"
        )
    gold: list[list[str | None]] = []
    found: list[list[str | None]] = []
    for key in shared:
        a, b = left[key], right[key]
        if len(a) != len(b):
            raise InputError(f"item {key}: {len(a)} tokens on one side, {len(b)} on the other")
        known = [tag is not None for tag in a]
        gold.append(a)
        found.append([tag if k else None for tag, k in zip(b, known, strict=True)])
    return gold, found, encoding or (names.pop() if names else "BIO")


def _by_id(side: Any, other: Any) -> dict[str, list[str | None]]:
    if hasattr(side, "tagged_by_id"):
        found: dict[str, list[str | None]] = side.tagged_by_id()
        return found
    if isinstance(side, dict):
        return side
    ids = list(other.tagged_by_id())
    if len(ids) != len(side):
        raise InputError(f"{len(side)} items on one side, {len(ids)} on the other")
    return dict(zip(ids, side, strict=True))
