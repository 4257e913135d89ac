"""What the keys of a plan say against each other, and names that nothing has.

A check that asks for a section which is faulty itself ends there; see `Sections`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from goldspan.errors import InputError
from goldspan.money import from_micro, to_micro

Check = Callable[[Any], Iterator[str]]


class Sections:
    """The sections of a plan without those that are faulty themselves.

    Args:
        whole: Those that are whole, by name; None for an optional one that the plan leaves out.
    """

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole

    def __getattr__(self, name: str) -> Any:
        """Return a section.

        Raises:
            FaultySectionError: It is faulty, which is told already.
        """
        if name not in self._whole:
            raise FaultySectionError(name)
        return self._whole[name]


class FaultySectionError(Exception):
    """A check asked for a section that is faulty itself; never leaves this package."""


def contradictions(plan: Any) -> Iterator[str]:
    """List what contradicts itself; every message begins with a key.

    Args:
        plan: A plan, or its `Sections` where some are faulty.
    """
    for check in _CHECKS:
        try:
            yield from check(plan)
        except FaultySectionError:
            continue


def _task(plan: Any) -> Iterator[str]:
    task = plan.task
    if bool(task.types) == bool(task.labels):
        yield "task: give either types (of spans) or labels (one per item)"
        return
    names = task.types or task.labels
    if len(set(names)) < len(names):
        yield f"task: a name stands twice in {', '.join(names)}"
    if task.labels and len(task.labels) < 2:
        yield "task.labels: there must be at least two to choose from"
    if task.labels and task.tokens:
        yield "task.tokens: belongs to types of spans: a single label is given to a whole text"
    from goldspan.spans import Codec

    try:
        codec = Codec.from_types(names, "PLAIN" if task.labels else task.encoding)
    except InputError as error:
        yield f"task: {error}"
        return
    if task.types and codec.rules.is_plain:
        yield "task.encoding: PLAIN tags have no spans: give labels in place of types, or BIO"


def _crowd(plan: Any) -> Iterator[str]:
    crowd = plan.crowd
    if crowd.source == "replay":
        return
    if crowd.source in {"files", "web"}:
        if crowd.workers or crowd.truth:
            yield "crowd: workers and truth belong to the source simulated"
        if crowd.out == crowd.back:
            yield "crowd.back: tasks and answers need two folders"
        return
    if not crowd.workers:
        yield 'crowd.workers: is missing: name some, for example ["flip(0.1) x5"]'
    if crowd.truth is None:
        yield "crowd.truth: is missing: simulated workers answer with the truth in mind"
    if crowd.workers:
        from goldspan.simulate import read_team

        try:
            read_team(list(crowd.workers))
        except InputError as error:
            yield f"crowd.workers: {error}"


def _annotators(plan: Any) -> Iterator[str]:
    names = plan.crowd.annotators
    if names and plan.crowd.source != "web":
        yield 'crowd.annotators: belongs to source = "web"'
    if len(set(names)) < len(names):
        yield f"crowd.annotators: a name appears twice in {', '.join(names)}"
    for name in names:
        if not name.strip() or len(name) > 200 or not name.isprintable():
            yield f"crowd.annotators: a name has 1 to 200 printable characters, not {name!r}"


def _record(plan: Any) -> Iterator[str]:
    crowd = plan.crowd
    if (crowd.source == "replay") != (crowd.answers is not None):
        yield 'crowd.answers: belongs to source = "replay", which needs one'
    if crowd.source == "replay" and crowd.workers:
        yield "crowd.workers: a recorded crowd has its own"


def _redundancy(plan: Any) -> Iterator[str]:
    from goldspan.hiring.stopping import get_rule

    limits = plan.redundancy
    if limits.min > limits.max:
        yield f"redundancy: min is {limits.min}, more than max, {limits.max}"
    try:
        get_rule(limits.stop)
    except InputError as error:
        yield f"redundancy.stop: {error}"


def _enough_workers(plan: Any) -> Iterator[str]:
    from goldspan.simulate import read_team

    if plan.crowd.annotators and plan.crowd.source == "web":
        n = len(plan.crowd.annotators)
        if n < plan.redundancy.max:
            yield (
                f"redundancy: an item may take {plan.redundancy.max} answers, each of another "
                f"annotator, and crowd.annotators names {n}: set overlap = {n} or less, or name "
                "more annotators"
            )
    if plan.crowd.source == "simulated":
        try:
            n = len(read_team(list(plan.crowd.workers)))
        except InputError:
            return
        for key in ("min", "max"):
            asked = getattr(plan.redundancy, key)
            if n < asked:
                yield f"redundancy.{key}: is {asked}, and there are {n} workers"


def _page(plan: Any) -> Iterator[str]:
    control, training = plan.control, plan.page.training
    if control is not None and control.first > control.n:
        return  # told already
    most = 0 if control is None else control.n - control.first
    if training > most:
        yield (
            f"page.training: {training} control questions to practise on, and control has {most} "
            "besides those of the test"
        )


def _unasked(plan: Any) -> Iterator[str]:
    if plan.control is None:
        return
    if not (plan.control.share or plan.control.first or plan.page.training):
        yield (
            "control.share: is 0 and there is no test, so no control question would be asked: "
            "give a share above 0, or set control.first"
        )


def _provider(plan: Any) -> Iterator[str]:
    if plan.provider is not None and plan.crowd.source != "web":
        yield 'provider: belongs to source = "web"'
    if plan.provider is not None and plan.provider.name != "link" and plan.crowd.annotators:
        yield f"crowd.annotators: the annotators come from {plan.provider.name}, not by name"


def _control(plan: Any) -> Iterator[str]:
    control = plan.control
    if control is None:
        return
    if plan.crowd.source == "replay":
        yield "control: a recorded crowd can be asked nothing but what it was asked then"
    if control.gold is None:
        yield "control.gold: is missing: control questions need known labels"
    if control.first > control.n:
        yield f"control.first: is {control.first}, more than control.n, {control.n}"
    if control.least > 0 and not control.first:
        yield "control.least: there is no test to pass: set control.first"


def _money(plan: Any) -> Iterator[str]:
    each = _least_price(plan)
    if plan.budget.money is None:
        if each:
            yield (
                "budget.money: is missing: answers cost something, so say what may be spent at "
                "most; if nobody is paid, leave out prices"
            )
        return
    money = to_micro(plan.budget.money)
    if not each:
        yield (
            "prices: an answer must cost something where there is a budget.money: set per_answer, "
            "per_token or both; if nobody is paid, leave out prices and budget.money"
        )
    elif money < each * plan.redundancy.min:
        yield (
            f"budget.money: {from_micro(money)} do not pay for one item, whose "
            f"{plan.redundancy.min} answers cost at least {from_micro(each * plan.redundancy.min)}"
        )


def _least_price(plan: Any) -> int:
    """Return what an answer to a single token costs, in millionths."""
    return to_micro(plan.prices.per_answer) + to_micro(plan.prices.per_token)


def _gain(plan: Any) -> Iterator[str]:
    unpaid = plan.budget.money is None and not _least_price(plan)
    if plan.stop.least_gain is not None and unpaid:
        yield (
            "stop.least_gain: is a gain per unit of money, and nobody is paid: leave it out, or "
            "give prices and budget.money"
        )


def _select(plan: Any) -> Iterator[str]:
    from goldspan.campaign.trial import rules_of

    try:
        rules = rules_of(plan.select.by)
    except InputError as error:
        yield f"select.by: {error}"
        return
    needing = [one.name for one in rules if one.needs_model]
    if plan.model.name == "none" and needing:
        yield f"select.by: {needing[0]} needs a model, and model.name is none"
    if plan.evaluate.by == "slice" and "random" not in {one.name for one in rules}:
        yield 'evaluate.by: "slice" needs items drawn at random: add "10% random" to select.by'


def _aggregate(plan: Any) -> Iterator[str]:
    from goldspan.aggregate import get_aggregator

    method = plan.aggregate.method or ("ds" if plan.task.labels else "bsc-seq")
    try:
        get_aggregator(method, **plan.aggregate.params)
    except (InputError, TypeError) as error:
        yield f"aggregate: {error}"


def _method_and_rule(plan: Any) -> Iterator[str]:
    """Try the method and the rule where each of them alone is no fault."""
    from goldspan.campaign.trial import try_method

    task, chosen = plan.task, plan.aggregate
    if list(_task(plan)) or list(_aggregate(plan)) or list(_redundancy(plan)):
        return
    method = chosen.method or ("ds" if task.labels else "bsc-seq")
    try:
        try_method(
            task.labels, task.types, task.encoding, method, chosen.params, plan.redundancy.stop
        )
    except InputError as error:
        yield f"aggregate and redundancy.stop: {error}"


def _model(plan: Any) -> Iterator[str]:
    from goldspan.campaign.models import check_model

    try:
        check_model(plan.model.name, plan.model.params, single=bool(plan.task.labels))
    except InputError as error:
        yield f"model: {error}"


def _evaluate(plan: Any) -> Iterator[str]:
    if (plan.evaluate.by == "test") != (plan.evaluate.file is not None):
        yield 'evaluate.file: belongs to by = "test", which needs one'
    if plan.model.name == "none":
        for name in ("target", "least_gain", "stable"):
            if getattr(plan.stop, name) is not None:
                yield f"stop.{name}: there is no model to measure: model.name is none"


_CHECKS: tuple[Check, ...] = (
    _task,
    _crowd,
    _annotators,
    _record,
    _redundancy,
    _enough_workers,
    _page,
    _unasked,
    _provider,
    _control,
    _money,
    _gain,
    _select,
    _aggregate,
    _method_and_rule,
    _model,
    _evaluate,
)
