"""What `select.errors` does for a campaign: the loop of `goldspan run` on recorded answers.

One half of the articles is the pool, of which a campaign of a small budget picks what it has
labelled; a CRF learns from the labels. It is scored by the gold of the other half, which the
campaign never sees. Nothing but the rule of selection differs between the campaigns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.campaign import Campaign, read_inputs, read_plan
from goldspan.campaign.evaluating import measured
from goldspan.campaign.events import CampaignEvent, RoundEnded
from goldspan.crowd import Crowd, write_crowd
from goldspan.selection import Pool
from goldspan.selection.registry import DEFAULT
from goldspan.simulation.crowd import BEGIN
from goldspan.store import create_ledger
from studies.campaign_ner.play import PER_ANSWER, PER_TOKEN, Point

FILE = "crowd.tsv"
TOLD = "told what the model gets wrong"
UNTOLD = "not told"
RULES: dict[str, dict[str, Any]] = {
    UNTOLD: {"by": DEFAULT},
    TOLD: {"by": DEFAULT, "errors": True},
    f"{TOLD}, to the fourth power": {
        "by": "coverage, then mnlp(errors=4), 10% random",
        "errors": True,
    },
    f"{TOLD}, 30 % cover it": {
        "by": "coverage, then mnlp, 30% coverage(errors_as=target), 10% random",
        "errors": True,
    },
}
"""Sections `select` of the plans, by label."""


@dataclass(frozen=True)
class Size:
    """How large a campaign is.

    Attributes:
        sentences: Of the pool at most, whole articles.
        batch: Sentences of a round.
        money: What may be spent.
        steps: Of the training of every CRF, at most.
    """

    sentences: int = 1500
    batch: int = 60
    money: str = "40"
    steps: int = 40


def halves(crowd: Crowd, size: Size) -> tuple[Crowd, Crowd]:
    """Return the pool and the sentences that the model is scored on, whole articles each."""
    assert crowd.groups is not None
    _, article = np.unique(crowd.groups.to_pylist(), return_inverse=True)
    pool, test = (np.flatnonzero(article % 2 == part)[: size.sentences] for part in (0, 1))
    return crowd.select_items(pool), crowd.select_items(test)


def plan_of(crowd: Crowd, select: Mapping[str, Any], size: Size, seed: int) -> dict[str, Any]:
    """Return the plan of a campaign on the answers of a crowd."""
    tags = crowd.tagset
    return {
        "name": "replay",
        "seed": seed,
        "task": {"types": list(tags.types), "encoding": tags.encoding},
        "pool": {"file": FILE},
        "crowd": {"source": "replay", "answers": FILE},
        "redundancy": {"min": 2, "max": 3},
        "prices": {"per_answer": PER_ANSWER, "per_token": PER_TOKEN},
        "budget": {"money": size.money},
        "select": {**select, "batch": size.batch},
        "aggregate": {"method": "bsc-seq"},
        "model": {"name": "crf", "params": {"max_iter": size.steps}},
        "evaluate": {"folds": 4},
    }


def play_campaign(
    crowd: Crowd, select: Mapping[str, Any], size: Size, seed: int
) -> Iterator[Point]:
    """Run a campaign and score its model after every round.

    Args:
        crowd: Articles with recorded answers and gold.
        select: The section `select` of its plan.
        size: How large it is.
        seed: Of the plan.

    Yields:
        A point per round; `f1` is that of the model on the articles that are not in the pool, and
        `unasked` the sentences of the pool without an answer.
    """
    pool, test = halves(crowd, size)
    gold, others = test.tagset.decode_complete(test.gold_tagged), Pool.of(test)
    found: list[Point] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_crowd(pool.with_gold(None), folder / FILE)
        inputs = read_inputs(read_plan(plan_of(pool, select, size, seed)), folder)
        ledger = create_ledger(
            folder / "campaign.sqlite", name="replay", cap=inputs.plan.cap, currency="",
            tagset=inputs.codec, now=BEGIN,
        )  # fmt: skip

        def hear(event: CampaignEvent) -> None:
            if not isinstance(event, RoundEnded):
                return
            facts, trained = event.facts, campaign.progress.trained
            f1 = 0.0
            if trained is not None:
                tags = trained.predict(others, np.arange(others.n_items))
                f1 = measured(gold, tags, inputs.codec.encoding).value
            unasked = pool.n_items - facts["items"]
            found.append(Point(facts["answers"], facts["spent"], f1, unasked))

        campaign = Campaign(inputs, ledger, on_event=hear)
        campaign.run()
        ledger.close()
    yield from found
