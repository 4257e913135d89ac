"""What it brings to ask doubtful items again when the pool is out, in labels and in the model.

    python -m studies.campaign_ner.doubtful --data ../shared/data

Campaigns that pick by rules, on recorded answers: every fourth article of the news crowd, half of
PICO. Labels of the whole pool are scored, and a CRF on others; only the end differs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from goldspan.aggregation import aggregate
from goldspan.campaign import Campaign, Decision
from goldspan.campaign.outlook import measured
from goldspan.campaign.protocols import Evaluation
from goldspan.crowd import Crowd, read_crowd
from goldspan.selection import Pool
from studies.campaign_ner.play import FILE, PER_ANSWER, PER_TOKEN, Bench, run_replay
from studies.ntoulas.scores import mean_and_error

CROWDS = {"ner_mturk": (4, 2, 3, "bsc-seq+words", 160), "pico": (2, 0, 1, "bsc-mace+words", 8)}
"""By folder: parts of the articles, the pool's and the test's, method, items of a round."""
Moment = tuple[bool, float, float, float]
"""Whether a round asked again, % of the answers so far, F1 of labels and of the model."""


class Quiet:
    """Steps that neither measure nor stop."""

    measure = staticmethod(lambda *_: Evaluation())
    decide = staticmethod(lambda *_: Decision(stop=False))


def play(crowd: Crowd, name: str, seed: int) -> list[Moment]:
    """Run a campaign; return how it stood after every round."""
    n, pools, tests, method, batch = CROWDS[name]
    groups = crowd.item_ids if crowd.groups is None else crowd.groups
    _, part = np.unique(groups.to_pylist(), return_inverse=True)
    pool, test = (crowd.select_items(np.flatnonzero(part % n == k)) for k in (pools, tests))
    gold, others, bench = test.tagset.decode_complete(test.gold_tagged), Pool.of(test), Bench(pool)
    found, tags = list[Moment](), pool.tagset
    plan = {
        "name": "replay", "seed": seed, "pool": {"file": FILE}, "budget": {"money": "1000000"},
        "task": {"types": list(tags.types), "encoding": tags.encoding},
        "crowd": {"source": "replay", "answers": FILE}, "select": {"batch": batch},
        "prices": {"per_answer": PER_ANSWER, "per_token": PER_TOKEN},
        "aggregate": {"method": method}, "model": {"name": "crf", "params": {"max_iter": 40}},
    }  # fmt: skip

    def hear(campaign: Campaign, facts: Mapping[str, Any]) -> None:
        trained, every = campaign.progress.trained, campaign.ledger.crowd("pool").with_gold(None)
        labels = bench.score(aggregate(every, method))
        given = [] if trained is None else trained.predict(others, np.arange(others.n_items))
        model = measured(gold, given, tags.encoding).value if given else 0.0
        again = not [*campaign.ledger.records("picks").values()][-1]["items"]
        found.append((again, 100 * facts["answers"] / len(pool.latest), 100 * labels, 100 * model))

    run_replay(plan, pool, hear, evaluate=Quiet(), stop=Quiet())
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    for name in CROWDS:
        crowd = read_crowd(parser.parse_args().data / name / "crowd.tsv.gz")
        runs = [play(crowd, name, seed) for seed in range(5)]
        out = np.array([[one for one in run if not one[0]][-1][1:] for run in runs])
        print(name, "the pool is out: % of answers, labels, model", out.mean(axis=0).round(2))
        for n, what in enumerate(("% of answers", "labels", "model")):
            gaps = np.array([run[-1][1 + n] for run in runs]) - out[:, n]
            print("  asked again,", what, mean_and_error(gaps.tolist()))
