"""One way to spend money on a crowd's real answers: fixed redundancy, at random, or a campaign."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus, aggregate
from goldspan.campaign import Campaign, Decision, Steps, read_inputs, read_plan
from goldspan.campaign.protocols import CampaignEvent, RoundEnded
from goldspan.crowd import Crowd, write_crowd
from goldspan.money import to_micro
from goldspan.protocols import Runner, Serial
from goldspan.simulation.crowd import BEGIN
from goldspan.store import create_ledger
from goldspan.tagger.base import Tagger
from goldspan.workers.redundancy import RevealedAnswers, score_of

LABELS = "auto"
"""Makes the labels that are scored, whatever was bought."""
PER_ANSWER, PER_TOKEN = "0.02", "0.002"
"""What an answer costs, as in the campaign of the examples."""
QUARTER = 4
"""A campaign asks about one item out of so many first."""
FIRST_ANSWERS = 2
"""So many answers each of these gets."""
FILE = "crowd.tsv"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Point:
    """How good the labels were at a moment.

    Attributes:
        answers: Answers bought.
        money: What they cost, millionths.
        f1: Span F1 of the labels of all items, 0 to 1.
        unasked: Items without an answer, which the text alone labels.
    """

    answers: int
    money: int
    f1: float
    unasked: int


@dataclass(frozen=True, eq=False)
class Bench:
    """The crowd that is replayed.

    Attributes:
        crowd: All its answers; its gold is scored and never asked.
        method: Makes the labels, and says in campaigns what is worth asking.
        runner: Where the labels are made.
    """

    crowd: Crowd
    method: str = LABELS
    runner: Runner = field(default_factory=Serial)

    @cached_property
    def prices(self) -> Ints:
        """What every answer costs, int64 [n_answers], millionths."""
        tokens = np.diff(self.crowd.offsets)[self.crowd.latest.item]
        return np.asarray(to_micro(PER_ANSWER) + to_micro(PER_TOKEN) * tokens, np.int64)

    def revealed(self, seed: int) -> RevealedAnswers:
        """Wind the answers up in a random order."""
        return RevealedAnswers.of(self.crowd, "random", seed)

    def point(self, revealed: RevealedAnswers) -> Point:
        """Label all items by the answers so far, and score the labels."""
        bought = revealed.asked >= 0
        told = np.bincount(revealed.answers.item[bought], minlength=self.crowd.n_items)
        money, unasked = int(self.prices[bought].sum()), int((told == 0).sum())
        blind = revealed.so_far().with_gold(None)
        labels = aggregate(blind, self.method, runner=self.runner)
        return Point(int(bought.sum()), money, self.score(labels), unasked)

    def score(self, labels: Consensus) -> float:
        """Return the span F1 of labels of all items; they were made without any gold."""
        names = self.crowd.item_ids
        assert labels.crowd.item_ids.equals(names)
        return score_of(replace(labels, crowd=labels.crowd.with_gold(self.crowd.gold)))


def play_fixed(bench: Bench, seed: int, k: int) -> Point:
    """Buy the first k answers of every item."""
    revealed = bench.revealed(seed)
    revealed.ask(k)
    return bench.point(revealed)


def play_random(bench: Bench, seed: int, share: float) -> Point:
    """Buy a share of all answers at random."""
    revealed = bench.revealed(seed)
    n = len(revealed.asked)
    chosen = np.random.default_rng(seed).permutation(n)[: round(share * n)]
    revealed.asked[chosen] = 0
    return bench.point(revealed)


@dataclass(frozen=True)
class AfterRounds:
    """Stops a campaign after a number of rounds."""

    n: int

    def decide(self, rounds: Sequence[Mapping[str, Any]]) -> Decision:
        """Decide after a round."""
        return Decision(len(rounds) >= self.n, "rounds", f"{len(rounds)} rounds are over")


def plan_by_gain(bench: Bench, seed: int, n_rounds: int, share: float) -> dict[str, Any]:
    """Return the plan of a campaign that buys a share of all answers, in rounds of equal size.

    Args:
        bench: The crowd.
        seed: Of the plan.
        n_rounds: After the first one, which asks about a random part of the items.
        share: Of all answers, in the end.
    """
    crowd = bench.crowd
    tags, n_first = crowd.tagset, -(-crowd.n_items // QUARTER)
    rest = round(share * len(crowd.latest)) - FIRST_ANSWERS * n_first
    return {
        "name": "replay",
        "seed": seed,
        "task": {"types": list(tags.types), "encoding": tags.encoding},
        "pool": {"file": FILE},
        "crowd": {"source": "replay", "answers": FILE},
        "redundancy": {"by": "gain", "min": FIRST_ANSWERS, "max": crowd.n_workers},
        "prices": {"per_answer": PER_ANSWER, "per_token": PER_TOKEN},
        "budget": {"money": "1000000"},
        "select": {"by": "random", "first": n_first, "batch": max(1, -(-rest // n_rounds))},
        "aggregate": {"method": bench.method},
        "model": {"name": "none"},
    }


def play_campaign(bench: Bench, seed: int, n_rounds: int, share: float) -> Iterator[Point]:
    """Run a campaign that chooses items and workers by gain per price, as `goldspan run` does.

    Args:
        bench: The crowd.
        seed: Of the plan.
        n_rounds: After the first one.
        share: Of all answers, that are bought in the end.

    Yields:
        A point per round.
    """
    plan, found = plan_by_gain(bench, seed, n_rounds, share), list[Point]()

    def hear(campaign: Campaign, facts: Mapping[str, Any]) -> None:
        result = campaign.progress.result
        assert result is not None
        unasked = int((np.diff(result.crowd.by_item.bounds) == 0).sum())
        found.append(Point(facts["answers"], facts["spent"], bench.score(result), unasked))

    run_replay(plan, bench.crowd, hear, stop=AfterRounds(1 + n_rounds))
    yield from found


def run_replay(
    plan: Mapping[str, Any],
    crowd: Crowd,
    hear: Callable[[Campaign, Mapping[str, Any]], None],
    *,
    taggers: Mapping[str, Tagger] | None = None,
    crowds: Mapping[str, Crowd] | None = None,
    **steps: Any,
) -> str:
    """Run a campaign on recorded answers, in a folder of its own.

    Args:
        plan: It names `FILE` as pool and as answers.
        crowd: What that file holds, but for the gold.
        hear: Is told of the facts after every round.
        taggers: Taggers that the plan names, by file.
        crowds: Crowds that it names beside, with their gold, by file.
        steps: Steps in place of the plan's; `runner`: where to work.

    Returns:
        The rule that ended it.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_crowd(crowd.with_gold(None), folder / FILE)
        for file, tagger in (taggers or {}).items():
            tagger.save(folder / file)
        for file, other in (crowds or {}).items():
            write_crowd(other, folder / file)
        inputs = read_inputs(read_plan(plan), folder)
        ledger = create_ledger(
            folder / "campaign.sqlite", name="replay", cap=inputs.plan.cap, currency="",
            tagset=inputs.codec, now=BEGIN,
        )  # fmt: skip

        def told(event: CampaignEvent) -> None:
            if isinstance(event, RoundEnded):
                hear(campaign, event.facts)

        campaign = Campaign(inputs, ledger, Steps.of(inputs, ledger, **steps), on_event=told)
        ended = campaign.run()
        ledger.close()
    assert isinstance(ended, Decision)  # recorded workers are not waited for
    return ended.rule
