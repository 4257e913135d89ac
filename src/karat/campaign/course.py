"""What a plan will do, in words, and what its cheapest and dearest courses cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karat.campaign.setting import Setting
from karat.money import from_micro, to_micro


def course(setting: Setting) -> dict[str, Any]:
    """Give the numbers of a plan.

    Returns:
        `items` to label; `cheapest` and `dearest`, millionths for all of them with the fewest and
        the most answers; `cap`; `pays_least` and `pays_most`, the items that the cap pays for.
    """
    plan = setting.plan
    own = [n for n, name in enumerate(setting.ids) if name not in setting.control]
    once = int(setting.costs[own].sum())
    cap, each = to_micro(plan.budget.money), once / len(own)
    low, high = plan.redundancy.min, plan.redundancy.max
    return {
        "items": len(own),
        "control": len(setting.control),
        "cheapest": once * low,
        "dearest": once * high,
        "cap": cap,
        "pays_least": min(len(own), int(cap / (each * high))),
        "pays_most": min(len(own), int(cap / (each * low))),
    }


def describe_plan(setting: Setting) -> list[str]:
    """Say what a plan will do, a line each."""
    return [*_work(setting), *_costs(setting), *_end(setting)]


def _work(setting: Setting) -> Iterator[str]:
    plan = setting.plan
    what = "one of the labels " if plan.is_single else "spans of the types "
    names = ", ".join(plan.task.labels or plan.task.types)
    yield f"task: {what}{names}" + ("" if plan.is_single else f", written as {plan.task.encoding}")
    n = len(setting.ids)
    yield f"pool: {n} items of {plan.pool.file}"
    if plan.crowd.source == "simulated":
        yield f"crowd: simulated: {', '.join(plan.crowd.workers)}"
    elif plan.crowd.source == "replay":
        yield f"crowd: the recorded answers of {plan.crowd.answers} again"
    else:
        yield f"crowd: tasks go out to {plan.crowd.out}/, answers come back in {plan.crowd.back}/"
    first = plan.select.first or plan.select.batch
    rest = "" if first == plan.select.batch else f", later {plan.select.batch}"
    yield f"rounds: {first} items{rest}, by {plan.select.by!r}"
    low, high = plan.redundancy.min, plan.redundancy.max
    yield f"answers: {low} per item, one more at a time up to {high} until {plan.redundancy.stop}"
    if plan.control is not None:
        test = f", the first {plan.control.first} as a test" if plan.control.first else ""
        share = f"{100 * plan.control.share:g} % of every worker's answers"
        yield f"control: {plan.control.n} known items, {share}{test}"
    params = "".join(f", {key}={value!r}" for key, value in plan.aggregate.params.items())
    yield f"labels: by {plan.method}{params}"
    how = {
        "cv": f"cross-validation in {plan.evaluate.folds} parts",
        "test": f"the test file {plan.evaluate.file}",
        "slice": "the items that are drawn at random",
    }
    measured = "" if plan.model.name == "none" else f", measured by {how[plan.evaluate.by]}"
    yield f"model: {plan.model.name}{measured}"


def _costs(setting: Setting) -> Iterator[str]:
    found, plan = course(setting), setting.plan
    unit = f" {plan.prices.currency}" if plan.prices.currency else ""
    cheap, dear = from_micro(found["cheapest"]), from_micro(found["dearest"])
    yield (
        f"cost: all {found['items']} items take {cheap}{unit} with {plan.redundancy.min} answers "
        f"each (the cheapest course) and {dear}{unit} with {plan.redundancy.max} (the dearest)"
    )
    cap, least, most = from_micro(found["cap"]), found["pays_least"], found["pays_most"]
    if least == found["items"]:
        yield f"budget: {cap}{unit}, which pays for everything in any course"
    else:
        yield f"budget: {cap}{unit}, which pays for about {least} to {most} items"


def _end(setting: Setting) -> Iterator[str]:
    stop, hours = setting.plan.stop, setting.plan.budget.hours
    hard = ["the money is spent", "the pool is labelled"]
    hard += [] if hours is None else [f"{hours:g} hours are over"]
    hard += [] if stop.most_rounds is None else [f"{stop.most_rounds} rounds are done"]
    yield f"ends when {' or '.join(hard)}"
    soft = []
    if stop.target is not None:
        soft.append(f"the lower bound of the score is {stop.target:g}")
    if stop.least_gain is not None:
        soft.append(f"a unit of money is forecast to bring less than {stop.least_gain:g}")
    if stop.stable is not None:
        soft.append(f"predictions of two rounds agree with a kappa of {stop.stable:g}")
    if soft:
        yield f"or when, {stop.rounds} rounds in a row, {' or '.join(soft)}"
