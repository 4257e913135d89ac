"""From many answers to one: aggregators behind one function, `aggregate`.

Importing this package loads no arrays, so that the command line can list the methods at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from goldspan._lazy import lazy
from goldspan.aggregation.registry import DEFAULT, METHODS, TEXTS, canonical, nearest
from goldspan.errors import InputError, UnknownNameError
from goldspan.plugins import load, plugins

if TYPE_CHECKING:
    from goldspan.aggregation.base import Aggregator as Aggregator
    from goldspan.aggregation.calibration import calibrate as calibrate
    from goldspan.aggregation.consensus import Consensus as Consensus
    from goldspan.aggregation.layered import LayersConsensus as LayersConsensus
    from goldspan.crowd import Crowd
    from goldspan.protocols import Checkpoint, Progress, Runner

__getattr__, __dir__, __all__ = lazy(__name__, also=("methods", "get_aggregator", "aggregate"))


def methods() -> dict[str, str]:
    """Return the methods by name with one line about each."""
    known = {name: summary for name, (_, summary) in METHODS.items()}
    for text, summary in TEXTS.items():
        known |= {
            f"{name}+{text}": f"{known[name]}, {summary}"
            for name in METHODS
            if name.startswith("bsc-")
        }
    return {**plugins("goldspan.methods"), **known}


def get_aggregator(method: str, **params: Any) -> Aggregator:
    """Make an aggregator by its name, or by one of its other names: "dawid-skene" is "ds".

    Raises:
        UnknownNameError: There is no such method; the message names them all.
        InputError: The method has no such parameter.
    """
    place = None
    if method.partition("+")[0] not in METHODS:
        place = plugins("goldspan.methods").get(method)
        method = method if place else canonical(method)
    base, plus, text = method.partition("+")
    place = METHODS[base][0] if base in METHODS else place
    if place is None or (plus and (text not in TEXTS or not base.startswith("bsc-"))):
        near, plain = nearest(method), UnknownNameError("method", method, methods())
        if not near or repr(near) in str(plain):
            raise plain
        raise UnknownNameError("method", method, methods(), f"{near} may be meant")
    from goldspan.params import check_names

    made: type[Aggregator] = load(place)
    check_names(method, params, made.parameter_names())
    aggregator = made(**params)
    if text:
        aggregator.name, aggregator.text = method, text  # type: ignore[attr-defined]
    return aggregator


def aggregate(
    crowd: Any,
    method: str | None = None,
    *,
    gold: Any = None,
    start: Consensus | None = None,
    runner: Runner | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    **params: Any,
) -> Consensus:
    r"""Aggregate the answers of a crowd.

    Args:
        crowd: A `Crowd`, or anything that `read_crowd` reads: a path, bytes, an open file, a
            DataFrame with columns task, worker, label, a list of dicts; or `Layers`.
        method: Name of the method, "auto" by default: it tries many, and weighs those that
            predict hidden answers best. With `start` the default is the method of that result with
            its parameters. `goldspan.aggregation.methods()` lists all; names by which other
            packages know them do too: "majority-vote", "dawid-skene".
        gold: Known labels to learn from, which are taken as the truth: a `Crowd` with gold, a
            file, a DataFrame or list of dicts with columns item and label, or a mapping from item
            ids to labels (tagged tokens: to tags in order).
        start: An earlier result of the same method to go on from, for example when answers were
            added to the crowd; see `Aggregator.update`.
        runner: Where to work, for example `goldspan.runners.Threads(2)`; by default this thread.
        progress: Who is told of every step.
        checkpoint: Where the state is kept after every step, to resume from.
        params: Its parameters, for example `ties="inside"`; and options of `read_crowd` where
            `crowd` is not a `Crowd` yet, for example `columns={"item": "question"}`. Without
            `families` those hold that the crowd's file tells (`Crowd.worker_facts`).

    Returns:
        Labels, confidence, spans, workers, and how it went. Of `Layers` a `LayersConsensus`, which
        holds one of these per layer.

    Raises:
        UnknownNameError: There is no such method.
        InputError: The crowd has no answer, or a parameter is wrong.

    >>> answers = b"task,worker,label\nq1,a,yes\nq1,b,yes\nq1,c,no\n"
    >>> aggregate(answers).labels
    ['yes']
    >>> aggregate(answers, "ds", gold={"q1": "no"}).labels
    ['no']
    """
    if method is None and start is not None:
        method, params = start.method, {**start.params, **params}
    named, method = method, method or DEFAULT
    reading = _reading(method, params)
    from goldspan.crowd.layers import Layers

    if isinstance(crowd, Layers):
        from goldspan.aggregation.layered import aggregate_layers

        if start is not None or checkpoint is not None:
            raise InputError("start and checkpoint are of one layer: aggregate it by itself")
        how = {"runner": runner, "progress": progress, **reading, **params}
        return aggregate_layers(crowd, named, gold=gold, **how)  # type: ignore[return-value]
    aggregator = get_aggregator(method, **params)
    from goldspan.aggregation.base import reading_notes
    from goldspan.crowd.io import to_crowd

    found = to_crowd(crowd, "crowd", **reading)
    if "families" not in params:
        use_named_families(aggregator, found)
    aggregator.fit(
        found, gold, start=start, runner=runner, progress=progress, checkpoint=checkpoint
    )
    result, said = aggregator.result_, reading_notes(crowd, found)
    return replace(result, notes=(*result.notes, *said)) if said else result


def use_named_families(aggregator: Aggregator, crowd: Crowd) -> None:
    """Set the families that the crowd's own facts name, if a method looks for none by itself."""
    if aggregator.get_params().get("families") == "none" and crowd.known_facts:
        from goldspan.aggregation.families import named_families

        told = named_families(crowd)
        aggregator.set_params(families=told or "none")


def _reading(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `read_crowd` out of the parameters of a method."""
    if not params:
        return {}
    from goldspan.crowd.io import READING

    own = set(get_aggregator(method).parameter_names())
    return {name: params.pop(name) for name in list(params) if name in READING - own}
