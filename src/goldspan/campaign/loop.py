"""The loop: select, label, aggregate, judge workers, train, evaluate, stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from goldspan.aggregation import Consensus
from goldspan.aggregation.layered import Joint
from goldspan.campaign.auditing import (
    CHECK,
    DRAW,
    USUAL,
    certificate,
    draw,
    is_due,
    last_active,
    last_draw,
    open_items,
)
from goldspan.campaign.changes import begin, reopened
from goldspan.campaign.crowds import ENDED, HOUR, Files, Replayed, Simulated, is_over
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.judging import (
    CHOICE,
    GAIN,
    SEEN,
    VALUE,
    VERDICTS,
    AskingByGain,
    aggregating,
    expected_mistakes,
    gold_free_warnings,
    items_for,
    judge,
    judged_together,
    kept,
    right_share,
    value_of_asking,
)
from goldspan.campaign.model import make_model
from goldspan.campaign.outlook import CampaignStopping, Evaluating, ended, kappa, measured
from goldspan.campaign.protocols import (
    Aggregate,
    AskedAgain,
    CampaignEvent,
    Decided,
    Decision,
    Evaluate,
    Evaluation,
    Label,
    Labelled,
    Labels,
    Model,
    OnEvent,
    Picks,
    PlanChanged,
    RoundEnded,
    RoundOpened,
    Select,
    Stop,
    Trained,
    Waiting,
    WorkerDropped,
)
from goldspan.campaign.stopping import NEXT
from goldspan.campaign.suggestions import blind_answers
from goldspan.campaign.workforce import Workforce, probes_of
from goldspan.crowd import Crowd
from goldspan.crowd.questions import longest, span_of
from goldspan.errors import InputError
from goldspan.protocols import Runner
from goldspan.selection.base import CONTROL as RANDOM
from goldspan.selection.base import Cost
from goldspan.selection.schedule import Schedule, read_selector
from goldspan.spans.parts import fit, nest, places_in, write_parts
from goldspan.workers.stopping import answer_counts

if TYPE_CHECKING:
    from goldspan.store import SqlLedger

# --------------------------------------------------------------------------------------------------
# The default step "select": a rule or a schedule, as much as the money pays for.


POOL, MONEY, UNANSWERED = "pool", "money", "unanswered"
"""Why there are no more items."""
ERRORS = "errors"
"""Kind of the records of what the model got right and wrong after a round."""


@dataclass(frozen=True)
class Picking:
    """Picks by the plan's schedule.

    A schedule is in its first stage until there is a model, whatever the round.
    """

    inputs: CampaignInputs
    ledger: SqlLedger

    def pick(self, number: int, taken: Sequence[str], trained: Trained | None, left: int) -> Picks:
        """Pick as many items as the plan says, and the money pays for with the fewest answers."""
        plan, pool = self.inputs.plan, self.inputs.pool
        rule = read_selector(plan.select.by)
        if isinstance(rule, Schedule):
            rule.round = number - 1 if trained is not None else 0
        n = plan.select.batch
        n = plan.select.first or n if number == 1 else n
        closed = [*taken, *self.inputs.control]
        if len(closed) == pool.n_items:
            return Picks((), (), POOL)
        found = rule.select(
            pool,
            labelled=closed,
            errors=self._errors(closed) if plan.select.errors else None,
            model=None if trained is None else trained.model,
            n=n,
            costs=self._costs(),
            random_state=plan.seed,
        )
        items, spent = [], 0
        for index in found.item.tolist():
            cost = int(self.inputs.costs[index]) * plan.redundancy.min
            if spent + cost > left:
                break
            spent += cost
            items.append(self.inputs.ids[index])
        stopped = "" if items else MONEY if len(found) else POOL
        return Picks(tuple(items), tuple(found.rule[: len(items)]), stopped)

    def _errors(self, closed: Sequence[str]) -> dict[str, float | None]:
        """Return which of the items the model got wrong after the last round, None if unknown."""
        kept = [*self.ledger.records(ERRORS).values()][-1:]
        known = {name: 0.0 for one in kept for name in one["right"]}
        known |= {name: 1.0 for one in kept for name in one["wrong"]}
        return {name: known.get(name) for name in closed}

    def _costs(self) -> Cost | None:
        """Return what the rules weigh gains against."""
        # None where nobody is paid, or nobody by `[prices]`: items are alike then
        prices = self.inputs.plan.prices
        if not self.inputs.plan.is_paid or not prices.answer_micro + prices.token_micro:
            return None
        per_token = prices.per_token if self.inputs.pool.text is not None else 0
        fixed = prices.per_answer
        if not self.inputs.plan.is_single:
            return Cost(fixed=fixed, per_token=per_token, answers=self.inputs.plan.redundancy.min)
        return None


# --------------------------------------------------------------------------------------------------
# What a campaign knows at a moment, worked out from the ledger: labels, a model, how good it is.


PROBE = 100
"""Items of the pool whose predictions are compared from round to round."""


class CampaignState:
    """What is known, by the ledger as it is when asked."""

    def __init__(self, inputs: CampaignInputs, ledger: SqlLedger, steps: Steps) -> None:
        self.inputs, self.ledger, self.steps = inputs, ledger, steps
        self._snapshot = Snapshot(self)
        self._last_answer = -1
        self._still = 0

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stay at one moment, for `with`: people answer while it is looked at."""
        # What belongs together – answers, and the labels made of them – is of one moment then
        self._refresh()
        self._still += 1
        try:
            yield
        finally:
            self._still -= 1

    def forget(self) -> None:
        """Work everything out again: known labels changed, for example."""
        self._last_answer = -1

    @property
    def crowd(self) -> Crowd:
        """The answers that count."""
        return self._now.crowd

    @property
    def result(self) -> Consensus | None:
        """What they say; None without answers."""
        return self._now.result

    @property
    def labelled(self) -> Labelled:
        """The labels, gold questions aside."""
        return self._now.labelled

    @property
    def model(self) -> Model:
        """The model step, with its choice made."""
        return self._now.model

    @property
    def trained(self) -> Trained | None:
        """The model that learned from them."""
        return self._now.learned[0]

    @property
    def note(self) -> str:
        """Why no model learned from them, though there are enough; else ""."""
        return self._now.learned[1]

    @property
    def picked(self) -> list[str]:
        """The items of all rounds so far."""
        return list(chain(*(one["items"] for one in self.ledger.records("picks").values())))

    @property
    def drawn(self) -> set[str]:
        """Those of them that were drawn at random."""
        pairs = (zip(p["items"], p["rules"], strict=True) for p in self._picks)
        return {item for item, rule in chain(*pairs) if rule == RANDOM}

    def against_truth(self) -> dict[str, float] | None:
        """Compare labels and model with the truth of a simulation, which nothing else uses."""
        truth = self.inputs.truth
        if truth is None or not len(self.labelled.items):
            return None
        encoding, place = self.inputs.codec.encoding, self.inputs.pool.place
        every = truth.tagset.decode_complete(truth.gold_tagged)
        given = self._now.given
        labels = measured([every[place[name]] for name in given], [*given.values()], encoding)
        found: dict[str, Any] = {"labels": labels.value, "model": None}
        items = self.labelled.items.tolist()
        seen = {*items, *(place[name] for name in self.inputs.control)}
        rest = np.array([n for n in range(len(every)) if n not in seen], np.int64)
        if self.trained is not None and len(rest):
            predicted = self.trained.predict(self.inputs.pool, rest)
            found["model"] = measured([every[n] for n in rest.tolist()], predicted, encoding).value
        return found

    def verdicts(self, barred: set[str], n_workers: int) -> dict[str, Any]:
        """Judge all workers by their answers without a suggestion."""
        plan, ledger, result = self.inputs.plan, self.ledger, self.result
        assert result is not None  # there are answers
        found: dict[str, Any]
        if isinstance(result, Joint):
            each = {}
            for name, one in result.layers.items():
                own = blind_answers(ledger, one.crowd.with_gold(one.known))
                each[name] = judge(plan, own, one, barred, n_workers)
            found = judged_together(plan, each)
        else:
            crowd, probes = blind_answers(ledger, self.crowd), probes_of(ledger, self.crowd)
            found = judge(plan, crowd, result, barred, n_workers, probes)
        return found

    def probe(self) -> list[str]:
        """Predict some items of the pool, always the same; nothing without a model."""
        if self.trained is None:
            return []
        items = self.inputs.ranks("probe")[:PROBE]
        return list(chain(*self.trained.predict(self.inputs.pool, items)))

    def stability(self, number: int, labels: list[str]) -> float | None:
        """Compare predictions with those of the round before."""
        before = self.ledger.records("probe").get(f"r{number - 1:03d}", {}).get("labels")
        return kappa(before, labels) if before and labels else None

    @property
    def _picks(self) -> list[dict[str, Any]]:
        return list(self.ledger.records("picks").values())

    @property
    def _now(self) -> Snapshot:
        if not self._still:
            self._refresh()
        return self._snapshot

    def _refresh(self) -> None:
        if self._still:
            return
        last = self.ledger.last_answer
        if last != self._last_answer:
            self._snapshot, self._last_answer = Snapshot(self), last


class Snapshot:
    """What is known as long as no answer comes or changes."""

    def __init__(self, owner: CampaignState) -> None:
        self.owner, self.inputs = owner, owner.inputs

    @cached_property
    def crowd(self) -> Crowd:
        """The answers that count."""
        return self.owner.ledger.crowd(items_for(self.inputs.plan))

    @cached_property
    def result(self) -> Consensus | None:
        """What they say."""
        return self.owner.steps.aggregate.labels(self.crowd) if len(self.crowd.latest) else None

    @cached_property
    def given(self) -> dict[str, list[str]]:
        """Labels by item, gold questions aside; also of items that only their words label."""
        found = self._learned_tags() if isinstance(self.result, Joint) else (
            {} if self.result is None else self.result.tagged_by_id()
        )  # fmt: skip
        return {
            name: tags
            for name, tags in found.items()
            if name not in self.inputs.control and None not in tags
        }

    @cached_property
    def answers(self) -> dict[str, dict[str, Any]]:
        """Of a task of several layers the labels by item, as answers have them."""
        result, pool = self.result, self.inputs.pool
        if not isinstance(result, Joint):
            return {}
        return result.answers(lambda item: self.inputs.tokens_of(pool.place[item]))

    def _learned_tags(self) -> dict[str, Any]:
        """Return the labels of the layer that a model learns; of spans that overlap the longest."""
        learned, found = self.inputs.plan.task.learned, dict[str, list[str]]()
        for name, answer in self.answers.items():
            # Nothing learns any number of labels: that an item has some is all that counts
            value = "" if learned is None else answer.get(learned.name)
            if value is None:
                continue
            if isinstance(value, str):
                found[name] = [value]
                continue
            spans = [span_of(one) for one in value]
            n_tokens = len(self.inputs.words[self.inputs.pool.place[name]])
            labels = write_parts(longest(spans), n_tokens, self.inputs.codec.encoding)
            tags = fit(labels, {}, self.inputs.codec.encoding)
            found[name] = [tag or "O" for tag in tags]
        return found

    def _on_pool(self) -> dict[str, list[str]]:
        """Return labels by item on the tokens of the pool; the model learns no parts of tokens."""
        crowd, inputs, found = self.crowd, self.inputs, dict(self.given)
        if inputs.plan.is_single or crowd.token_start is None:  # or it has several layers
            return found
        for n, name in enumerate(crowd.item_ids.to_pylist()):
            part, place = slice(*crowd.offsets[n : n + 2].tolist()), inputs.pool.place[name]
            starts = inputs.pool.starts_of(place) if name in found else []
            if starts and len(starts) != len(found[name]):
                places = places_in(starts, crowd.token_start[part].tolist())
                labels = fit(nest(found[name], places), {}, inputs.codec.encoding)
                found[name] = [label or "O" for label in labels]
        return found

    @cached_property
    def labelled(self) -> Labelled:
        """Labels of all answered items but the gold questions."""
        is_answered = (answer_counts(self.crowd) > 0).tolist()
        asked = {
            name
            for name, answered in zip(self.crowd.item_ids.to_pylist(), is_answered, strict=True)
            if answered
        }
        known = {name: tags for name, tags in self._on_pool().items() if name in asked}
        order = [n for n in self.inputs.ranks("deal").tolist() if self.inputs.ids[n] in known]
        names, drawn = [self.inputs.ids[n] for n in order], self.owner.drawn
        return Labelled(
            np.array(order, np.int64),
            [known[name] for name in names],
            np.array([name in drawn for name in names], np.bool_),
        )

    @cached_property
    def to_learn(self) -> Labelled:
        """Labels that the model may learn from: a slice that measures it is left out."""
        every = self.labelled
        if self.inputs.plan.evaluate.by != "slice":
            return every
        rest = np.flatnonzero(~every.is_random)
        labels = [every.labels[n] for n in rest.tolist()]
        return Labelled(every.items[rest], labels, every.is_random[rest])

    @cached_property
    def model(self) -> Model:
        """The model step, with its choice made."""
        choose = getattr(self.owner.steps.model, "choose", None)
        learn = self.to_learn
        made: Model = choose(learn.items, learn.labels) if choose else self.owner.steps.model
        return made

    @cached_property
    def learned(self) -> tuple[Trained | None, str]:
        """The model that learned, or why it could not: the labels are paid and go on without it."""
        try:
            return self.model.train(self.to_learn.items, self.to_learn.labels), ""
        except InputError as error:
            return None, str(error)


# --------------------------------------------------------------------------------------------------
# The six steps of a campaign together: those of the plan, and any of them replaced.


SOURCES: dict[str, Any] = {
    "simulated": Simulated,
    "files": Files,
    "web": Workforce,
    "replay": Replayed,
    "mixed": Workforce,
}
"""Where answers come from, by the name in the plan."""


@dataclass(frozen=True)
class Steps:
    """The steps; see `goldspan.campaign.protocols`."""

    select: Select
    label: Label
    aggregate: Aggregate
    model: Model
    evaluate: Evaluate
    stop: Stop

    @classmethod
    def of(
        cls,
        inputs: CampaignInputs,
        ledger: SqlLedger,
        runner: Runner | None = None,
        label: Label | None = None,
        **replaced: Any,
    ) -> Steps:
        """Make the steps of a plan.

        Args:
            inputs: The plan and its files.
            ledger: Where the campaign is kept.
            runner: Where to aggregate and to train; by default in this thread.
            label: Another source of answers than the plan's.
            replaced: Other steps in their places, by name: `stop=MyRule()`.
        """
        plan, codec = inputs.plan, inputs.codec

        def value(truth: Labels, found: Labels) -> float:
            return measured(truth, found, codec.encoding, plan.seed).value

        made = cls(
            Picking(inputs, ledger),
            label or SOURCES[plan.crowd.source](inputs, ledger),
            aggregating(plan, ledger, runner),
            make_model(
                plan.learner, plan.model.params, inputs.pool, plan.seed, value,
                single=plan.is_single, runner=runner,
            ),
            Evaluating(inputs),
            CampaignStopping(plan),
        )  # fmt: skip
        return replace(made, **replaced)


# --------------------------------------------------------------------------------------------------
# The loop: pick → ask → aggregate → ask again where in doubt → train → evaluate → go on or stop.


CONTROL = "control"
"""The batch of the gold questions."""
MINUTE = 60_000
"""Milliseconds."""
PLACES = 1_000
"""Places of a gold question where the number of workers is not known."""
_WHY = {
    MONEY: "the money does not pay for another item",
    POOL: "no item of the pool is left to pick",
    GAIN: "no annotator who can still be asked is expected to make a label more certain",
    VALUE: "no answer saves more than it and the wait for it cost",
    UNANSWERED: "nobody answered anything",
}


class Campaign:
    """A campaign that runs over a ledger.

    Args:
        inputs: The plan and its files.
        ledger: Where everything is kept.
        steps: The six steps; the plan's by default.
        on_event: Hears what happens, see `goldspan.campaign.protocols`.
        stop_requested: Asked between two steps whether to stop there; the campaign then ends with
            a KeyboardInterrupt, and a new one goes on from there.
    """

    def __init__(
        self,
        inputs: CampaignInputs,
        ledger: SqlLedger,
        steps: Steps | None = None,
        on_event: OnEvent = lambda _: None,
        stop_requested: Callable[[], bool] = lambda: False,
    ) -> None:
        self.inputs, self.ledger = inputs, ledger
        self.steps = steps or Steps.of(inputs, ledger)
        self.on_event, self.stop_requested = on_event, stop_requested
        self.progress = CampaignState(inputs, ledger, self.steps)
        self._has_begun = False
        self._opened = ""
        self._checked = -1  # Checks when it last waited for more, where the clock may stand still

    def run(self) -> Waiting | Decision:
        """Run until the campaign stops, or until answers from outside are awaited.

        Raises:
            InputError: The ledger holds another campaign, or this one with a plan that changed in
                more than its limits.
        """
        with self.ledger.alone():
            self._begin()
            return self._run()

    def begin(self) -> None:
        """Check plan and pool against the ledger and put them in force, before anybody is asked.

        `run` begins by it. A command that lets people in calls it first, so that what `run` would
        refuse is refused before the first answer is paid.

        Raises:
            InputError: The ledger holds another campaign, or this one with a plan that changed in
                more than its limits.
        """
        with self.ledger.alone():
            self._begin()

    def _run(self) -> Waiting | Decision:
        for number in count(1):
            name = f"r{number:03d}"
            if name not in self.ledger.records("stop"):
                waiting = self._round(number, name)
                if waiting is not None:
                    return waiting
            decision = self._last_decision(number, name)
            if decision["stop"]:
                self._release(CONTROL)
                self._choose(f"{name}.end.{self.ledger.last_answer}", at_end=True)
                return Decision(**decision)
        raise AssertionError

    def _last_decision(self, number: int, name: str) -> dict[str, Any]:
        """Return what was decided after a round, by the plan as it is now if that changed since."""
        change = reopened(self.ledger).get(name)
        if change is None:
            return self.ledger.records("stop")[name]
        # Where there was nothing to pick, the next round looks again.
        decision = self._kept("stop", f"{name}.{change}", lambda: {**self._decide(), "facts": {}})
        if not decision["stop"] and f"r{number + 1:03d}" not in self.ledger.records("picks"):
            places = dict.fromkeys(self.inputs.control, self._n_places())
            if places:
                self.ledger.adjust(places, self.steps.label.now())
        return decision

    def _begin(self) -> None:
        """Fill the pool, and ask nothing of another campaign's ledger."""
        if self._has_begun:  # a pool is large, and a campaign that waits runs often
            return
        now = self.steps.label.now()
        for line in begin(self.inputs, self.ledger, now):
            self._hear(PlanChanged(line))
        self.progress.forget()  # labels may have been added
        stay = kept(self.ledger)
        for worker in self.ledger.records("bar"):  # decided, and perhaps not done
            if worker not in stay:
                self.ledger.bar(worker, now)
        if self.inputs.control:
            self.ledger.set_gold(self.inputs.control, now, control=True)
            self.ledger.open_batch(CONTROL, list(self.inputs.control), self._n_places(), now)
        self._has_begun = True

    def _n_places(self) -> int:
        workers = self.inputs.plan.crowd.workers
        if self.inputs.plan.crowd.source != "simulated":
            return PLACES
        from goldspan.simulation import read_team

        return len(read_team(list(workers)))

    def _round(self, number: int, name: str) -> Waiting | None:
        """Do a round as far as it is not done."""
        picks = self._kept("picks", name, lambda: self._pick(number))
        items = [*picks["items"], *picks.get("more", ())]
        if not items:
            why = _WHY.get(picks["stopped"], picks["stopped"])
            end = ended(picks["stopped"], why, {})
            decision = self._kept("stop", name, lambda: self._told(end))
            self._hear(Decided(decision["stop"], decision["why"]))
            return None
        if self._opened != name:  # as above: whoever answers would wait meanwhile
            self._hear(RoundOpened(number, len(items)))
            self._open(name, picks)
            self._opened = name
        waiting = self._collect(name, items)
        if waiting is not None:
            return None if self._is_certified(name) else waiting
        with self.progress.frozen():
            if len(self.progress.crowd.latest):
                self._judge(name)
            waiting = self._audit(name)
            if waiting is not None:
                return waiting
            facts = self._kept("round", name, lambda: self._facts(number, name))
        self._hear(RoundEnded(number, facts))
        decision = self._kept("stop", name, self._decide)
        self._hear(Decided(decision["stop"], decision["why"]))
        return None

    def certificate(self) -> dict[str, Any] | None:
        """Return how right the labels are by the audit, None before the first draw."""
        found = self.progress.result if self.ledger.count(DRAW) else None
        return certificate(self.inputs.plan, self.ledger, found, self.inputs.control)

    def _audit(self, name: str) -> Waiting | None:
        """Draw for a certificate that the plan wants; wait for checks as far as these help.

        Where the labels seem good enough, checks are what is missing, and at a desk somebody can
        make them at any time. Else it goes on as soon as nobody is checking.
        """
        found, control = self.progress.result, self.inputs.control
        plan, now = self.inputs.plan, self.steps.label.now()
        goal = plan.stop.certified
        if goal is None or found is None or self.ledger.count(ENDED):
            return None
        made, drawn, n = self.certificate(), last_draw(self.ledger), 0
        if made is not None and drawn is not None:
            more = (made["missing"] or 0) - len(open_items(self.ledger, drawn))
            n = min(made["items"], made["drawn"] + max(0, more))
        if is_due(self.ledger, found, control) or (made and n > made["drawn"]):
            name = f"{name}.{self.ledger.count(DRAW)}"
            n = max(USUAL, n)
            drawn = self._kept(DRAW, name, lambda: draw(found, control, n, plan.seed, now))
            made = self.certificate()
        left = [] if drawn is None else open_items(self.ledger, drawn)
        if not left or made is None or made["certified"] or (made["high"] or 1.0) < goal.target:
            return None
        checked, lease = self.ledger.count(CHECK), MINUTE * plan.page.lease_minutes
        goes_on = checked == self._checked or now - last_active(self.ledger) > lease
        if not plan.crowd.is_served:
            self._checked = checked
        elif made["missing"] and not is_over(self.inputs, self.ledger, now):
            goes_on = self.ledger.totals().left < plan.prices.check_micro
        n = min(made["missing"] or len(left), len(left))
        return None if goes_on else Waiting(0, n, f"{made['goal']}{made['cost']}")

    def _is_certified(self, name: str) -> bool:
        """End within a round, where checks have made certain what the plan asks for."""
        rules = [rule for rule in self.inputs.plan.stop.rules if rule.key == "certified"]
        why = rules[0].holds([{"certificate": self.certificate()}]) if rules else ""
        if why:
            self._release(name)
            self._kept("stop", name, lambda: asdict(ended(rules[0].name, why, {})))
            self._hear(Decided(stop=True, why=why))
        return bool(why)

    def _told(self, decision: Decision) -> dict[str, Any]:
        """Return a decision; at an end without the certificate that the plan wants, say so."""
        goal = self.inputs.plan.stop.certified
        if goal is None or not decision.stop or decision.rule in ("certified", "checks"):
            return asdict(decision)
        found = self.certificate()
        why = found["goal"] if found else f"{goal.shown} is not certain: no item is drawn"
        return asdict(replace(decision, why=f"{decision.why}; {why}"))

    def _pick(self, number: int) -> dict[str, Any]:
        left = self.ledger.totals().left
        if number > 1 and self.inputs.plan.redundancy.by == GAIN:
            with self.progress.frozen():
                found = self._pick_answers(left)
            chosen = {"more": found.more, "whom": found.whom, "models": found.models}
            if found.saves is not None:
                chosen["saves"] = found.saves
        else:
            trained = self.progress.trained if number > 1 else None
            found = self.steps.select.pick(number, self.progress.picked, trained, left)
            chosen = {}
            if number > 1 and found.stopped == POOL:
                chosen = {"more": self._doubtful(left)}
        return {"items": found.items, "rules": found.rules, "stopped": found.stopped, **chosen}

    def _doubtful(self, left: int) -> dict[str, int]:
        """Return items whose labels later answers made doubtful, and how many they then want."""
        with self.progress.frozen():
            crowd, result = self.progress.crowd, self.progress.result
            # Nobody was there for what a round closed
            closed = {i for wave in self.ledger.records("wave").values() for i in wave["closed"]}
            rest = [item for item in self.progress.picked if item not in closed]
            open_ = [] if result is None else self.steps.aggregate.open_items(crowd, result, rest)
        wanted = {row["item"]: row["wanted"] for row in self.ledger.slots().to_pylist()}
        costs = np.cumsum([self.inputs.costs[self.inputs.pool.place[item]] for item in open_])
        paid = int((costs <= left).sum())
        return {item: wanted[item] + 1 for item in open_[:paid]}

    def _pick_answers(self, left: int) -> Picks:
        """Pick items and workers by what their answers promise."""
        crowd, result = self.progress.crowd, self.progress.result
        if result is None:
            return Picks((), (), UNANSWERED)
        asking = AskingByGain(self.inputs, self.ledger)
        return asking.ask(crowd, result, self.steps.label, left)

    def _open(self, name: str, picks: Mapping[str, Any]) -> None:
        """Open the places of a round; those of a round that is over stay as they are."""
        items, more, now = list(picks["items"]), picks.get("more", {}), self.steps.label.now()
        if items:
            least = 1 if "whom" in picks else self.inputs.plan.redundancy.min
            self.ledger.open_batch(name, items, least, now)
        if more and f"{name}.1" not in self.ledger.records("wave"):
            self.ledger.adjust(more, now)

    def _collect(self, name: str, items: list[str]) -> Waiting | None:
        """Get answers, and more of them where the rule is not content; give back what is free."""
        # Adaptive redundancy: every wave asks for one more answer to every open item
        waves = [w for k, w in self.ledger.records("wave").items() if k.startswith(f"{name}.")]
        if waves:  # acting on the last one may be half done
            self._adjust(waves[-1])
        while not waves or waves[-1]["more"]:
            key = f"{name}.{len(waves) + 1}"
            waiting = self.steps.label.collect(key, items, self._hear)
            if waiting is not None:
                return waiting
            self._choose(key)
            closed = {item for wave in waves for item in wave["closed"]}
            with self.progress.frozen():
                waves.append(self._kept("wave", key, partial(self._next_wave, items, closed)))
            self._hear(AskedAgain(len(waves[-1]["more"])))
            self._adjust(waves[-1])
        return None

    def _choose(self, key: str, *, at_end: bool = False) -> None:
        """Let the method be chosen where that is due, and keep it: labels are by it from now on.

        At the end it sees all answers; more may come in, and be seen when the campaign runs again.
        """
        choose = getattr(self.steps.aggregate, "choose_at_end" if at_end else "choose", None)
        last, crowd = self.ledger.last_answer, self.progress.crowd
        if choose is None or not len(crowd.latest):
            return
        made = choose(crowd, last) if at_end else choose(crowd)
        if made is not None:  # else the choice before holds
            self._kept(CHOICE, key, lambda: {**made, SEEN: last})
            self.progress.forget()

    def _next_wave(self, items: list[str], closed: set[str]) -> dict[str, Any]:
        rows = {row["item"]: row for row in self.ledger.slots().to_pylist()}
        short = {i: rows[i]["filled"] for i in items if rows[i]["filled"] < rows[i]["wanted"]}
        crowd, result = self.progress.crowd, self.progress.result
        open_: list[str] = []
        if result is not None:
            rest = [item for item in items if item not in closed and item not in short]
            open_ = self.steps.aggregate.open_items(crowd, result, rest)
        more = {item: rows[item]["wanted"] + 1 for item in open_}
        return {"more": more, "closed": short}

    def _adjust(self, wave: Mapping[str, Any]) -> None:
        wanted = {**wave["more"], **wave["closed"]}
        if wanted:
            self.ledger.adjust(wanted, self.steps.label.now())

    def _release(self, batch: str) -> None:
        """Close the places of a batch that nobody took."""
        rows = [row for row in self.ledger.slots().to_pylist() if row["batch"] == batch]
        wanted = {row["item"]: row["filled"] for row in rows if row["wanted"] != row["filled"]}
        if wanted:
            self.ledger.adjust(wanted, self.steps.label.now())

    def _judge(self, name: str) -> None:
        """Judge the workers, and ask nothing more of those who failed."""
        barred = set(self.ledger.records("bar"))
        body = self._kept(VERDICTS, name, lambda: self._verdicts(barred))
        stay = kept(self.ledger)
        for worker in (one for one in body["drop"] if one not in stay):
            if worker not in barred:
                why = body["workers"][worker]["why"]
                self.ledger.record("bar", worker, {"why": why}, self.steps.label.now())
                self._hear(WorkerDropped(worker, why))
            self.ledger.bar(worker, self.steps.label.now())

    def _verdicts(self, barred: set[str]) -> dict[str, Any]:
        simulated = self.inputs.plan.crowd.source == "simulated"
        n = self._n_places() if simulated else self.progress.crowd.n_workers
        return self.progress.verdicts(barred, n)

    def _facts(self, number: int, name: str) -> dict[str, Any]:
        """Measure what there is after a round."""
        found, totals = self.progress, self.ledger.totals()
        picks = self.ledger.records("picks")[name]
        begin = next(iter(self.ledger.events())).time
        measure = self.steps.evaluate.measure
        evaluation = Evaluation() if found.note else measure(found.model, found.labelled)
        probe = self._kept("probe", name, lambda: {"labels": found.probe()})
        made = self.certificate()
        wrong: dict[str, Any] = {} if made is None else {"certificate": made}
        if self.inputs.plan.select.errors:
            kept = self._kept(ERRORS, name, lambda: self._errors(evaluation))
            wrong |= {"wrong": {"items": len(kept["wrong"]), "of": sum(map(len, kept.values()))}}
        if self.inputs.plan.value.mistake_micro and found.result is not None:
            wrong |= expected_mistakes(self.inputs.plan, found.result)
        return {
            "round": number,
            "picked": len(picks["items"]) + len(picks.get("more", ())),
            "items": len(found.labelled.items),
            "answers": len(found.crowd.latest),
            "spent": totals.spent,
            "cap": totals.cap if self.inputs.plan.is_paid else None,
            "hours": (self.steps.label.now() - begin) / HOUR,
            "score": _plain(evaluation.score),
            "control": _plain(evaluation.control),
            "truth": found.against_truth(),
            "model": None if found.trained is None else found.trained.name,
            "note": found.note,
            "stable": found.stability(number, probe["labels"]),
            "ask_again": self._ask_again(found.crowd, found.result),
            "pool": len(self.inputs.ids) - len(self.inputs.control),
            "right": None if found.result is None else right_share(self.inputs.plan, found.result),
            "warnings": (
                [] if found.result is None else gold_free_warnings(found.result, found.crowd.gold)
            ),
            **wrong,
        }

    def _errors(self, evaluation: Evaluation) -> dict[str, list[str]]:
        """Return the items that the model got right and wrong, by the crowd's labels."""
        names = [self.inputs.ids[n] for n in self.progress.labelled.items.tolist()]
        pairs = list(zip(names, evaluation.wrong or [None] * len(names), strict=True))
        return {
            "right": [name for name, is_wrong in pairs if is_wrong is False],
            "wrong": [name for name, is_wrong in pairs if is_wrong],
        }

    def _ask_again(self, crowd: Crowd, result: Consensus | None) -> dict[str, Any] | None:
        found = None if result is None else value_of_asking(self.inputs.plan, crowd, result, NEXT)
        if found is None:
            return None
        cost = round(found.answers * self.ledger.totals().spent / len(crowd.latest))
        right = {"right": found.right, "right_tokens": found.right / crowd.n_tokens}
        return {"answers": found.answers, "cost": cost, **right}

    def _decide(self) -> dict[str, Any]:
        rounds = list(self.ledger.records("round").values())
        if "certificate" in rounds[-1]:  # plan and checks may be others than when it had stopped
            rounds[-1] = {**rounds[-1], "certificate": self.certificate()}
        return self._told(self.steps.stop.decide(rounds))

    def _hear(self, event: CampaignEvent) -> None:
        """Tell the observer of an event; between two steps, the campaign can stop here."""
        self.on_event(event)
        self.check_stop()

    def check_stop(self) -> None:
        """End here, between two steps, if that was asked for.

        Raises:
            KeyboardInterrupt: It was.
        """
        if self.stop_requested():
            raise KeyboardInterrupt

    def _kept(self, kind: str, name: str, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return a decision as it was kept, or make it and keep it."""
        if name not in self.ledger.records(kind):
            self.check_stop()
            made = make()
            self.check_stop()  # what was interrupted while it was made is not kept
            self.ledger.record(kind, name, made, self.steps.label.now())
        return self.ledger.records(kind)[name]


def _plain(measure: Any) -> dict[str, Any] | None:
    return None if measure is None else asdict(measure)
