"""Labels and verdicts from the answers so far, and who is admitted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan import __version__
from goldspan._arrays import hash64
from goldspan.aggregation import Aggregator, Consensus, get_aggregator
from goldspan.aggregation.auto import Auto
from goldspan.aggregation.families import Families
from goldspan.aggregation.judge import Choice
from goldspan.aggregation.layered import Joint, LayersConsensus
from goldspan.aggregation.machines import KINDS
from goldspan.aggregation.plausibility import check_plausibility
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.keeping import KeptLabels, digest, files_of
from goldspan.campaign.plan import ORDINAL, Layer, Plan
from goldspan.campaign.protocols import SOMEBODY, Label, Offers, Picks
from goldspan.campaign.suggestions import Apart
from goldspan.crowd import Crowd
from goldspan.crowd.layers import whole_ids, whole_index
from goldspan.crowd.questions import Answer
from goldspan.errors import InputError
from goldspan.money import MICRO
from goldspan.protocols import Runner, Serial
from goldspan.spans.parts import cuts_of, fit
from goldspan.workers import (
    find_quality_flags,
    judge_workers,
    measure_reliability,
    next_answers,
)
from goldspan.workers.copying import PASTING
from goldspan.workers.redundancy import IDLE, OPEN, FamilyAnswers, states
from goldspan.workers.reliability import QualityFlag
from goldspan.workers.stopping import (
    Floats,
    Habits,
    answer_counts,
    get_rule,
    item_gain,
    learn_habits,
    pair_gain,
    per_item,
    posterior_of,
    sequence_gain,
)
from goldspan.workers.verdicts import DROP, LOOK, state_workers

if TYPE_CHECKING:
    from goldspan.store import SqlLedger

# --------------------------------------------------------------------------------------------------
# Tests of workers: how many gold questions were answered right.


Given = Sequence[Sequence[Any] | Answer]


class TestScore(NamedTuple):
    """What a worker did in a test."""

    right: int
    total: int

    @property
    def share(self) -> float:
        """Share that is right; 1 where nothing counts."""
        return self.right / self.total if self.total else 1.0


def score_test(truth: Given, given: Given, encoding: str = "BIO") -> TestScore:
    """Count right labels: all single labels, and tokens at which either side has a span.

    Of several layers: every label that either side chose, and every span that either side has.

    >>> score_test([["O", "B-PER"]], [["O", "O"]])
    TestScore(right=0, total=1)
    """
    pairs: list[tuple[Any, Any]] = []
    for both in zip(truth, given, strict=True):
        if isinstance(both[0], Mapping):
            pairs += _pairs_of_layers(*both)
            continue
        plain: tuple[Any, Any] = both
        a, b = (fit(one, cuts_of(plain), encoding) for one in plain)
        pairs += zip(a, b, strict=True)
    counting = [(a, b) for a, b in pairs if (a, b) != ("O", "O")]
    return TestScore(sum(a == b for a, b in counting), len(counting))


def _pairs_of_layers(truth: Any, given: Any) -> Iterator[tuple[Any, Any]]:
    for name, right in truth.items():
        own = given.get(name) if isinstance(given, Mapping) else None
        if not isinstance(right, list):
            yield right, own
            continue
        for one in [*right, *(other for other in own or () if other not in right)]:
            yield one in right, one in (own or ())


def why_failed(truth: Given, given: Given, least: float) -> str:
    """Return why a test is failed, "" if it is passed."""
    found = score_test(truth, given)
    return "" if found.share >= least else f"{found.right} of {found.total} right in the test"


# --------------------------------------------------------------------------------------------------
# The default step "aggregate": a method of goldspan, and a rule that says which items go on.


CHOICE = "choice"
"""Kind of the records of what `auto` chose; the last one holds."""
GAIN = "gain"
"""The value of `redundancy.by` by which rounds buy the answers that promise most."""
SEEN = "last_answer"
"""Key of such a record: the number of the last answer that was judged by."""


def method_of(plan: Plan, ledger: SqlLedger) -> str:
    """Return how a campaign aggregates: a default is the one that it began with."""
    begun = ledger.records("plan").get("plan")
    return plan.method if plan.aggregate.method or begun is None else str(begun["method"])


def items_for(plan: Plan) -> str:
    """Return of which items labels are made: of the whole pool where answers are bought by gain."""
    return "pool" if plan.redundancy.by == GAIN else "answered"


@dataclass(frozen=True)
class Aggregating:
    """Aggregates by the plan's method; known labels count as the truth.

    `auto` judges its candidates when that is due (`choose`) and at the end (`choose_at_end`), and
    is fitted by the last choice that was kept in between: labels depend on the answers and on what
    the ledger holds alone.
    """

    plan: Plan
    ledger: SqlLedger  # Where the campaign is kept
    runner: Runner | None = None  # Where to work; by default in this thread
    layer: Layer | None = None  # Of a task of several layers the one whose labels it makes

    def labels(self, crowd: Crowd) -> Consensus:
        """Aggregate; answers that were given with a suggestion count for the suggester, too."""
        apart = Apart.of(self.ledger, crowd)
        if apart is None:
            return self._labels(crowd, self._aggregator(crowd), _known(crowd))
        made = self._labels(apart.crowd, self._aggregator(crowd, apart), _known(crowd))
        return apart.together(made, self._aggregator(crowd))

    def _labels(self, crowd: Crowd, aggregator: Aggregator, known: Crowd | None) -> Consensus:
        """Return the labels that were kept, or compute and keep them."""
        choice = self._choice() if isinstance(aggregator, Auto) else None
        bare, runner = crowd.with_gold(None), self.runner or Serial()
        by = aggregator.name, aggregator.get_params(), choice, None if known is None else known.gold
        key = digest(__version__, *by, files_of(by[1].values()), bare)
        kept = KeptLabels(self.ledger.labels_folder, bare, runner)
        n_forgotten = self.ledger.n_forgotten
        found = kept.get(key)
        if found is None:
            if choice is None:
                fitted = aggregator.fit(bare, known, runner=runner)
            else:
                assert isinstance(aggregator, Auto)
                fitted = aggregator.fit_chosen(bare, choice, known, runner=runner)
            found = fitted.result_
            if self.ledger.n_forgotten == n_forgotten:  # else they may name who was forgotten
                kept.put(key, found)
        return found

    def choose(self, crowd: Crowd) -> dict[str, Any] | None:
        """Judge the candidates of `auto`, if that is due; return what is to be kept as `CHOICE`.

        It is due first, and when the answers have grown by a quarter since. None otherwise, and
        for other methods.
        """
        choice = self._choice()
        if choice and choice.holds(len(crowd.latest)):
            return None
        return self.chosen(crowd)

    def choose_at_end(self, crowd: Crowd, last_answer: int) -> dict[str, Any] | None:
        """Judge the candidates of `auto` by all answers, unless the last choice has seen them."""
        kept = list(self.ledger.records(CHOICE).values())
        return None if kept and kept[-1].get(SEEN) == last_answer else self.chosen(crowd)

    def chosen(self, crowd: Crowd) -> dict[str, Any] | None:
        """Judge the candidates of `auto`; None for other methods."""
        apart = Apart.of(self.ledger, crowd)
        aggregator, split = self._aggregator(crowd, apart), crowd if apart is None else apart.crowd
        if not isinstance(aggregator, Auto):
            return None
        found: Choice = aggregator.fit(
            split.with_gold(None), _known(crowd), runner=self.runner
        ).result_.memory
        return found.to_dict()

    def _aggregator(self, crowd: Crowd, apart: Apart | None = None) -> Aggregator:
        """Make the method of a crowd, or of one whose answers with a suggestion are apart."""
        (method, params), section = self.plan.method_for(self.layer), self.plan.aggregate
        if isinstance(section.families, Mapping):  # workers who may come later are among them
            there = crowd.worker_ids.to_pylist()
            kin = {worker: section.family_of(worker) for worker in there}
            params = {**params, "families": {w: name for w, name in kin.items() if name}}
        method = method if method == ORDINAL else method_of(self.plan, self.ledger)
        known = {*crowd.worker_ids.to_pylist()}
        models = [x.id for x in self.plan.workforce if x.kind in KINDS and x.id in known]
        if models and method == Auto.name:
            params = {"models": models, **params}
        made = get_aggregator(method, **params)
        given = getattr(made, "families", None)
        if apart is not None and given is not None:
            made.set_params(families=apart.families(given))
        return made

    def _choice(self) -> Choice | None:
        every = list(self.ledger.records(CHOICE).values())
        if self.layer is not None:
            every = [one["layers"][self.layer.name] for one in every[-1:]]
            every = [one for one in every if one]
        return Choice.of(every[-1]) if every else None

    def open_items(self, crowd: Crowd, result: Consensus, items: Sequence[str]) -> list[str]:
        """Name the items whose answers are too few by the rule, in the order given."""
        # For the rule the members of a family count as fewer; the maximum is of paid answers
        limits = self.plan.redundancy
        if limits.by == GAIN:
            return []
        asked, apart = crowd, Apart.of(self.ledger, crowd)
        if apart is not None and getattr(aggregator := self._aggregator(crowd), "families", None):
            asked, kin = apart.crowd, apart.families(aggregator.families)
            result = replace(result, crowd=asked, families=kin)
        status = states(asked, result, get_rule(limits.stop), limits.min, limits.max)
        is_open = (status == OPEN) & (answer_counts(crowd) < limits.max)
        ids, index = whole_index(crowd)
        if self.layer is not None and not self.layer.required:  # who left it out said enough
            is_open &= answer_counts(crowd) > 0
        open_ = {ids[n] for n in index[is_open].tolist()}
        return [name for name in items if name in open_]


@dataclass(frozen=True)
class AggregatingLayers:
    """Aggregates every layer by itself, and decides on items together."""

    plan: Plan
    ledger: SqlLedger
    runner: Runner | None = None

    @property
    def each(self) -> dict[str, Aggregating]:
        """What makes the labels of every layer."""
        layers = self.plan.task.layers
        return {x.name: Aggregating(self.plan, self.ledger, self.runner, x) for x in layers}

    def labels(self, crowd: Crowd) -> Joint:
        """Aggregate; the crowd says who answered, the ledger what."""
        there = crowd.item_ids
        crowds = {  # somebody may have answered something new meanwhile
            name: one.select_items(pc.is_in(whole_ids(one), there).to_numpy(zero_copy_only=False))
            for name, one in self._crowds().items()
        }
        results = {
            name: one.labels(crowds[name])
            for name, one in self.each.items()
            if len(crowds[name].latest)  # a question that may be left out may have no answer
        }
        ordinal = tuple(x.name for x in self.plan.task.layers if x.ordinal and x.name in results)
        return Joint.of(LayersConsensus(results, ordinal), crowd)

    def open_items(self, crowd: Crowd, result: Consensus, items: Sequence[str]) -> list[str]:
        """Name the items of which a layer needs another answer."""
        del crowd
        assert isinstance(result, Joint)
        open_: set[str] = set()
        for name, one in self.each.items():
            if one.layer is not None and one.layer.weight and name in result.layers:
                found = result.layers[name]
                open_.update(one.open_items(found.crowd, found, items))
        return [item for item in items if item in open_]

    def choose(self, crowd: Crowd) -> dict[str, Any] | None:
        """Judge the candidates of `auto`, by layer, if that is due."""
        del crowd
        crowds = self._crowds()
        made = {
            name: one.choose(crowds[name]) if len(crowds[name].latest) else None
            for name, one in self.each.items()
        }
        if not any(made.values()):
            return None
        last = [*self.ledger.records(CHOICE).values()][-1:]
        kept = last[0]["layers"] if last else {}
        return {"layers": {name: one or kept.get(name) for name, one in made.items()}}

    def choose_at_end(self, crowd: Crowd, last_answer: int) -> dict[str, Any] | None:
        """Judge the candidates of `auto` by all answers, unless the last choice has seen them."""
        del crowd
        kept = list(self.ledger.records(CHOICE).values())
        if kept and kept[-1].get(SEEN) == last_answer:
            return None
        crowds = self._crowds()
        made = {
            name: one.chosen(crowds[name]) if len(crowds[name].latest) else None
            for name, one in self.each.items()
        }
        return {"layers": made} if any(made.values()) else None

    def _crowds(self) -> dict[str, Crowd]:
        return self.ledger.layers(items_for(self.plan))


def aggregating(
    plan: Plan, ledger: SqlLedger, runner: Runner | None = None
) -> Aggregating | AggregatingLayers:
    """Return the default step of a plan."""
    return (AggregatingLayers if plan.task.layers else Aggregating)(plan, ledger, runner)


def results_of(plan: Plan, result: Consensus) -> Iterator[tuple[str, float, Consensus]]:
    """Yield every layer's words for messages, weight and result; of one question it is `result`."""
    if not isinstance(result, Joint):
        yield "", 1.0, result
        return
    for one in plan.task.layers:
        if one.name in result.layers:
            yield f"{one.name}: ", one.weight, result.layers[one.name]


def _known(crowd: Crowd) -> Crowd | None:
    """Return the crowd if its gold says anything."""
    return None if crowd.gold is None or not (crowd.gold >= 0).any() else crowd


class MoreAnswers(NamedTuple):
    """What more answers to the least certain items are worth."""

    answers: int  # How many there can be, at most as many as were asked for
    # Tokens that they are expected to set right, if labels are drawn by their probabilities
    right: float


def value_of_asking(plan: Plan, crowd: Crowd, result: Consensus, n: int) -> MoreAnswers | None:
    """Return what n more answers to the least certain items are worth, in all layers together."""
    if isinstance(result, Joint):
        each = [(w, value_of_asking(plan, r.crowd, r, n)) for _, w, r in results_of(plan, result)]
        more = [(w, one) for w, one in each if one is not None]
        right = sum(w * one.right for w, one in more)
        return MoreAnswers(max(one.answers for _, one in more), right) if more else None
    # None for methods whose shares are no probabilities
    if result.entropy is None or not crowd.n_tokens:
        return None
    try:
        found = next_answers(
            crowd, result, rule=plan.redundancy.stop, max_answers=plan.redundancy.max + 1, n=n
        )
    except InputError:  # a rule for numbers on labels that are none
        return None
    return MoreAnswers(len(found.gain), float(found.gain.sum()))


def right_share(plan: Plan, result: Consensus) -> float | None:
    """Return the expected share of right tokens, if labels are drawn by their probabilities."""
    if isinstance(result, Joint):  # the mean of the layers, by weight
        each = [(w, right_share(plan, one)) for _, w, one in results_of(plan, result)]
        known = [(w, one) for w, one in each if one is not None]
        total = sum(w for w, _ in known)
        return sum(w * one for w, one in known) / total if total else None
    # None for methods whose shares are no probabilities
    if result.entropy is None or not len(result.codes):
        return None
    return float((result.token_probs.astype(np.float64) ** 2).sum(axis=1).mean())


def gold_free_warnings(result: Consensus, gold: NDArray[np.int16] | None) -> list[str]:
    """Return what should be known before the labels are trusted; known labels may run away."""
    if isinstance(result, Joint):
        return [
            f"{name}: {line}"
            for name, one in result.layers.items()
            for line in gold_free_warnings(one, one.known)
        ]
    codes = result.codes if gold is None else np.where(gold >= 0, np.int16(-1), result.codes)
    return [*check_plausibility(result.crowd, codes).warnings, *result.cautions]


# --------------------------------------------------------------------------------------------------
# Verdicts on workers after a round: who answers no more.


VERDICTS = "verdicts"
"""Kind of the records of what a round came to say of the workers."""
DECISION = "decision"
"""Kind of the records of what the requester decided about a worker."""


def kept(ledger: SqlLedger) -> set[str]:
    """Return the workers whom the requester decided to keep: no rule bars them."""
    last = {row["worker"]: row["verdict"] for row in ledger.records(DECISION).values()}
    return {worker for worker, verdict in last.items() if verdict != DROP}


def families_of(plan: Plan, judged: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of workers' families: those of the plan, else those last found and judged.

    Families are found by the method that makes the labels; `families = "none"` of the plan finds
    none.
    """
    families = plan.aggregate.families
    if isinstance(families, Mapping):
        return dict(families)
    rows = list(judged.values())[-1]["workers"] if judged else {}
    return {worker: row["family"] for worker, row in rows.items() if row.get("family") is not None}


def judge(
    plan: Plan, crowd: Crowd, result: Consensus, barred: set[str], n_workers: int,
    probes: Crowd | None = None,
) -> Any:  # fmt: skip
    """Judge all workers by the gold questions and by the crowd."""
    gold = crowd if crowd.gold is not None and (crowd.gold >= 0).any() else None
    known = crowd.with_gold(None) if gold is None else crowd
    reliability = measure_reliability(known, gold=gold, result=result)
    rules = plan.judging
    flags = _flags(plan, known, result, probes)
    found = judge_workers(
        reliability, threshold=rules.threshold, sure=rules.sure, flags=flags,
        families=result.families,
    )  # fmt: skip
    stated = state_workers(known, threshold=rules.threshold, sure=rules.sure)
    unit = "spans" if not known.is_classification else "texts" if known.wholes is None else "labels"
    rows = {
        one.worker: {
            "verdict": one.verdict, "why": one.why, "by": said.by, "measure": said.measure,
            "mean": round(said.mean, 6), "low": round(said.low, 6), "high": round(said.high, 6),
            "judged": round(said.judged, 3), "known": round(said.known, 3), "more": said.more,
            "opinion": LOOK if one.flags else said.opinion(one.verdict, rules.sure),
            "said": "; ".join(
                part for part in (said.words(unit), one.together, *map(str, one.flags)) if part
            ),
            **({} if one.family is None else {"family": one.family, "effective": one.effective}),
            **({"flags": [flag.to_dict() for flag in one.flags]} if one.flags else {}),
        }
        for one, said in zip(found, stated, strict=True)
    }  # fmt: skip
    worst = sorted(found, key=lambda one: (one.mean, one.worker))
    failed = [
        one.worker
        for one in worst
        if one.verdict == DROP and one.total >= rules.answers and one.worker not in barred
    ]
    room = max(0, n_workers - len(barred) - plan.redundancy.max)
    return {"workers": rows, "drop": failed[:room] if rules.drop else []}


def _order(row: Mapping[str, Any]) -> tuple[bool, bool, float]:
    """Order verdicts: the worst first, those of which nothing is known last."""
    return not row["by"], row["verdict"] != DROP, row["mean"]


def judged_together(plan: Plan, each: Mapping[str, Any]) -> Any:
    """Return one judgement of several layers': of every worker the worst, and what all of them say.

    Who is dropped for a layer is dropped: a page asks all of them.
    """
    rows: dict[str, dict[str, Any]] = {}
    for worker in dict.fromkeys(name for one in each.values() for name in one["workers"]):
        every = {name: one["workers"].get(worker) for name, one in each.items()}
        own = {name: row for name, row in every.items() if row is not None}
        worst = min(own.values(), key=_order)
        said = "; ".join(f"{name}: {row['said']}" for name, row in own.items())
        family: dict[str, Any] = next((row for row in own.values() if "family" in row), {})
        more: dict[str, Any] = {k: family[k] for k in ("family", "effective") if k in family}
        rows[worker] = {**worst, **more, "said": said}
    weights = {one.name: one.weight for one in plan.task.layers}
    dropped = [worker for name, one in each.items() if weights[name] for worker in one["drop"]]
    return {"workers": rows, "drop": list(dict.fromkeys(dropped))}


def _flags(plan: Plan, crowd: Crowd, result: Consensus, probes: Crowd | None) -> list[QualityFlag]:
    """Return the quality flags of people who repeat the mistakes of probes."""
    if probes is None:
        return []
    machines = {one.id for one in plan.workforce if one.kind in {"llm", "python", "tagger"}}
    found = find_quality_flags(crowd, result=result, kinds=PASTING, probes=probes)
    return [one for one in found if one.worker not in machines]


# --------------------------------------------------------------------------------------------------
# A test that comes first, for workers who answer when they like: who has not taken it waits.


class QualificationTest:
    """Who has taken the test, and who failed it; where there is none, everybody is admitted."""

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger) -> None:
        self.inputs, self.ledger = inputs, ledger
        self.control = inputs.plan.control
        self.items = list(inputs.control)[: 0 if self.control is None else self.control.first]
        self._taken: set[str] = set()

    def judge(self, now: int) -> None:
        """See who has answered the whole test, and bar who failed it."""
        if not self.items or self.control is None:
            return
        given = {
            item: {row.worker: row.labels for row in self.ledger.given(item) if row.counts}
            for item in self.items
        }
        self._taken = set.intersection(*(set(answers) for answers in given.values()))
        truth = [self.inputs.control[item] for item in self.items]
        for worker in sorted(self._taken - set(self.ledger.records("bar"))):
            why = why_failed(
                truth, [given[item][worker] for item in self.items], self.control.least
            )
            if why:
                self.ledger.record("bar", worker, {"why": why}, now)
                self.ledger.bar(worker, now)

    def waits(self, worker: str, item: str) -> bool:
        """Whether an answer is not taken yet: the test must come first."""
        return bool(self.items) and item not in self.items and worker not in self._taken


# --------------------------------------------------------------------------------------------------
# Which answers a round buys, and of whom: what each is expected to gain for its price.
#
# With `redundancy.by = "gain"` the first round asks a few answers about a few items. From then on
# all items of the pool compete, also those that nobody was asked about, and all workers who can be
# asked: models, people, recorded and simulated workers. An answer's value is
#
# * the expected gain of this worker about this item: how many more tokens a label drawn from the
#   posterior gets right (`goldspan.workers.stopping`),
# * times what it adds to the effective number of answers of the worker's family,
# * divided by its price.
#
# A round buys the answers of largest value, one of an item; beside it the item may get one of a
# model, which takes nobody's time. Where models have more to say than a round asks people, the
# round is theirs alone: people are asked when the labels know what models said. The posterior is
# that of the campaign's own method on the whole pool; no gold is looked at but that of gold
# questions.
#
# With `value.mistake` a wrong label has a price, and with `prices.hour` so has an hour: the gain is
# then the mistakes that an answer is expected to save, and a round is what saves most beyond its
# price and the time until its last answer. Where nothing does, the campaign ends.

CLOSER = 20_000
"""So many items, the most promising for the mean worker, are looked at worker by worker."""
_FREE = 1e-3
"""What costs nothing counts as this part of a millionth: the better of two is first."""
VALUE = "value"
"""Why a round buys nothing where a wrong label has a price."""
SHORTER = 2**0.5
"""By so much the next round that is tried is shorter."""
_NOTHING = 1e-9
"""An answer that is expected to gain no more is not bought."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AskingByGain:
    """Chooses the answers of a round; a function of its arguments and of what the ledger holds."""

    inputs: CampaignInputs
    ledger: SqlLedger

    def ask(self, crowd: Crowd, result: Consensus, label: Label, left: int) -> Picks:
        """Choose the answers that promise most for their price, in all layers together."""
        results = results_of(self.inputs.plan, result)
        seed, has_value = self.inputs.plan.seed, self.inputs.plan.value.mistake_micro > 0
        layers = [Gains.of(one, crowd, w, seed, in_mistakes=has_value) for _, w, one in results]
        promised = sum((one.promised for one in layers), np.zeros(crowd.n_items))
        closed = pc.is_in(crowd.item_ids, pa.array([*self.inputs.control], pa.string()))
        promised[closed.to_numpy(zero_copy_only=False)] = 0
        told = answer_counts(crowd)
        promised[told >= self.inputs.plan.redundancy.max] = 0
        order = np.argsort(-promised, kind="stable")[:CLOSER]
        order = order[promised[order] > 0]

        names = crowd.item_ids.take(pa.array(order)).to_pylist()
        offers = label.offers(names)
        item = _coded(offers.items, crowd.item_ids)
        gain = sum((one.of_offers(item, offers.workers) for one in layers), np.zeros(len(item)))
        counts = dict(zip(names, told[order].tolist(), strict=True))
        if has_value:
            return self._worthwhile(offers, gain, counts, left, len(crowd.latest), label.now())
        kept = np.flatnonzero(gain > _NOTHING)
        prices = np.maximum(np.array(offers.prices, np.float64)[kept], _FREE)
        ranked = self._order(offers, kept, np.log(gain[kept] / prices))
        taken, is_dear = self._take(offers, ranked, counts, left, self.inputs.plan.select.batch)
        return self._places(offers, taken, "money" if is_dear else GAIN)

    def _take(
        self, offers: Offers, order: Sequence[int], counts: Mapping[str, int], left: int,
        batch: int, shifts: Shifts | None = None,
    ) -> tuple[list[int], bool]:  # fmt: skip
        """Take offers in an order as far as money and time reach; say if one was too dear."""
        most, room = self.inputs.plan.redundancy.max, dict(offers.room)
        whom, models = dict[str, int](), dict[str, int]()
        is_dear = False
        for n in order:
            if len(whom) == batch:  # what models promise less than people wait for the next round
                break
            item, worker, price = offers.items[n], offers.workers[n], offers.prices[n]
            asked = models if worker in offers.models else whom
            n_asked = (item in models) + (item in whom)
            if item in asked or counts[item] + n_asked >= most or room.get(worker, 1) <= 0:
                continue
            if price > left:
                is_dear = True
                continue
            if shifts is not None and not shifts.add(worker):
                continue
            asked[item] = n
            left -= price
            if worker in room:
                room[worker] -= 1
        if len(models) >= batch:
            whom = {}
        return [*models.values(), *whom.values()], is_dear

    def _worthwhile(
        self, offers: Offers, saved: Floats, counts: Mapping[str, int], left: int, n_before: int,
        now: int,
    ) -> Picks:  # fmt: skip
        """Take the answers that save more mistakes than they, and the wait for them, cost."""
        # A round at most doubles the answers: what it expects rests on those that there are
        plan, begin = self.inputs.plan, next(iter(self.ledger.events())).time
        hour, serial = plan.prices.hour_micro, (now - begin) / 1000 / max(1, n_before)
        over = float("inf") if plan.budget.hours is None else plan.budget.hours * 3600
        longest = over - (now - begin) / 1000
        worth, prices = plan.value.mistake_micro * saved, np.array(offers.prices, np.float64)
        net = worth - prices
        kept, useful = np.flatnonzero(net > 0), np.flatnonzero(saved > _NOTHING)
        order = self._order(offers, kept, net[kept])
        each = np.log(worth[useful] / np.maximum(prices[useful], _FREE))
        by_money = self._order(offers, useful, each)
        _, is_dear = self._take(offers, order, counts, left, n_before)
        if is_dear:  # the money ends before what is worth it: it goes where it saves most
            order = [n for n in by_money if net[n] > 0]
        most, best, deadline = 0.0, list[int](), longest
        while True:
            shifts = Shifts(offers.seconds, serial, deadline)
            taken, _ = self._take(offers, order, counts, left, n_before, shifts)
            value = float(net[taken].sum()) - hour * shifts.last / 3600
            if value > most:
                most, best = value, taken
            deadline = shifts.last / SHORTER
            if not taken or not hour or not deadline:
                break
        if not len(useful):
            return self._places(offers, best, GAIN)
        next_unit, _ = self._take(offers, by_money, counts, MICRO, n_before)
        hour_long = Shifts(offers.seconds, serial, 3600.0)
        next_hour, _ = self._take(offers, order, counts, left, n_before, hour_long)
        sums = {"money": worth[next_unit].sum(), "hour": net[next_hour].sum()}
        saves = {name: float(one) / MICRO for name, one in sums.items()}
        return replace(self._places(offers, best, "money" if is_dear else VALUE), saves=saves)

    def _places(self, offers: Offers, taken: Sequence[int], stopped: str) -> Picks:
        """Return the items of the answers, and how many each then wants; or why there are none."""
        whom, models = dict[str, str](), dict[str, str]()
        for n in taken:
            asked = models if offers.workers[n] in offers.models else whom
            asked[offers.items[n]] = offers.workers[n]
        before = {row["item"]: row["wanted"] for row in self.ledger.slots().to_pylist()}
        every = dict.fromkeys([*models, *whom])
        new = tuple(item for item in every if item not in before)
        wanted = {i: before.get(i, 0) + (i in models) + (i in whom) for i in every}
        more = {item: n for item, n in wanted.items() if item in before or n > 1}
        return Picks(new, (GAIN,) * len(new), "" if taken else stopped, more, whom, models)

    def _order(self, offers: Offers, kept: Ints, value: Floats) -> list[int]:
        """Sort some answers by value; those of equal value in an order that the seed decides."""
        value = np.round(value, 9)  # equal but for the last bits: a tie
        seed = self.inputs.plan.seed
        drawn = [hash64(f"{seed}\0{offers.items[n]}\0{offers.workers[n]}") for n in kept.tolist()]
        order = np.lexsort((np.array(drawn, np.uint64), -value))
        return [int(n) for n in kept[order]]


class Shifts:
    """How long everybody works in a round: side by side, or one after another in one queue."""

    def __init__(
        self, seconds: Mapping[str, float], serial: float, deadline: float = float("inf")
    ) -> None:
        # Seconds that an answer takes of those who work side by side, and of all others together
        self.seconds, self.serial, self.deadline = seconds, serial, deadline
        self._load = defaultdict[str, float](float)
        self.last = 0.0  # When the last of them is done, in seconds

    def add(self, worker: str) -> bool:
        """Give a worker another answer, if it is done by the deadline."""
        queue = worker if worker in self.seconds else SOMEBODY
        end = self._load[queue] + self.seconds.get(worker, self.serial)
        if end > self.deadline:
            return False
        self._load[queue] = end
        self.last = max(self.last, end)
        return True


@dataclass(frozen=True)
class Gains:
    """What answers promise for one layer, or for the only question."""

    result: Consensus
    weight: Floats  # [n_items of the result], what a unit of gain counts for
    habits: Habits
    probs: Floats  # [n_tokens, J], the posterior
    index: Ints  # [n_items], of which item of the campaign every item of the result is a part
    promised: Floats  # [n], by item of the campaign, of the mean worker, token by token
    seed: int

    @classmethod
    def of(
        cls, result: Consensus, crowd: Crowd, weight: float, seed: int = 0, *,
        in_mistakes: bool = False,
    ) -> Gains:  # fmt: skip
        """Work them out for the items of a campaign, those of `crowd`; if so in mistakes saved."""
        ids, part = whole_index(result.crowd)
        index = _coded(ids, crowd.item_ids)[part]
        habits = learn_habits(result)
        probs = posterior_of(result, habits)
        weights = np.full(result.crowd.n_items, weight)
        if in_mistakes:  # an answer that takes a share of the doubt takes that share of them
            doubt = per_item(np.add, 1 - np.square(probs).sum(axis=1), result.crowd.offsets, 0.0)
            mistakes = weights * mistakes_of(result, probs)
            weights = np.divide(mistakes, doubt, out=np.zeros_like(doubt), where=doubt > 0)
        own = weights * item_gain(probs, result.crowd.offsets, habits.mean)
        promised = np.bincount(index, own, crowd.n_items).astype(np.float64)
        return cls(result, weights, habits, probs, index, promised, seed)

    def of_offers(self, item: Ints, workers: list[str]) -> Floats:
        """Return the gain of answers of workers to items of the campaign, float64 [n_offers]."""
        crowd, order = self.result.crowd, np.argsort(self.index, kind="stable")
        first, end = (np.searchsorted(self.index[order], item, side) for side in SIDES)
        offer = np.repeat(np.arange(len(item)), end - first)
        at = np.arange(len(offer)) - np.repeat(np.cumsum(end - first) - end, end - first)
        part, worker = order[at], _coded(workers, crowd.worker_ids)[offer]
        is_chain = crowd.tagset.outside >= 0
        habits = learn_habits(self.result, memory=True) if is_chain else self.habits
        tables = np.concatenate([habits.tables, habits.mean[None]])  # -1 is the mean worker
        if is_chain:
            gain = sequence_gain(self.result, self.probs, tables, part, worker, self.seed)
        else:
            gain = pair_gain(self.probs, crowd.offsets, tables, part, worker)
        gain *= self.weight[part]
        if self.result.families is not None:
            names = [workers[n] for n in offer.tolist()]
            added = _added(self.result.families, crowd, names, part)
            gain = np.where(added < IDLE, 0.0, gain * added)
        return np.bincount(offer, gain, len(item)).astype(np.float64)


def mistakes_of(result: Consensus, probs: Floats) -> Floats:
    """Return the expected wrong labels of every item, float64 [n_items].

    Of spans they are the expected wrong tokens, divided by the mean length of a span.
    """
    wrong = per_item(np.add, 1 - probs.max(axis=1), result.crowd.offsets, 0.0)
    spans = result.span_array
    return wrong if not len(spans) else wrong * len(spans) / (spans.end - spans.start).sum()


def expected_mistakes(plan: Plan, result: Consensus) -> dict[str, Any]:
    """Return how many labels of all layers are expected to be wrong, by the weights of these.

    Where a check has a price, `checks` are those of the items that would save more than they cost:
    how many, their `cost`, and what they would save, `saves`, in millionths.
    """
    wrong: Counter[str] = Counter()
    for _, weight, one in results_of(plan, result):
        ids, part = whole_index(one.crowd)
        found = mistakes_of(one, posterior_of(one, learn_habits(one)))
        each = np.bincount(part, weight * found, len(ids)).tolist()
        wrong.update(dict(zip(ids, each, strict=True)))
    facts: dict[str, Any] = {"mistakes": float(sum(wrong.values()))}
    if price := plan.prices.check_micro:
        saved = [plan.value.mistake_micro * one for one in wrong.values()]
        worth = [one for one in saved if one > price]
        cost = price * len(worth)
        facts["checks"] = {"items": len(worth), "cost": cost, "saves": int(round(sum(worth), -4))}
    return facts


SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def _coded(names: list[str], ids: pa.Array) -> Ints:
    """Return the places of names among ids, int64 [n], -1 for those that are not there."""
    place = pc.fill_null(pc.index_in(pa.array(names, pa.string()), value_set=ids), -1)
    return np.asarray(place.to_numpy(zero_copy_only=False), np.int64)


def _added(kin: Families, crowd: Crowd, workers: list[str], item: Ints) -> Floats:
    """Return what one more answer adds to the effective number of its family, float64 [n]."""
    known = crowd.worker_ids.to_pylist()
    ids = pa.array([*known, *sorted({*workers} - {*known})], pa.string())
    every = kin.on(ids)
    counted = FamilyAnswers.of(crowd, every)
    assert counted is not None
    return counted.added(item, every.number[_coded(workers, ids)])
