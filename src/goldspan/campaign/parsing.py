"""Plans read from TOML: every key by itself, and what the keys say together."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from goldspan.campaign.plan import CONSENSUS, NAMES, PEOPLE, Plan, entry_of
from goldspan.campaign.section import Section, oidc_faults, webhook_faults
from goldspan.errors import Fault, FaultsError, InputError
from goldspan.money import from_micro
from goldspan.protocols import RUNNER

# --------------------------------------------------------------------------------------------------
# What the keys of a plan say against each other, and names that nothing has.


Check = Callable[[Any], Iterator[str]]


class Sections:
    """The sections of a plan without those that are faulty themselves."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole = whole

    def __getattr__(self, name: str) -> Any:
        """Return a section."""
        if name not in self._whole:
            raise FaultySectionError(name)
        return self._whole[name]


class FaultySectionError(Exception):
    """A check asked for a section that is faulty itself; never leaves this package."""


def contradictions(plan: Any) -> Iterator[str]:
    """List what contradicts itself; every message begins with a key."""
    for check in _CHECKS:
        try:
            yield from check(plan)
        except FaultySectionError:
            continue


def _task(plan: Any) -> Iterator[str]:
    task = plan.task
    if task.layers:
        yield from _layers(plan)
        return
    if bool(task.types) == bool(task.labels):
        yield (
            "task: give either types (of spans) or labels (one per item), or several questions "
            "[[task.layers]]"
        )
        return
    names = task.types or task.labels
    if len(set(names)) < len(names):
        yield f"task: a name appears twice in {', '.join(names)}"
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


def _layer(layer: Any) -> Iterator[str]:
    """Check one of several questions."""
    kind, choices = layer.kind, (layer.types, layer.labels)
    own, other = choices if kind == "spans" else choices[::-1]
    if not own or other:
        key = "types" if kind == "spans" else "labels"
        yield f'a layer of kind "{kind}" has {key}, and nothing else to choose from'
    if len(set(own)) < len(own):
        yield f"a name appears twice in {', '.join(own)}"
    if any(one != one.strip() for one in own):
        yield f"a name begins or ends with a blank in {', '.join(map(repr, own))}"
    if kind == "label" and len(own) == 1:
        yield "there must be at least two labels to choose from"
    if layer.overlapping and kind != "spans":
        yield "overlapping belongs to spans"
    if layer.ordinal and kind != "label":
        yield 'ordinal belongs to kind = "label", of which one is chosen'
    try:
        _ = layer.question.codec
    except InputError as error:
        yield str(error)


def _layers(plan: Any) -> Iterator[str]:
    """Check the questions of a task that has several."""
    task = plan.task
    if task.types or task.labels or task.encoding != "BIO":
        yield "task: types, labels and encoding belong into [[task.layers]] where there are some"
    names = [one.name for one in task.layers]
    if len(set(names)) < len(names):
        yield f"task.layers: a name appears twice in {', '.join(names)}"
    for one in task.layers:
        yield from (f"task.layers: {one.name}: {fault}" for fault in _layer(one))
        if one.kind == "labels" and one.required and plan.crowd.source == "simulated":
            yield f"task.layers: {one.name}: simulated workers may choose none: required = false"
    if sum(one.kind == "spans" for one in task.layers) > 1:
        yield (
            "task.layers: there is one layer of spans at most: put all types into it, with "
            "overlapping = true where they may overlap"
        )
    if task.tokens and plan.is_single:
        yield "task.tokens: belongs to spans"
    yield from _of_one_question(plan)


def _of_one_question(plan: Any) -> Iterator[str]:
    """Check what a task of several layers cannot have."""
    if not any(one.weight for one in plan.task.layers):
        yield "task.layers: weight is 0 everywhere: nothing would ever be asked again"
    if plan.crowd.source == "replay":
        yield "task.layers: a recorded crowd answers one question: give types or labels"
    if plan.stop.certified is not None:
        yield "stop.certified: an audit is of one question: give types or labels"
    if plan.evaluate.by == "test":
        yield 'evaluate.by: "test" is for one question: take "cv"'


def _crowd(plan: Any) -> Iterator[str]:
    crowd = plan.crowd
    if crowd.source == "mixed":
        yield from _workforce(plan)
    elif crowd.tables:
        yield 'crowd.source: entries [[crowd.workers]] belong to source = "mixed": leave it out'
    elif crowd.source in {"files", "web"}:
        if crowd.workers or crowd.truth:
            yield "crowd: workers and truth belong to the source simulated"
        if crowd.out == crowd.back:
            yield "crowd.back: tasks and answers need two folders"
    elif crowd.source == "simulated":
        yield from _simulated(crowd)


def _simulated(crowd: Any) -> Iterator[str]:
    """Check simulated workers in text."""
    if not crowd.workers:
        yield 'crowd.workers: is missing: name some, for example ["flip(0.1) x5"]'
    if crowd.truth is None:
        yield "crowd.truth: is missing: simulated workers answer with the truth in mind"
    if crowd.workers:
        from goldspan.simulation import read_team

        try:
            read_team(list(crowd.workers))
        except InputError as error:
            yield f"crowd.workers: {error}"


def _workforce(plan: Any) -> Iterator[str]:
    """Check the entries of a mixed workforce."""
    from goldspan.annotators.base import check_layers

    crowd, ids = plan.crowd, set(plan.crowd.names)
    if not crowd.tables:
        yield 'crowd.workers: is missing: source = "mixed" needs entries [[crowd.workers]]'
    for table in crowd.tables:
        try:
            entry = entry_of(table, crowd, plan.prices)
            if plan.task.layers:
                check_layers(entry)
        except InputError as error:
            yield f"crowd.workers: {error}"
            continue
        if entry.id in ids:
            yield f"crowd.workers: the id {entry.id!r} appears twice"
        ids.add(entry.id)
        if entry.kind == "files":
            yield f'crowd.workers: {entry.id}: workers behind files are asked by source = "files"'
        if entry.kind == "llm" and not crowd.send_text:
            yield (
                f"crowd.send_text: worker {entry.id} would send the texts of the items to "
                f"{entry.options['base_url']}: say that they may be sent, with send_text = true"
            )
        if entry.kind == PEOPLE:
            yield from _people(entry.id, entry.options)


def _people(name: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Check an entry of people in a browser."""
    for key in options:
        if key != NAMES:
            yield f"crowd.workers: {name}: unknown key {key!r} of kind {PEOPLE!r}: choose {NAMES}"
    names = options.get(NAMES, ["a"])
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        yield f"crowd.workers: {name}: {NAMES} must be a list of names, not {names!r:.80}"


def _annotators(plan: Any) -> Iterator[str]:
    names = plan.crowd.names
    if names and not plan.crowd.is_served:
        yield 'crowd.annotators: belongs to source = "web"'
    if len(set(names)) < len(names):
        yield f"crowd.annotators: a name appears twice in {', '.join(names)}"
    for name in names:
        if not name.strip() or len(name) > 200 or not name.isprintable():
            yield f"crowd.annotators: a name has 1 to 200 printable characters, not {name!r}"


def _record(plan: Any) -> Iterator[str]:
    crowd = plan.crowd
    if crowd.send_text and not crowd.tables:
        yield "crowd.send_text: belongs to entries [[crowd.workers]]"
    if crowd.source != "mixed" and (crowd.source == "replay") != (crowd.answers is not None):
        yield 'crowd.answers: belongs to source = "replay", which needs one'
    if crowd.source == "replay" and crowd.workers:
        yield "crowd.workers: a recorded crowd has its own"


def _redundancy(plan: Any) -> Iterator[str]:
    from goldspan.workers.stopping import get_rule

    limits = plan.redundancy
    if limits.min > limits.max:
        yield f"redundancy: min is {limits.min}, more than max, {limits.max}"
    if limits.by == "gain" and "stop" in limits.model_fields_set:
        yield (
            'redundancy.stop: is the rule of by = "rule"; with by = "gain" what an answer promises '
            "decides: leave stop out"
        )
    if limits.by == "gain" and plan.select.errors:
        yield 'select.errors: with redundancy.by = "gain" the rules pick the first round alone'
    try:
        get_rule(limits.stop)
    except InputError as error:
        yield f"redundancy.stop: {error}"


def _enough_workers(plan: Any) -> Iterator[str]:
    from goldspan.simulation import read_team

    if plan.crowd.source == "mixed":
        n = _n_workers(plan)
        if n is not None and n < plan.redundancy.max:
            yield (
                f"redundancy: an item may take {plan.redundancy.max} answers, each of another "
                f"worker, and there are {n}: set overlap = {n} or less, or name more workers"
            )
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


def _n_workers(plan: Any) -> int | None:
    """Count the workers of a mixed workforce; None where anybody may come in."""
    people = [one for one in plan.crowd.tables if one.get("kind") == PEOPLE]
    if any(NAMES not in one for one in people) and not plan.crowd.annotators:
        return None
    probes = [one for one in plan.crowd.tables if one.get("probe") is True]
    return len(plan.crowd.tables) - len(people) - len(probes) + len(plan.crowd.names)


def _page(plan: Any) -> Iterator[str]:
    control, training = plan.control, plan.page.training
    if control is not None and control.first > control.n:
        return  # told already
    most = 0 if control is None else control.n - control.first
    if training > most:
        yield (
            f"page.training: {training} gold questions to practise on, and control has {most} "
            "besides those of the test"
        )


def _suggest(plan: Any) -> Iterator[str]:
    """Check whose labels are suggested, and that the method can weigh the answers after them."""
    by, path = plan.page.suggest, "page.suggest"
    if by is None:
        if plan.page.suggest_share is not None:
            yield "page.suggest_share: belongs to page.suggest"
        return
    if not plan.crowd.is_served:
        yield f"{path}: belongs to people in a browser"
    there = [
        str(one.get("id", one.get("kind")))
        for one in plan.crowd.tables
        if one.get("kind") != PEOPLE
    ]
    if by != CONSENSUS and by not in there:
        known = ", ".join(map(repr, there)) or "none"
        yield (
            f'{path}: is "{CONSENSUS}" or the id of an entry of crowd.workers that answers at once '
            f"({known}), not {by!r}"
        )
    from goldspan.aggregation import get_aggregator

    if "families" not in get_aggregator(plan.method).parameter_names():
        yield (
            f"{path}: {plan.method} knows no families, so that answers after a suggestion would "
            "count in full: choose another aggregate.method"
        )


def _provider(plan: Any) -> Iterator[str]:
    if plan.provider is not None and not plan.crowd.is_served:
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
        yield "control.gold: is missing: gold questions need known labels"
    if control.first > control.n:
        yield f"control.first: is {control.first}, more than control.n, {control.n}"
    if control.least > 0 and not control.first:
        yield "control.least: there is no test to pass: set control.first"
    if not (control.share or control.first or plan.page.training):
        yield (
            "control.share: is 0 and there is no test, so no gold question would be asked: "
            "give a share above 0, or set control.first"
        )


def _money(plan: Any) -> Iterator[str]:
    each = int(plan.prices.answer_micro + plan.prices.token_micro)
    if not each and _has_prices(plan):  # of workers; what they cost, only the items tell
        if plan.budget.micro is None:
            yield "budget.money: is missing: workers cost something, so say what may be spent"
        return
    money = plan.budget.micro
    if money is None:
        if each or plan.prices.check_micro:
            what = "answers" if each else "checks"
            yield (
                f"budget.money: is missing: {what} cost something, so say what may be spent at "
                "most; if nobody is paid, leave out prices"
            )
        return
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


def _value(plan: Any) -> Iterator[str]:
    if not plan.value.mistake_micro:
        if plan.prices.hour_micro:
            yield "prices.hour: belongs to value.mistake: say what a wrong label costs, too"
        return
    if plan.redundancy.by != "gain":
        yield 'value.mistake: decides what rounds buy: set redundancy.by = "gain"'
    if plan.budget.money is None:
        yield "value.mistake: is an amount of money: say what may be spent at most, budget.money"
    if "batch" in plan.select.model_fields_set:
        yield "select.batch: with value.mistake a round buys what is worth it: leave batch out"


def _has_prices(plan: Any) -> bool:
    """Whether workers of a mixed workforce have prices of their own."""
    tables = [one.get("prices") for one in plan.crowd.tables]
    return any(any(one.values()) for one in tables if isinstance(one, Mapping))


def _per_money(plan: Any) -> Iterator[str]:
    if plan.budget.money is not None or int(plan.prices.answer_micro + plan.prices.token_micro):
        return
    for rule in plan.stop.rules:
        if rule.per_money:
            yield (
                f"stop.{rule.key}: {rule.per_money}, and nobody is paid: leave it out, or give "
                "prices and budget.money"
            )


def _select(plan: Any) -> Iterator[str]:
    from goldspan.campaign.model import rules_of

    try:
        rules = rules_of(plan.select.by)
    except InputError as error:
        yield f"select.by: {error}"
        return
    needing = [one.name for one in rules if one.needs_model]
    if plan.model.name == "none" and needing:
        yield f"select.by: {needing[0]} needs a model, and model.name is none"
    unknown = [one.name for one in rules if one.needs_errors and not plan.select.errors]
    if unknown:
        yield f"select.by: {unknown[0]} needs to know what the model gets wrong: errors = true"
    if plan.model.name == "none" and plan.select.errors:
        yield "select.errors: there is no model that could get something wrong: model.name is none"
    if plan.evaluate.by == "slice" and "random" not in {one.name for one in rules}:
        yield 'evaluate.by: "slice" needs items drawn at random: add "10% random" to select.by'


def _aggregate(plan: Any) -> Iterator[str]:
    from goldspan.aggregation import get_aggregator

    try:
        known = get_aggregator(plan.method, **plan.aggregate.params).parameter_names()
    except (InputError, TypeError) as error:
        yield f"aggregate: {error}"
        return
    yield from _families(plan, plan.method, known)


def _families(plan: Any, method: str, known: Collection[str]) -> Iterator[str]:
    """Check who is said to err together."""
    from goldspan.aggregation.families import check_families

    families = plan.aggregate.families
    if families is None:
        return
    if "families" not in known:
        yield f"aggregate.families: {method} knows no families"
    if "families" in plan.aggregate.params:
        yield "aggregate.families: params has them too: leave one out"
    try:
        check_families(families)
    except InputError as error:
        yield f"aggregate.families: {error}"
    if not isinstance(families, Mapping):
        if families not in {"auto", "none"}:
            yield f'aggregate.families: is "auto", "none", a table or a file, not {families!r}'
        return
    there = _named_workers(plan)
    unknown = [worker for worker in families if worker not in there]
    if there and unknown:
        yield f"aggregate.families: no worker {', '.join(map(repr, unknown[:8]))} in the crowd"


def _named_workers(plan: Any) -> list[str]:
    """Return the workers whom the plan names, none where anybody may come."""
    from goldspan.simulation import read_team

    if plan.crowd.source == "mixed":
        if _n_workers(plan) is None:
            return []
        tables = [one for one in plan.crowd.tables if one.get("probe") is not True]
        machines = [one for one in tables if one.get("kind") != PEOPLE]
        return [*plan.crowd.names, *(str(one.get("id", one.get("kind"))) for one in machines)]
    if plan.crowd.source != "simulated":
        return list(plan.crowd.annotators)
    try:
        return list(read_team(list(plan.crowd.workers)))
    except InputError:  # said elsewhere
        return []


def _runner(plan: Any) -> Iterator[str]:
    if plan.runner is None:
        return
    if re.fullmatch(RUNNER, plan.runner) is None:
        names = "threads, threads(2), ray or ray(ADDRESS)"
        yield f"runner: {plan.runner!r} is none of the runners: {names}"
    if plan.crowd.is_served:
        yield "runner: it is for `goldspan run`; a server computes beside its pages: leave it out"


def _method_and_rule(plan: Any) -> Iterator[str]:
    """Check that method and stopping rule fit each other, where neither is faulty by itself."""
    from goldspan.campaign.model import try_method

    task = plan.task
    if list(_task(plan)) or list(_aggregate(plan)) or list(_redundancy(plan)):
        return
    for one in task.layers or (None,):
        asked = one or task
        labels = ("no", "yes") if one is not None and one.kind == "labels" else asked.labels
        method, params = plan.method_for(one)
        params.pop("families", None)
        try:
            try_method(labels, asked.types, task.encoding, method, params, plan.redundancy.stop)
        except InputError as error:
            by = "by" if plan.redundancy.by == "gain" else "stop"
            yield f"aggregate and redundancy.{by}: {error}"


def _model(plan: Any) -> Iterator[str]:
    from goldspan.campaign.model import check_model

    try:
        check_model(plan.model.name, plan.model.params, single=plan.is_single)
    except InputError as error:
        yield f"model: {error}"


def _certified(plan: Any) -> Iterator[str]:
    goal = plan.stop.certified
    wrong = "accuracy" if plan.task.types else "f1"
    if goal is not None and getattr(goal, wrong) is not None:
        right, of = ("f1", "spans") if plan.task.types else ("accuracy", "single labels")
        yield f"stop.certified: {of} are judged by {right}, not {wrong}: {{ {right} = 0.9 }}"


def _evaluate(plan: Any) -> Iterator[str]:
    if (plan.evaluate.by == "test") != (plan.evaluate.file is not None):
        yield 'evaluate.file: belongs to by = "test", which needs one'
    if plan.model.name == "none":
        for rule in plan.stop.rules:
            if rule.needs_model:
                yield f"stop.{rule.key}: there is no model to measure: model.name is none"


_CHECKS: tuple[Check, ...] = (
    _task,
    _crowd,
    _annotators,
    _record,
    _redundancy,
    _enough_workers,
    _page,
    _suggest,
    _provider,
    _control,
    _money,
    _value,
    _per_money,
    _select,
    _aggregate,
    _runner,
    lambda plan: webhook_faults(plan.webhooks, served=plan.crowd.is_served),
    lambda plan: oidc_faults(plan.oidc, served=plan.crowd.is_served),
    _method_and_rule,
    _model,
    _evaluate,
    _certified,
)


# --------------------------------------------------------------------------------------------------
# From a TOML file to a plan: every fault is found before the first one is told.


_WORDS = {
    "missing": "is missing",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "model_type": "must be a table",
    "dict_type": "must be a table",
}
_LIMITS = {
    "ge": "at least {}",
    "gt": "above {}",
    "le": "at most {}",
    "lt": "below {}",
}


def read_plan(source: str | Path | Mapping[str, Any], *, overlap: int | None = None) -> Plan:
    """Read the plan of a campaign.

    Args:
        source: Path of a TOML file, or what such a file holds.
        overlap: Answers of every item, in place of what the plan says.

    Raises:
        InputError: The file cannot be read or is no TOML.
        FaultsError: The plan is faulty; all that is wrong is listed.

    >>> plan = read_plan({
    ...     "name": "moods", "task": {"labels": ["sad", "glad"]}, "pool": {"file": "songs.jsonl"},
    ...     "crowd": {"source": "files"}, "model": {"name": "naive-bayes"},
    ...     "prices": {"per_answer": "0.05"}, "budget": {"money": 20}})
    >>> plan.redundancy.max
    5
    """
    where, content = _content(source)
    content = _with_families(_with_source(content), Path(where).parent)
    if overlap is not None:
        kept = content.get("redundancy", {})
        if isinstance(kept, Mapping):  # else the section says so
            rest = {k: v for k, v in kept.items() if k not in {"min", "max"}}
            content = {**content, "redundancy": {**rest, "overlap": overlap}}
    try:
        plan = Plan.model_validate(content)
        messages = list(contradictions(plan))
    except ValidationError as error:
        faulty = {str(one["loc"][0]) for one in error.errors() if one["loc"]}
        messages = [*_messages(error), *contradictions(_rest(content, faulty))]
    if messages:
        raise FaultsError([Fault(message, where) for message in messages], "the plan is refused")
    return plan


def _with_families(content: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Put the families of a file and of the entries of workers into the plan itself."""
    aggregate = content.get("aggregate", {})
    if not isinstance(aggregate, Mapping):
        return content  # the section says so
    families = aggregate.get("families")
    if isinstance(families, str) and families not in {"", "auto", "none"}:
        from goldspan.aggregation.families import read_families

        families = read_families(folder / families)
    # The families that entries say, or whose models are the same, by worker
    # Somebody alone in a family is left out: it would say nothing
    found: dict[str, str] = {}
    for one in (entry for entry in _entries_of(content) if entry.get("probe") is not True):
        kind = one.get("kind")
        family = one.get("family") or (one.get("model") if kind in ("llm", "tagger") else None)
        names = one.get(NAMES, ()) if kind == PEOPLE else (one.get("id", kind),)
        if isinstance(family, str) and isinstance(names, list | tuple):
            found |= {name: family for name in names if isinstance(name, str)}
    size = Counter(found.values())
    more = {worker: family for worker, family in found.items() if size[family] > 1}
    if more and (families is None or isinstance(families, Mapping)):
        families = {**more, **(families or {})}
    if families == aggregate.get("families"):
        return content
    return {**content, "aggregate": {**aggregate, "families": families}}


def _with_source(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Say that a crowd of entries is a mixed one."""
    if not _entries_of(content) or "source" in content["crowd"]:
        return content
    return {**content, "crowd": {"source": "mixed", **content["crowd"]}}


def _entries_of(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tables [[crowd.workers]]."""
    crowd = content.get("crowd")
    rows = crowd.get("workers") if isinstance(crowd, Mapping) else None
    return [one for one in rows if isinstance(one, Mapping)] if isinstance(rows, list) else []


def _content(source: str | Path | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(source, Mapping):
        return "", source
    try:
        return str(source), tomllib.loads(Path(source).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from None
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, integers of too many digits
        if Path(source).suffix != ".toml":
            raise InputError(
                f"{source} is not a plan. To label its texts, write one with `goldspan init "
                f"{source} --labels LABEL,LABEL`, then `goldspan serve plan.toml`"
            ) from None
        raise InputError(f"{source}: it is not valid TOML: {error}") from None
    except RecursionError:
        message = "lists or tables are nested too deeply: a plan has tables of keys and values"
        raise InputError(f"{source}: {message}") from None


def _rest(content: Mapping[str, Any], faulty: set[str]) -> Sections:
    """Return the sections without faults."""
    whole = {}
    for name, field in Plan.model_fields.items():
        kind: Any = field.annotation
        if name in content and name not in faulty and _is_section(kind):
            whole[name] = TypeAdapter(kind).validate_python(content[name])
        elif name not in content and not field.is_required():
            whole[name] = field.get_default()
    return Sections(whole)


def _messages(error: ValidationError) -> Iterator[str]:
    """Return what is wrong with every key; a key that may be of several types is told once."""
    seen = set()
    for one in error.errors():
        keys = tuple(key for key in one["loc"] if not _is_type(key))
        path = ".".join(map(str, keys)) or "the plan"
        if path not in seen:
            seen.add(path)
            yield f"{path}: {_message(one, keys)}"


def _message(fault: Any, keys: tuple[int | str, ...]) -> str:
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        # Name what is allowed in place of an unknown key, and what it looks like
        known = list(_section_of(keys[:-1]).model_fields)
        near = difflib.get_close_matches(str(keys[-1]), known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return f"unknown key: choose from {', '.join(known)}{hint}"
    if kind == "missing":
        return _WORDS[kind]
    seen = f", not {fault['input']!r}"
    if kind in _WORDS:
        several = any(_is_type(key) for key in fault["loc"])
        return ("must be an amount such as 0.05" if several else _WORDS[kind]) + seen
    if kind == "literal_error":
        return f"must be {context['expected']}{seen}"
    limits = [text.format(context[name]) for name, text in _LIMITS.items() if name in context]
    if limits:
        return f"must be {' and '.join(limits)}{seen}"
    return str(context.get("error", fault["msg"]))


def _section_of(keys: tuple[int | str, ...]) -> type[BaseModel]:
    found: type[BaseModel] = Plan
    for key in keys:
        if isinstance(key, int):  # of a list of tables
            continue
        kind = found.model_fields[str(key)].annotation
        found = next(one for one in (kind, *getattr(kind, "__args__", ())) if _is_model(one))
    return found


def _is_section(kind: Any) -> bool:
    return any(_is_model(one) for one in (kind, *getattr(kind, "__args__", ())))


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def _is_type(key: int | str) -> bool:
    """Whether part of a path names a type of a union rather than a key of the file."""
    return str(key) in {"str", "int", "float"} or "function-after" in str(key)
