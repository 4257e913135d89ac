"""How well the workers agree, worked out once for every state of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goldspan.errors import InputError

if TYPE_CHECKING:
    from goldspan.server.service import Service


def agreement(service: Service) -> dict[str, Any]:
    """Give Krippendorff's alpha and more; null where there is too little."""
    crowd = service.engine.live.crowd
    if crowd is None or not crowd.n_items:
        return {"n_answers": 0, "measures": None}
    kept: tuple[Any, Any] | None = service.__dict__.get("_agreement")
    if kept is None or kept[0] is not crowd:
        kept = crowd, _measure(crowd)
        service.__dict__["_agreement"] = kept
    return {"n_answers": len(crowd.latest), "measures": kept[1]}


def _measure(crowd: Any) -> Any:
    from goldspan.crowd import agreement as measure

    try:
        return measure(crowd).to_dict()
    except InputError:
        return None
