"""From many answers to one: aggregators behind one function, `aggregate`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from karat.aggregate.base import Aggregator
from karat.aggregate.consensus import Consensus
from karat.aggregate.registry import METHODS
from karat.errors import InputError, UnknownNameError

__all__ = ["Aggregator", "Consensus", "aggregate", "get_aggregator", "methods"]


def methods() -> dict[str, str]:
    """Give the methods by name with one line about each."""
    known = {name: summary for name, (_, summary) in METHODS.items()}
    others = entry_points(group="karat.methods")
    return {**known, **{point.name: point.value for point in others if point.name not in known}}


def get_aggregator(method: str, **params: Any) -> Aggregator:
    """Make an aggregator by its name.

    Raises:
        UnknownNameError: There is no such method; the message names them all.
        InputError: The method has no such parameter.
    """
    places = {point.name: point.value for point in entry_points(group="karat.methods")}
    places |= {name: place for name, (place, _) in METHODS.items()}
    if method not in places:
        raise UnknownNameError("method", method, places)
    module, name = places[method].split(":")
    found: Aggregator = getattr(import_module(module), name)()
    return type(found)(**{**found.get_params(), **_known(found, params)})


def aggregate(crowd: Any, method: str = "mv-token", **params: Any) -> Consensus:
    """Aggregate the answers of a crowd.

    Args:
        crowd: A `Crowd`, anything that `read_crowd` reads, or a DataFrame with columns task,
            worker, label.
        method: Name of the method; `karat.aggregate.methods()` lists them.
        params: Its parameters, for example `ties="inside"`.

    Returns:
        Labels, confidence, spans, workers, and how it went.

    Raises:
        UnknownNameError: There is no such method.
        InputError: The crowd has no answer, or a parameter is wrong.

    >>> aggregate(b"task,worker,label\\nq1,a,yes\\nq1,b,yes\\nq1,c,no\\n").labels
    ['yes']
    """
    return get_aggregator(method, **params).fit(crowd).result_


def _known(aggregator: Aggregator, params: dict[str, Any]) -> dict[str, Any]:
    names = aggregator.get_params()
    for name in params:
        if name not in names:
            raise InputError(
                f"{aggregator.name} has no parameter {name!r}: it has {', '.join(names)}"
            )
    return params
