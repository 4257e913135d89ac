"""What every kind of event does to the tables: kind → "module:function"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from karat.errors import UnknownNameError

EFFECTS = {
    "adjust": "karat.store.batches:put_wanted",
    "bar": "karat.store.workers:put_barred",
    "batch": "karat.store.batches:put_batch",
    "cap": "karat.store.money:put_cap",
    "charge": "karat.store.money:put_charge",
    "create": "karat.store.journal:put_campaign",
    "free": "karat.store.leases:put_free",
    "gold": "karat.store.records:put_gold",
    "items": "karat.store.pool:put_items",
    "lease": "karat.store.leases:put_leases",
    "pause": "karat.store.workers:put_paused",
    "record": "karat.store.records:put_record",
    "submit": "karat.store.answers:put_answer",
    "worker": "karat.store.workers:put_worker",
}


@cache
def effect_of(kind: str) -> Callable[[Any, Mapping[str, Any]], None]:
    """Find what a kind of event does: a function of the open entry and the event's body.

    Raises:
        UnknownNameError: There is no such kind; a newer karat wrote the log.
    """
    if kind not in EFFECTS:
        raise UnknownNameError("kind of event", kind, EFFECTS, "a newer karat may have written it")
    module, name = EFFECTS[kind].split(":")
    effect: Callable[[Any, Mapping[str, Any]], None] = getattr(import_module(module), name)
    return effect
