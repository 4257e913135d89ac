"""What `select.errors` does for a campaign: the loop of `goldspan run` on recorded answers.

One half of the articles is the pool, of which a campaign of a small budget picks what it has
labelled; a CRF learns from the labels. It is scored by the gold of the other half, which the
campaign never sees. Nothing but the rule of selection differs between the campaigns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from goldspan.campaign import Campaign
from goldspan.campaign.outlook import measured
from goldspan.crowd import Crowd
from goldspan.money import MICRO
from goldspan.selection import Pool
from goldspan.selection.registry import DEFAULT
from studies.campaign_ner.journal import Runs
from studies.campaign_ner.play import FILE, PER_ANSWER, PER_TOKEN, Bench, Point, run_replay
from studies.ntoulas.scores import mean_and_error
from studies.rodrigues.paired import paired_p
from studies.table import Table

UNTOLD = "as by default, not told"
MIXED = "30 % coverage, not told"


@dataclass(frozen=True)
class Size:
    """How large a campaign is.

    Attributes:
        sentences: Of each half of the articles, at most.
        batch: Sentences of a round.
        money: What may be spent.
        steps: Of the training of every CRF, at most.
    """

    sentences: int = 1500
    batch: int = 60
    money: str = "30"
    steps: int = 40


QUICK = Size(sentences=150, batch=20, money="4", steps=10)


@dataclass(frozen=True)
class Selecting:
    """A campaign that picks by a rule.

    Attributes:
        label: Its name.
        by: The rule or schedule, as in a plan.
        errors: Whether it is told what the model gets wrong.
        beside: The campaign that it is compared with; "" for none.
        size: How large the campaign is.
    """

    label: str
    by: str
    errors: bool
    beside: str
    size: Size
    alone: ClassVar[bool] = False
    n_points: ClassVar[int] = 1

    def play(self, bench: Bench, seed: int) -> Iterator[Point]:
        """Run it, point by point."""
        yield from play_selecting(bench.crowd, self, seed)


def selections(*, quick: bool) -> tuple[Selecting, ...]:
    """List the campaigns, the one that is not told first.

    Args:
        quick: Whether it is only to be seen that the study runs.
    """
    size = QUICK if quick else Size()
    share = "coverage, then mnlp, 30% coverage{}, 10% random"
    return (
        Selecting(UNTOLD, DEFAULT, errors=False, beside="", size=size),
        Selecting("mnlp × errors", DEFAULT, errors=True, beside=UNTOLD, size=size),
        Selecting(
            "mnlp × errors⁴", "coverage, then mnlp(errors=4), 10% random", errors=True,
            beside=UNTOLD, size=size,
        ),
        Selecting(MIXED, share.format(""), errors=False, beside=UNTOLD, size=size),
        Selecting(
            "30 % cover the errors, mnlp × errors", share.format("(errors_as=target)"),
            errors=True, beside=MIXED, size=size,
        ),
    )  # fmt: skip


def halves(crowd: Crowd, size: Size) -> tuple[Crowd, Crowd]:
    """Return the pool and the sentences that the model is scored on, whole articles each."""
    assert crowd.groups is not None
    _, article = np.unique(crowd.groups.to_pylist(), return_inverse=True)
    pool, test = (np.flatnonzero(article % 2 == part)[: size.sentences] for part in (0, 1))
    return crowd.select_items(pool), crowd.select_items(test)


def plan_of(crowd: Crowd, way: Selecting, seed: int) -> dict[str, Any]:
    """Return the plan of a campaign on the answers of a crowd."""
    tags, size = crowd.tagset, way.size
    return {
        "name": "replay",
        "seed": seed,
        "task": {"types": list(tags.types), "encoding": tags.encoding},
        "pool": {"file": FILE},
        "crowd": {"source": "replay", "answers": FILE},
        "redundancy": {"min": 2, "max": 3},
        "prices": {"per_answer": PER_ANSWER, "per_token": PER_TOKEN},
        "budget": {"money": size.money},
        "select": {"by": way.by, "errors": way.errors, "batch": size.batch},
        "aggregate": {"method": "bsc-seq"},
        "model": {"name": "crf", "params": {"max_iter": size.steps}},
        "evaluate": {"folds": 4},
    }


def play_selecting(crowd: Crowd, way: Selecting, seed: int) -> Iterator[Point]:
    """Run a campaign and score its model after every round.

    Args:
        crowd: Articles with recorded answers and gold.
        way: How it picks, and how large it is.
        seed: Of the plan.

    Yields:
        A point per round; `f1` is that of the model on the articles that are not in the pool, and
        `unasked` the sentences of the pool without an answer.
    """
    pool, test = halves(crowd, way.size)
    gold, others = test.tagset.decode_complete(test.gold_tagged), Pool.of(test)
    found: list[Point] = []

    def hear(campaign: Campaign, facts: Mapping[str, Any]) -> None:
        f1, trained = 0.0, campaign.progress.trained
        if trained is not None:
            tags = trained.predict(others, np.arange(others.n_items))
            f1 = measured(gold, tags, test.tagset.encoding).value
        unasked = pool.n_items - facts["items"]
        found.append(Point(facts["answers"], facts["spent"], f1, unasked))

    run_replay(plan_of(pool, way, seed), pool, hear)
    yield from found


def selection_table(runs: Runs, campaigns: Sequence[Selecting]) -> Table:
    """Show F1 by round and when the money is spent, beside that of another campaign."""
    by_label = {
        one.label: [points for (_, name), points in runs.items() if name == one.label]
        for one in campaigns
    }
    n_rounds = min(len(points) for points in runs.values())
    rows = []
    for campaign in campaigns:
        own, others = by_label[campaign.label], by_label.get(campaign.beside)
        shown = [100 * float(np.mean([points[n].f1 for points in own])) for n in range(n_rounds)]
        ends = [points[-1] for points in own]
        answers = float(np.mean([point.answers for point in ends]))
        money = float(np.mean([point.money for point in ends])) / MICRO
        f1 = [100 * point.f1 for point in ends]
        ahead: tuple[float | None, ...] = (None, None, None)
        if others is not None:
            plain = [100 * points[-1].f1 for points in others]
            gaps = [a - b for a, b in zip(f1, plain, strict=True)]
            ahead = (*mean_and_error(gaps), paired_p(f1, plain))
        cells = (answers, money, float(np.mean(f1)), campaign.beside, *ahead)
        rows.append((campaign.label, len(own), *shown, *cells))
    rounds = (f"round {n + 1}" for n in range(n_rounds))
    ends_of = ("answers at the end", "money", "F1 at the end")
    return Table(
        "Told what the model gets wrong: F1 of the model on the articles that are not in the pool",
        ("rule of selection", "seeds", *rounds, *ends_of, "compared with", "ahead by", "s.e.", "p"),
        tuple(rows),
        {"answers at the end": 0, "p": ".1g"},
    )
