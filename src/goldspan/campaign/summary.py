"""What a plan will do, in words, and what it costs at least and at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.judging import GAIN
from goldspan.campaign.plan import ORDINAL, Control, Layer, Plan
from goldspan.money import from_micro

KINDS = {
    "spans": "spans of the types ",
    "label": "one of the labels ",
    "labels": "any number of the labels ",
}
"""What is asked, by the kind of a layer."""


def cost_range(inputs: CampaignInputs) -> dict[str, Any]:
    """Return the numbers of a plan."""
    plan = inputs.plan
    own = [n for n, name in enumerate(inputs.ids) if name not in inputs.control]
    low, high = plan.redundancy.min, plan.redundancy.max
    if not plan.is_paid:
        facts = {"items": len(own), "control": len(inputs.control)}
        return {**facts, "fewest": low * len(own), "most": high * len(own)}
    cap, opening, n = plan.cap, _opening(inputs), len(own)
    least, most = _totals(inputs)
    share = 0.0 if plan.control is None else plan.control.share
    # Of all answers those that make labels, once a test is passed
    rest = max(0, cap - round(least / (1 - share if share < 1 else 1.0)))
    return {
        "items": n,
        "control": len(inputs.control),
        "cheapest": least,
        "dearest": most,
        "cap": cap,
        "pays_least": min(n, cap * n // most) if most else n,
        "pays_most": min(n, cap * n // least) if least else n,
        "opening": opening,
        "bears": rest // opening if opening else None,
        "bears_most": cap // opening if opening else None,
    }


def _totals(inputs: CampaignInputs) -> tuple[int, int]:
    """Return what all items cost with the fewest answers and with the most, in millionths."""
    low, high = inputs.plan.redundancy.min, inputs.plan.redundancy.max
    if not inputs.plan.workforce:
        once = sum(
            int(cost)
            for name, cost in zip(inputs.ids, inputs.costs, strict=True)
            if name not in inputs.control
        )
        return once * low, once * high
    from goldspan.campaign.workforce import dearest_first

    items = [item for item in inputs.items() if item.id not in inputs.control]
    prices = dearest_first(inputs, items)
    return int(prices[-low:].sum()), int(prices[:high].sum())


def _opening(inputs: CampaignInputs) -> int:
    """Return what a worker is paid, in millionths, before the first answer that makes a label."""
    control, plan = inputs.plan.control, inputs.plan
    if control is None:
        return 0
    questions = control.first + (plan.page.training if plan.crowd.is_served else 0)
    known = [n for n, name in enumerate(inputs.ids) if name in inputs.control]
    return round(questions * int(inputs.costs[known].sum()) / len(known))


def describe_plan(inputs: CampaignInputs) -> list[str]:
    """Return what a plan will do, a line each."""
    return [*_work(inputs), *_machines(inputs), *_costs(inputs), *_end(inputs)]


def plan_warnings(inputs: CampaignInputs) -> list[str]:
    """Return what in a plan has no effect; it is no fault, and running campaigns may have it."""
    from goldspan.selection.schedule import read_selector

    chosen = inputs.plan.select
    if chosen.errors and not read_selector(chosen.by).heeds_errors:
        told = (
            f"select.errors: {chosen.by!r} does not heed what the model gets wrong: every batch is "
            "the same without it; leave it out, or choose a rule that does, such as "
            '"coverage, then mnlp" or "coverage, then near-errors"'
        )
        return [told]
    return []


def _machines(inputs: CampaignInputs) -> Iterator[str]:
    """Return what annotators that answer at once would cost, before anything is sent."""
    if inputs.plan.workforce:
        from goldspan.campaign.workforce import described, expected

        currency = inputs.plan.prices.currency
        unit = f" {currency}" if currency else ""
        for one in expected(inputs):
            yield described(one, unit, from_micro)
        for entry in inputs.plan.workforce:
            module, _, name = str(entry.options.get("call", "")).partition(":")
            if name:
                yield f"code: worker {entry.id} runs {module}, which needs --allow-code {module}"
        if any(entry.kind == "llm" for entry in inputs.plan.workforce):
            yield f"send_text: texts are sent; replies are kept in {inputs.plan.crowd.replies}/"


def _work(inputs: CampaignInputs) -> Iterator[str]:
    plan = inputs.plan
    for layer in plan.task.layers or (plan.task,):
        names = ", ".join(layer.types or layer.labels)
        if isinstance(layer, Layer):
            notes = [key for key in ("overlapping", "ordinal") if getattr(layer, key)]
            notes += [] if layer.required or layer.kind == "spans" else ["optional"]
            yield f"task: {layer.name}, {KINDS[layer.kind]}{', '.join([names, *notes])}"
        elif layer.labels:
            yield f"task: {KINDS['label']}{names}"
        else:
            yield f"task: {KINDS['spans']}{names}, written as {layer.encoding}"
    n = len(inputs.ids)
    yield f"pool: {n} items of {plan.pool.file}"
    yield f"crowd: {_crowd(plan)}"
    if plan.crowd.is_served:
        yield from _page(plan)
    first, batch = plan.select.first or plan.select.batch, plan.select.batch
    low, high = plan.redundancy.min, plan.redundancy.max
    if plan.redundancy.by == GAIN:
        has_value = plan.value.mistake_micro > 0
        later = (
            "later what saves most beyond its price"
            if has_value
            else (f"later {batch} answers by gain per price")
        )
        yield f"rounds: {first} items by {plan.select.by!r}, {later}"
        yield f"answers: {low} per item of the first round; at most {high} per item"
    else:
        rest = "" if first == batch else f", later {batch}"
        yield f"rounds: {first} items{rest}, by {plan.select.by!r}"
        more = f", one more at a time up to {high} until {plan.redundancy.stop}"
        yield f"answers: {low} per item{more if low < high else ''}"
    if plan.control is not None:
        share = f"{100 * plan.control.share:g} % of every worker's answers"
        yield f"control: {plan.control.n} known items, {share}{_test(plan.control)}"
    params = "".join(f", {key}={value!r}" for key, value in plan.aggregate.params.items())
    scales = [one.name for one in plan.task.layers if plan.method_for(one)[0] != plan.method]
    own = f", {', '.join(scales)} by {ORDINAL}" if scales else ""
    yield f"labels: by {plan.method}{params}{own}{_kin(plan.aggregate.families)}"
    how = {
        "cv": f"cross-validation in {plan.evaluate.folds} parts",
        "test": f"the test file {plan.evaluate.file}",
        "slice": "the items that are drawn at random",
    }
    measured = "" if plan.model.name == "none" else f", measured by {how[plan.evaluate.by]}"
    yield f"model: {plan.model.name}{measured}"


def _crowd(plan: Plan) -> str:
    crowd = plan.crowd
    if plan.workforce:
        words = ("", ", a probe")
        return ", ".join(f"{one.id} ({one.kind}{words[one.probe]})" for one in plan.workforce)
    return {
        "simulated": f"simulated: {', '.join(crowd.workers)}",
        "replay": f"the recorded answers of {crowd.answers} again",
        "files": f"tasks go out to {crowd.out}/, answers come back in {crowd.back}/",
        "web": "people in a browser: `goldspan serve`",
    }[crowd.source]


def _page(plan: Plan) -> Iterator[str]:
    """Return what applies to people in a browser."""
    page, provider = plan.page, plan.provider
    yield f"title: {page.title or plan.name}"
    name = "link" if provider is None else provider.name
    named = ", ".join(plan.crowd.names)
    links = f"personal links for {named}" if named else "personal links: `goldspan invite`"
    yield f"provider: {links if name == 'link' else name}"
    if page.training:
        yield f"practice: {page.training} gold questions, with the right answer shown"
    if page.suggest is not None:
        share = f"for {100 * page.shown_share:g} % of everybody's texts; the rest is blind"
        yield f"suggestions: the labels of {page.suggest}, {share}"


def _test(control: Control) -> str:
    if not control.first:
        return ""
    least = f", in which {100 * control.least:g} % must be right" if control.least else ""
    return f", the first {control.first} as a test{least}"


def _costs(inputs: CampaignInputs) -> Iterator[str]:
    found, plan = cost_range(inputs), inputs.plan
    if not plan.is_paid:
        few, most = found["fewest"], found["most"]
        yield f"work: {few if few == most else f'{few} to {most}'} answers in all, unpaid"
        return
    unit = f" {plan.prices.currency}" if plan.prices.currency else ""
    cheap, dear = from_micro(found["cheapest"]), from_micro(found["dearest"])
    yield (
        f"cost: all {found['items']} items take {cheap}{unit} with {plan.redundancy.min} answers "
        f"each (the minimum) and {dear}{unit} with {plan.redundancy.max} (the maximum)"
    )
    cap, least, most = from_micro(found["cap"]), found["pays_least"], found["pays_most"]
    if least == found["items"]:
        yield f"budget: {cap}{unit}, which pays for everything in any case"
    else:
        yield f"budget: {cap}{unit}, which pays for about {least} to {most} items"
    if plan.value.mistake_micro:
        hour, mistake = from_micro(plan.prices.hour_micro), from_micro(plan.value.mistake_micro)
        yield f"value: a wrong label costs {mistake}{unit}, an hour until the end {hour}{unit}"
    if found["opening"]:
        yield f"workers: {_entry(found, plan, unit)}"


def _entry(found: dict[str, Any], plan: Plan, unit: str) -> str:
    """Return what workers cost before they label anything new."""
    practises = plan.crowd.is_served and plan.page.training > 0
    has_test = plan.control is not None and plan.control.first > 0
    parts = ["practice"] * practises + ["test"] * has_test
    each = f"every worker's {' and '.join(parts)} costs {from_micro(found['opening'])}{unit}"
    most = f"{found['bears_most']} workers would leave nothing for labels"
    bears = found["bears"] or "none"
    return f"{each}: the budget bears {bears} beside the minimum, and {most}"


def _end(inputs: CampaignInputs) -> Iterator[str]:
    stop, hours = inputs.plan.stop, inputs.plan.budget.hours
    hard = ["the money is spent"] if inputs.plan.is_paid else []
    is_by_gain = inputs.plan.redundancy.by == GAIN
    if inputs.plan.value.mistake_micro:
        hard += ["no answer saves more than it costs"]
    else:
        hard += ["no answer promises anything" if is_by_gain else "the pool is labelled"]
    hard += [] if hours is None else [f"{hours:g} hours are over"]
    hard += [rule.planned for rule in stop.rules if rule.is_hard]
    yield f"ends when {' or '.join(hard)}"
    soft = [rule.planned for rule in stop.rules if not rule.is_hard]
    if soft:
        yield f"or when, {stop.rounds} rounds in a row, {' or '.join(soft)}"


def _kin(families: str | Mapping[str, str] | None) -> str:
    """Say who counts as fewer."""
    if isinstance(families, Mapping):
        n = len(set(families.values()))
        return f", {len(families)} workers in {n} famil{'y' if n == 1 else 'ies'}"
    return {"auto": ", families found by the answers"}.get(families or "", "")
