"""What every kind of event does to the tables: kind → "module:function"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from goldspan.errors import UnknownNameError

EFFECTS = {
    "adjust": "goldspan.store.pool:put_wanted",
    "bar": "goldspan.store.people:put_barred",
    "batch": "goldspan.store.pool:put_batch",
    "begin": "goldspan.store.erasing:put_begin",
    "cap": "goldspan.store.money:put_cap",
    "change": "goldspan.store.answers:put_change",
    "charge": "goldspan.store.money:put_charge",
    "create": "goldspan.store.journal:put_campaign",
    "forget": "goldspan.store.people:put_forgotten",
    "free": "goldspan.store.places:put_free",
    "gold": "goldspan.store.records:put_gold",
    "items": "goldspan.store.pool:put_items",
    "details": "goldspan.store.pool:put_details",
    "lease": "goldspan.store.places:put_leases",
    "note": "goldspan.store.people:put_note",
    "pause": "goldspan.store.people:put_paused",
    "record": "goldspan.store.records:put_record",
    "snapshot": "goldspan.store.erasing:put_rows",
    "submit": "goldspan.store.answers:put_answer",
    "version": "goldspan.store.records:put_version",
    "worker": "goldspan.store.people:put_worker",
}


@cache
def effect_of(kind: str) -> Callable[[Any, Mapping[str, Any]], None]:
    """Find what a kind of event does: a function of the open entry and the event's body.

    Raises:
        UnknownNameError: There is no such kind; a newer goldspan wrote the log.
    """
    if kind not in EFFECTS:
        raise UnknownNameError(
            "kind of event", kind, EFFECTS, "a newer goldspan may have written it"
        )
    module, name = EFFECTS[kind].split(":")
    effect: Callable[[Any, Mapping[str, Any]], None] = getattr(import_module(module), name)
    return effect
