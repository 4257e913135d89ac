"""How far the forecast of what a campaign costs until its target can be trusted.

Campaigns of `goldspan run` go on until their rule `stop.target` ends them. What they had spent then
is the truth; what the forecast (`goldspan.campaign.outlook`) said after the rounds in which a
third, half and two thirds of it were spent is held against it. The campaign ends by what it
measures itself: no gold is looked at.

Two crowds of people and models are asked: the recorded people of the NER crowd beside a tagger that
learned from 200 sentences of other articles, and simulated people of several qualities beside a
model that errs by type. Every seed draws other sentences, in another order. A third campaign asks
the simulated crowd and is measured on 2,000 sentences with gold, of other articles than its pool's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from goldspan.campaign import Campaign
from goldspan.campaign.outlook import LEVEL, way_to_target
from goldspan.crowd import Crowd
from goldspan.money import MICRO
from goldspan.runners import Threads
from goldspan.simulation import simulate_crowd
from goldspan.tagger import CRF
from studies import journal
from studies.campaign_ner.play import FILE, PER_ANSWER, PER_TOKEN, run_replay
from studies.people_models import CHEAP, FAMILY, MACHINES, Bench, read_crowds
from studies.table import Study, Table, check_repeats

REPEATS = 20
RECORDED, SIMULATED = "recorded people and a tagger", "simulated people and a model"
TESTED = "the same, measured by a file"
"""Simulated people and a model, in a campaign that has a file of sentences with gold."""
CROWDS = (RECORDED, SIMULATED, TESTED)
TEST, TEST_SENTENCES, QUICK_TEST = "test.conll", 2_000, 100
SENTENCES, BATCH = 1_500, 30
"""Of the pool, and of a round."""
QUICK_SENTENCES, QUICK_BATCH, QUICK_TARGET = 200, 20, 0.05
TARGETS: Mapping[str, float] = {RECORDED: 0.4, SIMULATED: 0.4, TESTED: 0.4}
"""What is to be reached: a round number that campaigns of a seed beyond the study's had reached
after a third of such a pool."""
TEAM = {
    "expert": "flip(0.02)",
    "careful": "flip(0.05) + misses(0.1)",
    "usual 1": "flip(0.08) + misses(0.2)",
    "usual 2": "flip(0.08) + wrong_type(0.2)",
    "hasty": "flip(0.15) + misses(0.4)",
}
"""People of the simulated crowd."""
MODEL = {
    "ORG": "misses(0.3, type=ORG)", "MISC": "wrong_type(0.5, type=MISC)", "": "late(0.1)",
}  # fmt: skip
"""Habits of the model, by the type that they need."""
MOMENTS = (1 / 3, 1 / 2, 2 / 3)
"""Shares of the true cost after which the forecast is asked."""


@dataclass(frozen=True)
class Played:
    """A campaign that went on until it ended.

    Attributes:
        rounds: After every round `items`, `pool`, `spent` (millionths), `answers` and `control`.
        rule: The rule that ended it.
    """

    rounds: list[dict[str, Any]]
    rule: str


class Journal(journal.Journal[Played]):
    """Campaigns by seed and crowd."""

    label = "crowd"
    version: ClassVar[int] = 1

    def plain(self, run: Played) -> dict[str, Any]:
        """Return a campaign as values that JSON can hold."""
        return {"rounds": run.rounds, "rule": run.rule}

    def made(self, found: Mapping[str, Any]) -> Played:
        """Make a campaign of what a line holds."""
        return Played(found["rounds"], found["rule"])


def play(bench: Bench, crowd: str, seed: int, *, quick: bool = False) -> Played:
    """Run a campaign until it ends, by its target or with the pool."""
    n, batch = (QUICK_SENTENCES, QUICK_BATCH) if quick else (SENTENCES, BATCH)
    rng = np.random.default_rng([seed, len(crowd)])
    chosen = np.zeros(bench.crowd.n_items, np.bool_)
    told = np.flatnonzero(np.diff(bench.crowd.by_item.bounds) >= 2)
    chosen[rng.permutation(told)[:n]] = True
    asked = bench.crowd.select_items(chosen)
    taggers, tests = dict[str, CRF](), dict[str, Crowd]()
    workers: list[dict[str, Any]]
    machine: dict[str, Any]
    if crowd == RECORDED:
        workers = [{"id": name, "kind": "replay"} for name in asked.worker_ids.to_pylist()]
        machine = {"id": MACHINES[0], "kind": "tagger", "model": "machine.goldspan"}
        taggers["machine.goldspan"] = bench.taggers[0]
    else:
        there = {"", *asked.tagset.types}
        habits = " + ".join(habit for needed, habit in MODEL.items() if needed in there)
        asked = simulate_crowd(asked, {**TEAM, "model": habits}, seed=seed)
        workers = [{"id": name, "kind": "replay"} for name in TEAM]
        workers[0]["prices"] = {"per_answer": "0.2"}
        machine = {"id": "model", "kind": "replay"}
    machine |= {"family": FAMILY, "prices": {"per_answer": CHEAP}}
    plan = {
        "name": "forecast",
        "seed": seed,
        "task": {"types": list(asked.tagset.types), "encoding": asked.tagset.encoding},
        "pool": {"file": FILE},
        "crowd": {"answers": FILE, "workers": [machine, *workers]},
        "redundancy": {"min": 3, "max": 3},
        "prices": {"per_answer": PER_ANSWER, "per_token": PER_TOKEN},
        "budget": {"money": "1000000"},
        "select": {"by": "random", "batch": batch},
        "aggregate": {"method": "bsc-seq"},
        "model": {"name": "hmm"},
        "stop": {"target": QUICK_TARGET if quick else TARGETS[crowd]},
    }
    if crowd == TESTED:
        first = np.arange(bench.others.n_items) < (QUICK_TEST if quick else TEST_SENTENCES)
        tests[TEST] = bench.others.select_items(first)
        plan["evaluate"] = {"by": "test", "file": TEST}
    rounds = list[dict[str, Any]]()

    def hear(_: Campaign, facts: Mapping[str, Any]) -> None:
        rounds.append({k: facts[k] for k in ("items", "pool", "spent", "answers", "control")})

    return Played(
        rounds, run_replay(plan, asked, hear, taggers=taggers, crowds=tests, runner=bench.runner)
    )


@dataclass(frozen=True)
class Forecast:
    """What was forecast at a moment of a campaign, as shares of the true cost.

    Attributes:
        asked: Round after which it was asked; the true cost is what was spent after the last one.
        low: Lower end of the interval of all that will be spent; infinite for "never".
        middle: Its middle.
        high: Its upper end.
    """

    asked: int
    low: float
    middle: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the true cost is in the interval, but for rounding."""
        return self.low <= 1 + 1e-6 and self.high >= 1 - 1e-6

    @property
    def width(self) -> float:
        """Width of the interval; infinite where its upper end is."""
        return self.high - self.low if np.isfinite(self.high) else float("inf")


def forecast_at(run: Played, target: float, share: float, in_a_row: int = 2) -> Forecast | None:
    """Return the forecast after the first round with a share of the true cost; None: too early."""
    truth = run.rounds[-1]["spent"]
    for n, one in enumerate(run.rounds[:-1], start=1):
        if one["spent"] >= share * truth:
            found = way_to_target(run.rounds[:n], target, in_a_row=in_a_row)
            if found is None:
                return None
            every = (found.low, found.middle, found.high)
            ends = [np.inf if x is None else (one["spent"] + x) / truth for x in every]
            return Forecast(n, *map(float, ends))
    return None


def study(
    data: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    repeats: int | None = None,
    quick: bool = False,
    state: str | Path | None = None,
    so_far: bool = False,
    threads: int | None = None,
) -> Study:
    """Make the tables.

    Args:
        data: The folder that holds `ner_mturk` and `conll2003`.
        progress: Told how many of all campaigns are over.
        repeats: Seeds; 20 by default, one where it must be quick.
        quick: Whether it is only to be seen that the study runs.
        state: File of finished campaigns, or None.
        so_far: Make the tables of the repeats that are finished, and do no run.
        threads: How many; None is all cores.

    Raises:
        InputError: The data are not there, or `repeats` is no whole number of at least 1.
    """
    check_repeats(repeats)
    times = repeats or (1 if quick else REPEATS)
    bench = Bench(*read_crowds(data, "forecast"), runner=Threads(threads))
    path = None if state is None else Path(state)
    told = None
    if so_far:
        kept = _journal(bench, path, quick=quick).runs
        times, told = journal.whole_repeats(kept, _keys(range(times)))
    runs = _carry_out(bench, range(times), path, progress, quick=quick)
    size, batch = (QUICK_SENTENCES, QUICK_BATCH) if quick else (SENTENCES, BATCH)
    notes = [
        (
            f"Pools of {size} sentences, {batch} a round at random, three answers each (the "
            "cheapest are the machine's), labels by bsc-seq, an HMM measured by cross-validation. "
            "The campaign ends when the lower bound of its F1 has been at the target for two "
            "rounds. An interval is to hold what was spent then in "
            f"{LEVEL:.0%} of all campaigns."
        ),
        "Ended by: other campaigns ran out of sentences, and their true cost is not known.",
    ]
    notes = [told, *notes] if told else notes
    if quick:
        notes.insert(0, "QUICK: part of the sentences. It shows that the study runs, no result.")
    return Study("The forecast cost to a target", [forecast_table(runs, quick=quick)], notes)


def forecast_table(runs: Mapping[journal.Key, Played], *, quick: bool = False) -> Table:
    """Show how often the interval held, and how wide it was."""
    rows = []
    for crowd in CROWDS:
        own = [run for (_, name), run in runs.items() if name == crowd]
        ended = [run for run in own if run.rule == "target"]
        costs = [run.rounds[-1]["spent"] / MICRO for run in ended]
        for share in MOMENTS:
            target = QUICK_TARGET if quick else TARGETS[crowd]
            asked = [forecast_at(run, target, share) for run in ended]
            known = [one for one in asked if one is not None]
            width = float(np.median([100 * one.width for one in known])) if known else None
            off = float(np.median([100 * (one.middle - 1) for one in known])) if known else None
            rows.append((
                crowd, target, len(own), len(ended), float(np.mean(costs)) if costs else None,
                100 * share, len(known), sum(one.holds for one in known), width, off,
            ))  # fmt: skip
    columns = (
        "crowd", "target", "campaigns", "ended by it", "true cost, mean", "% of it spent",
        "forecasts", "interval holds", "median width, % of the true cost",
        "median error of the middle, %",
    )  # fmt: skip
    digits = {columns[5]: 0, columns[8]: 0, columns[9]: 0}
    return Table("Forecast and truth", columns, tuple(rows), digits)


def _carry_out(
    bench: Bench, seeds: Sequence[int], state: Path | None,
    told: Callable[[int, int], None] | None, *, quick: bool,
) -> dict[journal.Key, Played]:  # fmt: skip
    """Run the campaigns that are not kept yet."""
    book, keys = _journal(bench, state, quick=quick), _keys(seeds)
    for done, (seed, crowd) in enumerate(keys, start=1):
        if (seed, crowd) not in book.runs:
            book.add((seed, crowd), play(bench, crowd, seed, quick=quick))
        if told:
            told(done, len(keys))
    return {key: book.runs[key] for key in keys}


def _journal(bench: Bench, state: Path | None, *, quick: bool) -> Journal:
    """Return the campaigns that are kept of these data and parameters."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (bench.crowd.latest.codes, bench.crowd.latest.worker, bench.others.offsets):
        digest.update(np.ascontiguousarray(part).tobytes())
    facts = repr([Journal.version, quick, SENTENCES, BATCH, TEAM, MODEL, digest.hexdigest()])
    return Journal(state, {
        crowd: hashlib.sha256(f"{crowd}{TARGETS[crowd]}{facts}".encode()).hexdigest()[:32]
        for crowd in CROWDS
    })  # fmt: skip


def _keys(seeds: Sequence[int]) -> list[journal.Key]:
    return [(seed, crowd) for seed in seeds for crowd in CROWDS]
