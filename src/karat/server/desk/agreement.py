"""How well the workers agree, worked out once for every state of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karat.errors import InputError

if TYPE_CHECKING:
    from karat.server.service import Service


def agreement(service: Service) -> dict[str, Any]:
    """Give Krippendorff's alpha and more; null where there is too little."""
    crowd = service.engine.live.crowd
    if crowd is None or not crowd.n_items:
        return {"n_answers": 0, "measures": None}
    n = service.engine.live.n_answers
    kept: dict[int, Any] = service.__dict__.setdefault("_agreement", {})
    if n not in kept:
        kept.clear()
        kept[n] = _measure(crowd)
    return {"n_answers": n, "measures": kept[n]}


def _measure(crowd: Any) -> Any:
    from karat.crowd import agreement as measure

    try:
        return measure(crowd).to_dict()
    except InputError:
        return None
