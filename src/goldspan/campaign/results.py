"""What comes out of a campaign: the record, what was found, the files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.aggregation.layered import Joint
from goldspan.annotators.base import WorkerEntry
from goldspan.campaign.auditing import certificate, checks_of, times_of, work_of
from goldspan.campaign.changes import changes, guideline_versions, plan_in_force
from goldspan.campaign.crowds import HOUR
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.judging import VERDICTS, aggregating, items_for
from goldspan.campaign.loop import Campaign
from goldspan.campaign.plan import NAMES, PEOPLE, Plan
from goldspan.campaign.stopping import NEXT, curve_of
from goldspan.campaign.suggestions import suggestion_rows
from goldspan.campaign.workforce import PROBED
from goldspan.crowd import Crowd
from goldspan.crowd.atomic import write_text
from goldspan.crowd.grid import csv_text
from goldspan.errors import InputError
from goldspan.selection import Pool
from goldspan.selection.features import Features, Incidence
from goldspan.tagger.base import FeatureTagger, Tagger
from goldspan.workers import PayPlan, make_bill
from goldspan.workers.pay import Bill, BillLine

if TYPE_CHECKING:
    from goldspan.store import SqlLedger

# --------------------------------------------------------------------------------------------------
# How much of a pool the rounds have covered, beside as many items drawn at random.


MOST_TOKENS = 2_000_000
"""Of larger pools coverage is not worked out: it would take longer than a report may."""


def coverage_of(pool: Crowd, rounds: Sequence[Sequence[str]]) -> dict[str, Any] | None:
    """Work out how much of a pool is covered after every round."""
    if pool.n_tokens > MOST_TOKENS:
        return None
    try:
        items = Pool.of(pool)
    except InputError:  # items that are names alone
        return None
    found = Features.fit(items).transform(items)
    common = found.counts >= 2
    if not common.any():
        return None
    picked: list[int] = []
    shown = []
    for names in rounds:
        picked += [items.place[name] for name in names]
        seen = found.take(np.array(picked, np.intp)).counts > 0
        shown.append(
            {
                "items": len(picked),
                "covered": round(float(seen[common].mean()), 6),
                "random": round(_at_random(found, common, len(picked)), 6),
            }
        )
    return {"pairs": int(common.sum()), "rounds": shown}


def _at_random(items: Incidence, common: NDArray[np.bool_], n: int) -> float:
    """Return the expected share of common pairs that n items drawn at random have."""
    from scipy.special import gammaln

    count, total = items.counts[common].astype(np.float64), items.n_items
    room = total - count - n
    log = gammaln(total - count + 1) - gammaln(np.maximum(room, 0) + 1)
    log += gammaln(total - n + 1) - gammaln(total + 1)
    missed = np.where(room >= 0, np.exp(log), 0.0)
    return float(1 - missed.mean())


# --------------------------------------------------------------------------------------------------
# All that a campaign was, in plain values: what a report needs, from the ledger alone.


CENT = 10_000
"""Millionths to which estimates are rounded."""
VERSION = 3
"""Of the record's form."""
POINTS = 200
"""At most so many moments of the spending are told."""
STEPS = 41
"""Points of the learning curve."""


@dataclass(frozen=True)
class CampaignRecord:
    """A campaign, as its ledger tells it; made by `CampaignRecord.of`.

    Money is in millionths of the currency unit.

    Attributes:
        id: The campaign's id: its name, and a hash of the plan.
        plan: The plan in force, by section: the first one with what changed since.
        changes: What changed in the plan while it ran, a line per key, in order.
        versions: Versions of goldspan and of what its numbers depend on, at the start.
        rounds: One per round: items, answers, spent, score and its interval, the same on items
            drawn at random (`control`), against the truth of a simulation (`truth`), and more.
        picks: Per round how many items every rule picked.
        workers: By id answers, the last verdict with reliability and interval, and why the worker
            was barred, "" if not. Of a mixed workforce also `kind`, `cost`
            and, of a model, `model`.
        forecasts: Per round the learning curve and where it leads.
        curve: The last learning curve with its 95 % band, to be drawn: `items`, `score`, `low`,
            `high`, a list each; None while there are too few points.
        spending: The course of the money: hours since the beginning, answers and what was paid
            for them; at most 200 moments, none where nobody is paid.
        redundancy: How many picked items have 0, 1, … answers, gold questions aside.
        coverage: Of the pool after every round, see `goldspan.campaign.results`; None where it is
            not known.
        stop: The rule that stopped the campaign, why, and its facts; None while it runs.
        money: cap, reserved, spent; `fixed`: what the labelled items had cost with the most answers
            each, of a mixed workforce of those who cost least; `saving`: the share of that which
            was not spent, below 0 if more was; `everything`: what the whole pool costs with the
            most answers each; `checks` of the audit, if any: their number `n`, `cost` and median
            `seconds`; where a mistake has a price also what `waiting` and the expected `mistakes`
            come to, and what the next unit of `money` would save in mistakes, and the next `hour`
            beyond the price of the answers (`saves`). None where nobody is paid.
        counts: items, answers and gold questions; items of the pool; `awaited`: answers that
            are still to come to what was picked.
        guidelines: The versions of label set and guideline: `version`, `labels`, `hash`, `time`
            (milliseconds since 1970) from which on it was in force, and the `answers` of it that
            count.
        warnings: Signs, without any gold, that the labels of the last round have run away from the
            answers; known labels are left out.
        limits: The rules of `[stop]` that the plan sets, as rows of a table: `rule`, `limit`, and
            how near it is `now`.
        kinds: Of a mixed workforce the same of all workers of a kind together: `workers`,
            `answers`, `cost`, and how often they are right.
        probes: Models that labelled silently: `probe`, `kind`, `model`, `items` and `cost`.
        suggestions: Where labels were suggested, a row per suggester (`by`): how far annotators
            follow it (`rate` with `low` and `high`, its 95 % interval), on how many `assisted` and
            `blind` answers of how many `workers` that rests, how both agree with it, as what an
            assisted answer counts (`rho`), and what became of what was shown: spans `kept`,
            `changed`, `removed` and `added`, answers `unchanged`.
        certificate: How right the labels are by the audit, see
            `goldspan.campaign.auditing.certificate`; None without a draw.
        version: Of this form.
    """

    id: str
    plan: Mapping[str, Any]
    changes: tuple[str, ...]
    versions: Mapping[str, str]
    rounds: tuple[Mapping[str, Any], ...]
    picks: Mapping[str, Mapping[str, int]]
    workers: Mapping[str, Mapping[str, Any]]
    forecasts: Mapping[str, Mapping[str, Any]]
    curve: Mapping[str, Any] | None
    spending: tuple[Mapping[str, Any], ...]
    redundancy: tuple[int, ...]
    coverage: Mapping[str, Any] | None
    stop: Mapping[str, Any] | None
    money: Mapping[str, Any] | None
    counts: Mapping[str, int]
    guidelines: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    limits: tuple[Mapping[str, str], ...] = ()
    kinds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    probes: tuple[Mapping[str, Any], ...] = ()
    suggestions: tuple[Mapping[str, Any], ...] = ()
    certificate: Mapping[str, Any] | None = None
    version: int = VERSION

    @classmethod
    def of(cls, ledger: SqlLedger, result: Consensus | None = None) -> CampaignRecord:
        """Read it from a ledger; the certificate is of the labels that are given.

        Raises:
            KeyError: No campaign was ever run over it.
        """
        begun = ledger.records("plan")["plan"]
        in_force = plan_in_force(ledger)
        stops, rounds = ledger.records("stop"), tuple(ledger.records("round").values())
        last = list(stops.values())[-1] if stops else None
        picks = ledger.records("picks")
        crowd, pool = ledger.crowd(), ledger.crowd("pool")
        forecasts = {name: one["facts"] for name, one in stops.items() if one["facts"]}
        plan = Plan.model_validate(in_force)
        workers = _workers(ledger, plan, crowd)
        filled = [row["filled"] for row in _slots(ledger, control=False)]
        return cls(
            begun["id"],
            in_force,
            tuple(changes(ledger)),
            begun["versions"],
            rounds,
            {name: dict(Counter(one["rules"])) for name, one in picks.items()},
            workers,
            forecasts,
            drawn_curve(plan, rounds),
            _spending(ledger, crowd) if plan.is_paid else (),
            tuple(np.bincount(np.array(filled, np.int64)).tolist()),
            coverage_of(pool, [one["items"] for one in picks.values() if one["items"]]),
            last if last is not None and last["stop"] else None,
            _money(ledger, plan, crowd) if plan.is_paid else None,
            _counts(ledger, crowd, pool),
            tuple(guideline_versions(ledger, crowd)),
            tuple(last_warnings(rounds)),
            tuple(plan.stop.shown(rounds)),
            kinds=_kinds(workers),
            probes=tuple(_probes(ledger)),
            suggestions=tuple(suggestion_rows(ledger, crowd)),
            certificate=certificate(plan, ledger, result, _control(ledger)),
        )

    @property
    def measure(self) -> str:
        """The score of models and labels: "accuracy" of single labels, else "F1"."""
        task = self.plan["task"]
        kinds = {layer["kind"] for layer in task.get("layers", ())}
        return "accuracy" if task["labels"] or (kinds and "spans" not in kinds) else "F1"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; what only some campaigns have is left out of others."""
        some = {"kinds", "probes", "suggestions", "certificate"}
        return {key: value for key, value in asdict(self).items() if value or key not in some}


def _workers(ledger: SqlLedger, plan: Plan, crowd: Crowd) -> dict[str, dict[str, Any]]:
    judged = list(ledger.records(VERDICTS).values())
    verdicts, barred = (judged[-1]["workers"] if judged else {}), ledger.records("bar")
    sizes = (crowd.by_worker.bounds[1:] - crowd.by_worker.bounds[:-1]).tolist()
    answers = dict(zip(crowd.worker_ids.to_pylist(), sizes, strict=True))
    facts = _kinds_and_costs(plan, crowd) if plan.workforce else {}
    none = {"kind": PEOPLE, "cost": 0} if facts else {}
    return {
        worker: {
            "answers": answers.get(worker, 0),
            **facts.get(worker, none),
            **verdicts.get(worker, {}),
            "barred": barred.get(worker, {}).get("why", ""),
        }
        for worker in sorted({*answers, *barred})
    }


def _kinds_and_costs(plan: Plan, crowd: Crowd) -> dict[str, dict[str, Any]]:
    """Return what every worker of a mixed workforce is, and what their answers cost."""
    known = {
        one.id: {"kind": one.kind} | {k: one.options[k] for k in ("model",) if one.options.get(k)}
        for one in plan.workforce
    }
    paid = np.zeros(crowd.n_workers, np.int64)
    if crowd.latest.cost is not None:
        np.add.at(paid, crowd.latest.worker, crowd.latest.cost)
    pairs = zip(crowd.worker_ids.to_pylist(), paid.tolist(), strict=True)
    return {name: {**known.get(name, {"kind": PEOPLE}), "cost": cost} for name, cost in pairs}


def _probes(ledger: SqlLedger) -> list[dict[str, Any]]:
    """Return what models labelled silently."""
    found: dict[str, dict[str, Any]] = {}
    for one in ledger.records(PROBED).values():
        facts = {"probe": one["probe"], "kind": one["kind"], "model": one.get("model")}
        row = found.setdefault(one["probe"], {**facts, "items": 0, "cost": 0})
        row["items"] += sum(labels is not None for labels in one["labels"].values())
        row["cost"] += one["cost"]
    return list(found.values())


def _together(workers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how often workers are right by answers, with its interval, if all were judged alike.

    Their posteriors count as independent and nearly normal.
    """
    judged = [one for one in workers if isinstance(one.get("mean"), float) and one["answers"]]
    if not judged or len({one.get("measure") for one in judged}) > 1:
        return {}
    weight = np.array([one["answers"] for one in judged], np.float64)
    weight /= weight.sum()
    mean, low, high = (np.array([one[key] for one in judged]) for key in ("mean", "low", "high"))
    middle = float(weight @ mean)
    down, up = (float(np.sqrt((weight**2) @ (side - mean) ** 2)) for side in (low, high))
    found = {"mean": middle, "low": max(0.0, middle - down), "high": min(1.0, middle + up)}
    return {key: round(value, 6) for key, value in found.items()}


def _kinds(workers: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the workers of a mixed workforce by kind; nothing where kinds are not known."""
    if not all("kind" in one for one in workers.values()):
        return {}
    kinds: dict[str, dict[str, Any]] = {}
    for one in workers.values():
        row = kinds.setdefault(one["kind"], {"workers": 0, "answers": 0, "cost": 0})
        row["workers"] += bool(one["answers"])
        row["answers"] += one["answers"]
        row["cost"] += one["cost"]
    for name in kinds:
        kinds[name] |= _together([one for one in workers.values() if one["kind"] == name])
    return kinds


def drawn_curve(plan: Plan, rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the learning curve from its first point on to the end of what is forecast."""
    found = curve_of(rounds, plan.seed)
    if found is None:
        return None
    first = min(one["items"] for one in rounds if one["control"] is not None)
    items = np.linspace(first, max(found.last + NEXT, 1.5 * found.last), STEPS).round(2).tolist()
    bounds = [found.interval(n) for n in items]
    return {
        "items": items,
        "score": [found.at(n) for n in items],
        "low": [low for low, _ in bounds],
        "high": [high for _, high in bounds],
    }


def last_warnings(rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the warnings of the last round."""
    return list(rounds[-1]["warnings"]) if rounds else []


def _spending(ledger: SqlLedger, crowd: Crowd) -> tuple[dict[str, Any], ...]:
    answers = crowd.latest
    if answers.submitted is None or answers.cost is None or not len(answers):
        return ()
    begin = next(iter(ledger.events())).time
    order = np.argsort(answers.submitted, kind="stable")
    hours = (answers.submitted[order] - begin) / HOUR
    spent = np.cumsum(answers.cost[order])
    shown = np.unique(np.linspace(0, len(order) - 1, POINTS).round().astype(int)).tolist()
    return tuple(
        {"hours": round(float(hours[n]), 6), "answers": n + 1, "spent": int(spent[n])}
        for n in shown
    )


def _slots(ledger: SqlLedger, *, control: bool) -> list[dict[str, Any]]:
    """Return the places of gold questions, or those of all others."""
    return [row for row in ledger.slots().to_pylist() if (row["batch"] == "control") == control]


def _control(ledger: SqlLedger) -> set[str]:
    """Return the gold questions."""
    return {row["item"] for row in _slots(ledger, control=True)}


def _money(ledger: SqlLedger, plan: Plan, crowd: Crowd) -> dict[str, Any]:
    totals = ledger.totals()
    price = _fixed_price(plan, crowd)
    costs = {item: price(n_tokens) for item, n_tokens in ledger.n_tokens().items()}
    # An item that still waits for its first answers is not labelled.
    labelled = [
        row["item"] for row in _slots(ledger, control=False) if 0 < row["filled"] >= row["wanted"]
    ]
    fixed, checks = sum(costs[item] for item in labelled), checks_of(ledger)
    return {
        "currency": totals.currency,
        "cap": totals.cap,
        "reserved": totals.reserved,
        "spent": totals.spent,
        "fixed": fixed,
        "saving": 1 - totals.spent / fixed if fixed else 0.0,
        "everything": sum(costs.values()),
        **({"checks": work_of(checks)} if checks else {}),
        **_worth(ledger, plan),
    }


def _worth(ledger: SqlLedger, plan: Plan) -> dict[str, Any]:
    """Return what the wait and the mistakes cost beside the money, where a mistake has a price."""
    rounds = [one for one in ledger.records("round").values() if "mistakes" in one]
    if not plan.value.mistake_micro or not rounds:
        return {}
    hours, mistakes = rounds[-1]["hours"], rounds[-1]["mistakes"]
    saves = [one["saves"] for one in ledger.records("picks").values() if "saves" in one]
    return {
        "waiting": CENT * round(hours * plan.prices.hour_micro / CENT),
        "mistakes": CENT * round(mistakes * plan.value.mistake_micro / CENT),
        "saves": saves[-1] if saves else None,
    }


def _fixed_price(plan: Plan, crowd: Crowd) -> Callable[[int], int]:
    """Return what an item costs by its tokens with the most answers, in millionths."""
    # Of a mixed workforce those answer who cost least, each once
    most, answers = plan.redundancy.max, crowd.latest
    if not plan.workforce:
        return lambda n_tokens: most * plan.cost(n_tokens)
    ids, fixed, own = crowd.worker_ids.to_pylist(), list[int](), list[WorkerEntry]()
    for one in plan.workforce:
        if one.kind == "llm" and one.id in ids and answers.cost is not None:
            given = answers.cost[answers.worker == ids.index(one.id)]
            fixed += [round(float(given.mean()))] if len(given) else []
        elif one.kind == PEOPLE:
            own += [one] * min(most, len(one.options.get(NAMES, ())) or most)
        elif one.kind != "llm" and not one.probe:
            own.append(one)

    @cache
    def price(n_tokens: int) -> int:
        return sum(sorted([*fixed, *(one.tariff.cost(n_tokens) for one in own)])[:most])

    return price


def _counts(ledger: SqlLedger, crowd: Crowd, pool: Crowd) -> dict[str, int]:
    control = [row["filled"] for row in _slots(ledger, control=True)]
    own = _slots(ledger, control=False)
    items = sum(1 for row in own if row["filled"])
    return {
        "pool": pool.n_items,
        "items": items,
        "answers": len(crowd.latest),
        "awaited": sum(max(0, row["wanted"] - row["filled"]) for row in own),
        "control_items": len(control),
        "control_answers": sum(control),
    }


# --------------------------------------------------------------------------------------------------
# What a report says besides the record: the labels, and how far they can be trusted.


HIDDEN, CONTROL = "the hidden gold", "the gold questions"
REVIEWED = "the reviewed items, which were the least certain ones"
"""What labels are compared with."""


@dataclass(frozen=True, eq=False)
class ReportData:
    """A campaign as its report tells it; made by `ReportData.of`."""

    record: CampaignRecord
    result: Consensus | None  # The labels, None without answers
    tested: Consensus | None  # Labels in whose crowd stands gold that their method has not seen
    against: str  # What that gold is, in words; "" for none

    @classmethod
    def of(cls, ledger: SqlLedger, result: Consensus | None = None) -> ReportData:
        """Read them from a ledger."""
        plan = Plan.model_validate(plan_in_force(ledger))
        aggregate, crowd = aggregating(plan, ledger), ledger.crowd(items_for(plan))
        if not len(crowd.latest):
            return cls(CampaignRecord.of(ledger), None, None, "")
        made = result or aggregate.labels(crowd)
        record = CampaignRecord.of(ledger, made)
        if isinstance(made, Joint):
            return cls(record, made, None, "")
        hidden = _hidden_gold(ledger, crowd)
        if hidden is not None:
            return cls(record, made, replace(made, crowd=crowd.with_gold(hidden)), HIDDEN)
        if crowd.gold is None or not (crowd.gold >= 0).any():
            return cls(record, made, None, "")
        blind = aggregate.labels(crowd.with_gold(None))
        control = _on_control(ledger, crowd)
        known, against = (crowd.gold, REVIEWED) if control is None else (control, CONTROL)
        return cls(record, made, replace(blind, crowd=crowd.with_gold(known)), against)


def keep_hidden_gold(inputs: CampaignInputs, ledger: SqlLedger, now: int) -> None:
    """Keep the truth of a simulation for the report; nothing else ever reads it."""
    if inputs.truth is None or ledger.records("hidden"):
        return
    known = inputs.truth.tagset.decode_complete(inputs.truth.gold_tagged)
    labels = dict(zip(inputs.truth.item_ids.to_pylist(), known, strict=True))
    ledger.record("hidden", "gold", {"labels": labels}, now)


def _hidden_gold(ledger: SqlLedger, crowd: Crowd) -> NDArray[np.int16] | None:
    """Return the truth of the simulation, int16 [n_tokens], -1 at gold questions."""
    kept = ledger.records("hidden")
    if not kept:
        return None
    labels, index = kept["gold"]["labels"], crowd.tagset.index
    control = _control(ledger)
    codes = np.full(crowd.n_tokens, -1, np.int16)
    for n, name in enumerate(crowd.item_ids.to_pylist()):
        if name not in control and name in labels:
            start, stop = crowd.offsets[n : n + 2].tolist()
            codes[start:stop] = [index.get(label, -1) for label in labels[name]]
    return codes


def _on_control(ledger: SqlLedger, crowd: Crowd) -> NDArray[np.int16] | None:
    """Return the gold of the gold questions alone, int16 [n_tokens]; None without any."""
    control = _control(ledger)
    is_control = [name in control for name in crowd.item_ids.to_pylist()]
    if crowd.gold is None or not any(is_control):
        return None
    of_token = np.repeat(is_control, np.diff(crowd.offsets))
    return np.where(of_token, crowd.gold, np.int16(-1)).astype(np.int16)


# --------------------------------------------------------------------------------------------------
# What a campaign leaves behind: labels, spans, the model, the bill, the rounds.


def write_exports(
    campaign: Campaign,
    out: str | Path,
    shown: Callable[[CampaignRecord], CampaignRecord] = lambda record: record,
    *,
    raw_csv: bool = False,
) -> list[Path]:
    """Write what a campaign found.

    Args:
        campaign: A campaign that has run, or waits.
        out: The folder; it is made if it is not there.
        shown: Gives the record as it may be shown: with other names for workers, for example.
        raw_csv: Whether cells of gold.csv and predictions.csv stay as they are, also those that a
            spreadsheet may take for formulas.

    Returns:
        The files: gold.conll (single labels: gold.csv), spans.jsonl (several layers: layers.jsonl
        in place of both), tagger.goldspan (an encoder:
        the folder tagger; single labels: predictions.csv, every item of the pool), bill.csv,
        rounds.jsonl, record.json. What there is nothing for, is not written: unpaid work has no
        bill.

    Raises:
        InputError: The folder cannot be made, or a file not written.
    """
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}") from None
    keep_hidden_gold(campaign.inputs, campaign.ledger, campaign.steps.label.now())
    with campaign.progress.frozen():
        written = [*_labels(campaign, folder, raw_csv), *_model(campaign, folder, raw_csv)]
        crowd, plan = campaign.progress.crowd, campaign.inputs.plan
        if len(crowd.latest) and plan.is_paid:
            written.append(folder / "bill.csv")
            bill_of(plan, campaign.ledger, crowd).write(written[-1])
    record = CampaignRecord.of(campaign.ledger, campaign.progress.result)
    rounds = folder / "rounds.jsonl"
    write_text(rounds, [json.dumps(one, ensure_ascii=False) + "\n" for one in record.rounds])
    whole = folder / "record.json"
    write_text(whole, [json.dumps(shown(record).to_dict(), ensure_ascii=False, indent=1) + "\n"])
    return [*written, rounds, whole]


def _labels(campaign: Campaign, folder: Path, raw_csv: bool) -> Iterator[Path]:
    result = campaign.progress.result
    if result is None:
        return
    if isinstance(result, Joint):
        result.layers.write(folder / "layers.jsonl")
        yield folder / "layers.jsonl"
        return
    gold = folder / ("gold.csv" if campaign.inputs.plan.is_single else "gold.conll")
    result.write(gold, raw_csv=raw_csv)
    yield gold
    if not campaign.inputs.plan.is_single:
        result.write(folder / "spans.jsonl")
        yield folder / "spans.jsonl"


def _model(campaign: Campaign, folder: Path, raw_csv: bool) -> Iterator[Path]:
    trained = campaign.progress.trained
    if trained is None:
        return
    if isinstance(trained.model, Tagger):
        is_file = isinstance(trained.model, FeatureTagger)  # an encoder is a folder
        name = folder / ("tagger.goldspan" if is_file else "tagger")
        trained.model.save(name)
        yield name
        return
    pool = campaign.inputs.pool
    labels = trained.predict(pool, np.arange(pool.n_items))
    rows = zip(campaign.inputs.ids, (label[0] for label in labels), strict=True)
    write_text(folder / "predictions.csv", [csv_text(["item", "label"], rows, raw=raw_csv)])
    yield folder / "predictions.csv"


def bill_of(plan: Plan, ledger: SqlLedger, crowd: Crowd) -> Bill:
    """Return what everybody earned: by answers, and a line each of those paid for checks."""
    prices = plan.prices
    pay = PayPlan(
        per_answer=prices.per_answer, per_token=prices.per_token, currency=prices.currency
    )
    made = make_bill(crowd, pay, recorded="use")
    checks = [one for one in checks_of(ledger) if one.get("cost")]
    lines = list(made.lines)
    for by in sorted({one["by"] for one in checks}):
        own = [one for one in checks if one["by"] == by]
        tokens, took = sum(len(one["labels"]) for one in own), times_of(own)
        work = len(own), tokens, len(took), sum(took), 0.0, 0.0
        cost = sum(one["cost"] for one in own)
        lines.append(BillLine(f"audit {by}".strip(), *work, cost, 0, 0, 0))
    return replace(made, lines=tuple(lines))
