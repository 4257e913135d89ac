"""The loop: pick → ask → aggregate → ask again where in doubt → train → evaluate → go on or stop.

A state machine over the ledger. Every decision is kept in the ledger before it is acted on, and
every act can be repeated: batches have names, answers have keys. So after a kill at any moment the
loop runs from the start, finds what was decided, repeats the act that may be half done, and goes on
as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any

from goldspan.aggregate import Consensus
from goldspan.campaign.aggregating import right_share, value_of_asking
from goldspan.campaign.awaiting import HOUR
from goldspan.campaign.changing import begin, reopened
from goldspan.campaign.judging import judge, kept
from goldspan.campaign.picking import MONEY, POOL
from goldspan.campaign.progress import Progress
from goldspan.campaign.protocols import Decision, Evaluation, Picks, Waiting
from goldspan.campaign.setting import Setting
from goldspan.campaign.steps import Steps
from goldspan.campaign.stopping import NEXT, ended
from goldspan.crowd import Crowd
from goldspan.protocols import Ledger

CONTROL = "control"
"""The batch of the control questions."""
PLACES = 1_000
"""Places of a control question where the number of workers is not known."""
_WHY = {
    MONEY: "the money does not pay for another item",
    POOL: "no item of the pool is left to pick",
}
Tell = Callable[[str], None]


class Campaign:
    """A campaign that runs over a ledger.

    Args:
        setting: The plan and its files.
        ledger: Where everything is kept.
        steps: The six steps; the plan's by default.
        tell: Who is told, a line at a time.
    """

    def __init__(
        self, setting: Setting, ledger: Ledger, steps: Steps | None = None, tell: Tell | None = None
    ) -> None:
        self.setting, self.ledger = setting, ledger
        self.steps = steps or Steps.of(setting, ledger)
        self.tell: Tell = tell or (lambda _: None)
        self.progress = Progress(setting, ledger, self.steps)
        self._has_begun = False
        self._opened = ""

    def run(self) -> Waiting | Decision:
        """Run until the campaign stops, or until answers from outside are awaited.

        Raises:
            InputError: The ledger holds another campaign, or this one with a plan that changed in
                more than its limits.
        """
        with self._alone():
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
        with self._alone():
            self._begin()

    def _alone(self) -> AbstractContextManager[Any]:
        """Keep other processes out, where several can open the ledger."""
        alone: Callable[[], AbstractContextManager[Any]]
        alone = getattr(self.ledger, "alone", nullcontext)
        return alone()

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
                return Decision(**decision)
        raise AssertionError

    def _last_decision(self, number: int, name: str) -> dict[str, Any]:
        """Give what was decided after a round, by the plan as it is now if that changed since."""
        change = reopened(self.ledger).get(name)
        if change is None:
            return self.ledger.records("stop")[name]
        # Where there was nothing to pick, the next round looks again.
        decision = self._kept("stop", f"{name}.{change}", lambda: {**self._decide(), "facts": {}})
        if not decision["stop"] and f"r{number + 1:03d}" not in self.ledger.records("picks"):
            places = dict.fromkeys(self.setting.control, self._n_places())
            if places:
                self.ledger.adjust(places, self.steps.label.now())
        return decision

    def _begin(self) -> None:
        """Fill the pool, and ask nothing of another campaign's ledger."""
        if self._has_begun:  # a pool is large, and a campaign that waits runs often
            return
        now = self.steps.label.now()
        for line in begin(self.setting, self.ledger, now):
            self.tell(line)
        stay = kept(self.ledger)
        for worker in self.ledger.records("bar"):  # decided, and perhaps not done
            if worker not in stay:
                self.ledger.bar(worker, now)
        if self.setting.control:
            self.ledger.set_gold(self.setting.control, now, control=True)
            self.ledger.open_batch(CONTROL, list(self.setting.control), self._n_places(), now)
        self._has_begun = True

    def _n_places(self) -> int:
        workers = self.setting.plan.crowd.workers
        if self.setting.plan.crowd.source != "simulated":
            return PLACES
        from goldspan.simulate import read_team

        return len(read_team(list(workers)))

    def _round(self, number: int, name: str) -> Waiting | None:
        """Do a round as far as it is not done."""
        picks = self._kept("picks", name, lambda: self._pick(number))
        items = list(picks["items"])
        if not items:
            why = _WHY.get(picks["stopped"], picks["stopped"])
            self._kept("stop", name, lambda: asdict(ended(picks["stopped"], why, {})))
            return None
        if self._opened != name:  # as above: whoever answers would wait meanwhile
            self.tell(f"round {number}: {len(items)} items to label")
            least = self.setting.plan.redundancy.min
            self.ledger.open_batch(name, items, least, self.steps.label.now())
            self._opened = name
        waiting = self._collect(name, items)
        if waiting is not None:
            return waiting
        with self.progress.still():
            if self.progress.crowd.n_items:
                self._judge(name)
            facts = self._kept("round", name, lambda: self._facts(number, name))
        self.tell(_line(number, facts))
        if facts.get("note"):
            self.tell(f"  no model: {facts['note']}")
        self._kept("stop", name, self._decide)
        return None

    def _pick(self, number: int) -> dict[str, Any]:
        trained = self.progress.trained if number > 1 else None
        left = self.ledger.totals().left
        found: Picks = self.steps.select.pick(number, self.progress.picked, trained, left)
        return {"items": found.items, "rules": found.rules, "stopped": found.stopped}

    def _collect(self, name: str, items: list[str]) -> Waiting | None:
        """Get answers, and more of them where the rule is not content; give back what is free.

        A wave asks for one answer more about every open item. What could not be filled in a wave –
        money short, nobody left – is closed.
        """
        waves = [w for k, w in self.ledger.records("wave").items() if k.startswith(f"{name}.")]
        if waves:  # acting on the last one may be half done
            self._adjust(waves[-1])
        while not waves or waves[-1]["more"]:
            key = f"{name}.{len(waves) + 1}"
            waiting = self.steps.label.collect(key, items)
            if waiting is not None:
                return waiting
            closed = {item for wave in waves for item in wave["closed"]}
            with self.progress.still():
                waves.append(self._kept("wave", key, partial(self._next_wave, items, closed)))
            self._adjust(waves[-1])
        return None

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
        body = self._kept("verdicts", name, lambda: self._verdicts(barred))
        stay = kept(self.ledger)
        for worker in (one for one in body["drop"] if one not in stay):
            if worker not in barred:
                why = body["workers"][worker]["why"]
                self.tell(f"  {worker} is asked no more: {why}")
                self.ledger.record("bar", worker, {"why": why}, self.steps.label.now())
            self.ledger.bar(worker, self.steps.label.now())

    def _verdicts(self, barred: set[str]) -> dict[str, Any]:
        crowd, result = self.progress.crowd, self.progress.result
        assert result is not None  # there are answers
        simulated = self.setting.plan.crowd.source == "simulated"
        n = self._n_places() if simulated else crowd.n_workers
        found: dict[str, Any] = judge(self.setting.plan, crowd, result, barred, n)
        return found

    def _facts(self, number: int, name: str) -> dict[str, Any]:
        """Measure what there is after a round."""
        found, totals = self.progress, self.ledger.totals()
        begin = next(iter(self.ledger.events())).time
        measure = self.steps.evaluate.measure
        evaluation = Evaluation() if found.note else measure(found.model, found.labelled)
        probe = self._kept("probe", name, lambda: {"labels": found.probe()})
        return {
            "round": number,
            "picked": len(self.ledger.records("picks")[name]["items"]),
            "items": len(found.labelled.items),
            "answers": len(found.crowd.latest),
            "spent": totals.spent,
            "cap": totals.cap if self.setting.plan.is_paid else None,
            "hours": (self.steps.label.now() - begin) / HOUR,
            "score": _plain(evaluation.score),
            "control": _plain(evaluation.control),
            "truth": found.against_truth(),
            "model": None if found.trained is None else found.trained.name,
            "note": found.note,
            "stable": found.stability(number, probe["labels"]),
            "ask_again": self._ask_again(found.crowd, found.result),
            "pool": len(self.setting.ids) - len(self.setting.control),
            "right": None if found.result is None else right_share(found.result),
        }

    def _ask_again(self, crowd: Crowd, result: Consensus | None) -> dict[str, Any] | None:
        found = None if result is None else value_of_asking(self.setting.plan, crowd, result, NEXT)
        if found is None:
            return None
        cost = round(found.answers * self.ledger.totals().spent / len(crowd.latest))
        right = {"right": found.right, "right_tokens": found.right / crowd.n_tokens}
        return {"answers": found.answers, "cost": cost, **right}

    def _decide(self) -> dict[str, Any]:
        return asdict(self.steps.stop.decide(list(self.ledger.records("round").values())))

    def _kept(self, kind: str, name: str, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Give a decision as it was kept, or make it and keep it."""
        if name not in self.ledger.records(kind):
            self.ledger.record(kind, name, make(), self.steps.label.now())
        return self.ledger.records(kind)[name]


def _plain(measure: Any) -> dict[str, Any] | None:
    return None if measure is None else asdict(measure)


def _line(number: int, facts: Mapping[str, Any]) -> str:
    from goldspan.money import from_micro

    score = facts["score"]
    shown = "" if score is None else f", {facts['model']} {100 * score['value']:.1f}"
    if score is not None:
        shown += f" ({100 * score['low']:.1f} to {100 * score['high']:.1f})"
    answers = f"{facts['items']} items, {facts['answers']} answers"
    if facts["cap"] is not None:
        answers += f", spent {from_micro(facts['spent'])} of {from_micro(facts['cap'])}"
    return f"round {number}: {answers}{shown}"
