"""A plan's parts tried on what is made up, before any money is spent.

What does not suit – shares of votes and a rule on probabilities, a mean of labels that are no
numbers, a model that cannot read the pool – would else be found out when the first answers are
paid. The method and the stopping rule are tried on a made-up crowd, the model and the rules that
ask it on items of the pool with made-up labels.

What is known to suit is not tried: its kernels would be compiled for nothing, which takes a minute
on a new machine. A test tries all of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import get_aggregator
from goldspan.campaign.model import TAGGERS, Best, make_model
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import Labels, Model, Trained
from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions
from goldspan.errors import InputError
from goldspan.selection import Pool, Selector
from goldspan.selection.base import order_of
from goldspan.selection.registry import SELECTORS
from goldspan.selection.schedule import Schedule, read_selector
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.spans import Span, write
from goldspan.workers.stopping import get_rule

ANY_TASK = {
    "auto", "ds", "one-coin", "ibcc", "mace", "bsc-acc", "bsc-mace", "bsc-cv", "bsc-cm", "bsc-seq",
}  # fmt: skip
"""Methods that, with the parameters that they have by default, give probabilities for any task."""
ANY_METHOD = {"confident", "fixed", "clear_majority"}
"""Stopping rules that understand these."""
N_ITEMS = 12
COMMITTEES = {"vote", "committee-kl"}
"""Rules that ask several models."""
N_ROWS = 200
"""Items of the pool that a classifier is tried on."""


def try_method(
    labels: Sequence[str], types: Sequence[str], encoding: str, method: str,
    params: Mapping[str, Any], rule: str,
) -> None:  # fmt: skip
    """Aggregate a made-up crowd and ask the rule about it.

    >>> try_method(["no", "yes"], [], "", "mv-token", {}, "confident(0.9)")
    Traceback (most recent call last):
    ...
    goldspan.errors.InputError: confident needs probabilities, but has mv-token, ...
    """
    if method in ANY_TASK and not params and rule.partition("(")[0].strip() in ANY_METHOD:
        get_rule(rule)
        return
    truth = draw_truth(N_ITEMS, list(labels)) if labels else _sentences(types, encoding)
    crowd = simulate_crowd(truth, ["flip(0.1) x3"]).with_gold(None)
    result = get_aggregator(method, **params).fit(crowd).result_
    get_rule(rule).finished(result.crowd, result)


def model_faults(plan: Plan, pool: Pool, test: tuple[Pool, Labels] | None) -> Iterator[str]:
    """Train a plan's model on items of its pool with made-up labels, and ask it as it will be."""
    if _is_known_to_suit(plan):
        return
    items = _some(plan, pool)
    labels = _made_up(plan, pool, items)
    with warnings.catch_warnings():  # they would be about made-up labels
        warnings.simplefilter("ignore")
        for model in _models(plan, pool):
            yield from _faults(plan, pool, test, model, items, labels)


def _is_known_to_suit(plan: Plan) -> bool:
    """Whether the model is a tagger as it is by default, which any rule of goldspan can ask."""
    # Rules of a committee need several models, and rules of other packages are not known
    chosen, names = plan.model, {rule.name for rule in rules_of(plan.select.by)}
    if plan.is_single or chosen.params or not names <= {*SELECTORS} - COMMITTEES:
        return False
    return chosen.name in {"auto", "none", *TAGGERS}


def rules_of(by: str) -> list[Selector]:
    """Return the rules that a text names, those of the stages and shares of a schedule.

    >>> [rule.name for rule in rules_of("coverage, then mnlp, 10% random")]
    ['coverage', 'mnlp', 'random']
    """
    rule = read_selector(by)
    if not isinstance(rule, Schedule):
        return [rule]
    stages, shares = rule.plan()
    return [one for one, _ in stages] + [one for _, one in shares]


def _models(plan: Plan, pool: Pool) -> tuple[Model, ...]:
    chosen, single = plan.model, plan.is_single
    made = make_model(chosen.name, chosen.params, pool, plan.seed, lambda *_: 0.0, single=single)
    return made.models if isinstance(made, Best) else (made,)


def _faults(
    plan: Plan, pool: Pool, test: tuple[Pool, Labels] | None, model: Model,
    items: NDArray[np.int64], labels: Labels,
) -> Iterator[str]:  # fmt: skip
    try:
        trained = model.train(items, labels)
        if trained is None:
            return
        trained.predict(pool, items)
    except InputError as error:
        yield f"model: {error}"
        return
    yield from _unanswered(plan, trained, pool.part(items))
    if test is not None:
        try:
            trained.predict(test[0], np.arange(test[0].n_items))
        except InputError as error:
            yield f"evaluate.file: {error}"


def _unanswered(plan: Plan, trained: Trained, pool: Pool) -> Iterator[str]:
    """Ask the model what the rules of selection ask it."""
    for rule in rules_of(plan.select.by):
        if rule.needs_model:
            try:
                rule.select(pool, model=trained.model, errors={}, n=1)
            except InputError as error:
                yield f"select.by: {rule.name} cannot ask the model {trained.name}: {error}"


def _some(plan: Plan, pool: Pool) -> NDArray[np.int64]:
    """Return items of the pool, int64; among those of a table the one with its smallest number."""
    ranks = order_of(pool.keys, plan.seed, "trial")
    found = ranks[: N_ROWS if plan.is_single else N_ITEMS].tolist()
    numbers = [c for c in (pool.columns or {}).values() if isinstance(c, np.ndarray)]
    known = [column for column in numbers if np.isfinite(column).any()]
    if known:
        found.append(int(np.nanargmin(min(known, key=np.nanmin))))
    return np.unique(np.array(found, np.int64))


def _made_up(plan: Plan, pool: Pool, items: NDArray[np.int64]) -> Labels:
    task = plan.task
    if task.labels:
        return [[task.labels[n % len(task.labels)]] for n in range(len(items))]
    lengths = pool.n_tokens[items].tolist()
    spans = [[Span(task.types[n % len(task.types)], 0, 1)] for n in range(len(items))]
    pairs = zip(spans, lengths, strict=True)
    return [write(some, length, encoding=task.encoding) for some, length in pairs]


def _sentences(types: Sequence[str], encoding: str) -> Crowd:
    builder = CrowdBuilder(ReadOptions(encoding=encoding))
    for n in range(N_ITEMS):
        spans = [Span(types[n % len(types)], 1, 3)]
        tags = write(spans, 4, encoding=encoding)
        builder.add_item(f"s{n}", ["In", "the", "north", "."], gold=tags)
    return builder.build()
