"""People and a machine in one crowd: what a weak model adds to people, and what its sisters do.

The people are those of the NER crowd of Rodrigues et al. The machine is a CRF that learned from 200
sentences of other articles; its sisters learned from as many drawn from these with replacement, as
prompts of one model differ. `auto` makes all labels and is told which column is a model: what an
undeclared one does is measured by the study purity. Gold is only scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from goldspan.aggregation import aggregate
from goldspan.campaign import Campaign
from goldspan.crowd import Answers, Crowd, read_crowd
from goldspan.errors import InputError
from goldspan.money import MICRO
from goldspan.protocols import Runner, Serial
from goldspan.runners import Threads
from goldspan.tagger import CRF
from goldspan.workers.redundancy import score_of
from studies import journal
from studies.campaign_ner.play import FILE, PER_ANSWER, PER_TOKEN, QUARTER, AfterRounds, run_replay
from studies.purity.crowds import fewer_answers, with_workers
from studies.table import Study, Table, check_repeats

REPEATS, QUICK_SENTENCES = 5, 300
LEARNED = 200
"""Sentences that the machine learned from."""
MACHINES = ("machine", "sister 1", "sister 2")
FAMILY = "one model"
"""Of the machine, in the campaign."""
SEED = 20
PEOPLE, PLUS_ONE, PLUS_SISTERS = (
    "two people",
    "two people and the machine",
    "two people, the machine and two sisters",
)
ALL, ALL_PLUS, ALL_SISTERS = (
    "all people",
    "all people and the machine",
    "all people, the machine and two sisters",
)
PLAIN = "bsc-seq"
"""A method without text, beside `auto`."""
TEAMS = (PEOPLE, PLUS_ONE, PLUS_SISTERS, ALL, ALL_PLUS, ALL_SISTERS)
CAMPAIGN = "campaign by gain: the machine and people"
RUNS = (*TEAMS, CAMPAIGN)
ALONE = (ALL, ALL_PLUS, ALL_SISTERS)
"""One seed is enough for these: nothing is drawn."""
CHEAP = "0.0001"
"""What an answer of the machine costs in the campaign; those of people as in its examples."""
ROUNDS, SHARE = 3, 0.25
"""Rounds with people, and the share of the money of all people's answers that they may spend."""


@dataclass(frozen=True)
class Point:
    """How good labels were, and what they cost.

    Attributes:
        f1: Span F1 of all sentences, 0 to 1.
        share: Of the money that all people's answers cost.
    """

    f1: float
    share: float


class Journal(journal.Journal[tuple[Point, ...]]):
    """Runs: points by seed and team."""

    label = "team"
    version: ClassVar[int] = 1

    def plain(self, run: tuple[Point, ...]) -> dict[str, Any]:
        """Return the points as values that JSON can hold."""
        return {"points": [asdict(point) for point in run]}

    def made(self, found: Mapping[str, Any]) -> tuple[Point, ...]:
        """Make the points of what a line holds."""
        return tuple(Point(**point) for point in found["points"])


@dataclass(frozen=True, eq=False)
class Bench:
    """People, and the text that machines may learn from.

    Attributes:
        crowd: All people's answers; gold is only scored.
        others: Sentences of other articles with gold.
        method: Makes the labels.
        runner: Where.
    """

    crowd: Crowd
    others: Crowd
    method: str = "auto"
    runner: Runner = Serial()  # noqa: RUF009 - it has no state

    @cached_property
    def taggers(self) -> list[CRF]:
        """The machine and its sisters."""
        seen = {tuple(words) for words in self.crowd.tokens_list}
        words, tags = self.others.tokens_list, _gold(self.others)
        fresh = [n for n in range(len(words)) if words[n] and tuple(words[n]) not in seen]
        rng = np.random.default_rng(SEED)
        own = rng.permutation(fresh)[:LEARNED]
        draws = [own, *(rng.choice(own, len(own)) for _ in MACHINES[1:])]
        return [CRF().fit([words[n] for n in draw], [tags[n] for n in draw]) for draw in draws]

    @cached_property
    def machines(self) -> dict[str, Answers]:
        """What the machine and its sisters answer to everything, by name."""
        found = {}
        for name, tagger in zip(MACHINES, self.taggers, strict=True):
            tags = tagger.predict(self.crowd.tokens_list)
            codes = np.array([self.crowd.tagset.index[t] for row in tags for t in row], np.int16)
            n = self.crowd.n_items
            item = np.arange(n, dtype=np.int32)
            found[name] = Answers(
                item, np.zeros(n, np.int32), self.crowd.offsets, codes, np.zeros(n, np.int16)
            )
        return found

    def score(self, crowd: Crowd, method: str, models: tuple[str, ...]) -> float:
        """Label a crowd of the same items without its gold, and score the labels."""
        more: dict[str, Any] = {"models": models} if method == "auto" else {}
        labels = aggregate(crowd.with_gold(None), method, runner=self.runner, **more)
        return self.scored(labels)

    def scored(self, labels: Any) -> float:
        """Score labels of the same items."""
        return score_of(replace(labels, crowd=labels.crowd.with_gold(self.crowd.gold)))

    def play(self, team: str, seed: int) -> tuple[Point, ...]:
        """Have a team label everything: by `auto`, or what it is, and by `PLAIN`."""
        if team == CAMPAIGN:
            return play_campaign(self, seed)
        people = self.crowd if team in ALONE else fewer_answers(self.crowd, 2, seed)
        share = len(people.latest) / len(self.crowd.latest)
        is_three = team in (PLUS_SISTERS, ALL_SISTERS)
        names = () if team in (PEOPLE, ALL) else MACHINES if is_three else MACHINES[:1]
        crowd = with_workers(people, {name: self.machines[name] for name in names})
        return tuple(Point(self.score(crowd, m, names), share) for m in (self.method, PLAIN))


def play_campaign(bench: Bench, seed: int) -> tuple[Point, ...]:
    """Run a campaign of `goldspan run` by gain: the machine, and two people, about a quarter first.

    With the machine alone in the first round nothing could be judged: no two people overlap.
    """
    crowd, points = bench.crowd, list[Point]()
    tokens = np.diff(crowd.offsets)[crowd.latest.item]
    everything = float(PER_ANSWER) * len(tokens) + float(PER_TOKEN) * float(tokens.sum())
    people = [{"id": name, "kind": "replay"} for name in crowd.worker_ids.to_pylist()]
    machine = {
        "id": MACHINES[0], "kind": "tagger", "model": "machine.goldspan", "family": FAMILY,
        "prices": {"per_answer": CHEAP},
    }  # fmt: skip
    plan = {
        "name": "people-and-models",
        "seed": seed,
        "task": {"types": list(crowd.tagset.types), "encoding": crowd.tagset.encoding},
        "pool": {"file": FILE},
        "crowd": {"answers": FILE, "workers": [machine, *people]},
        "redundancy": {"by": "gain", "min": 3, "max": len(people)},
        "prices": {"per_answer": PER_ANSWER, "per_token": PER_TOKEN},
        "budget": {"money": f"{SHARE * everything:.2f}"},
        "select": {
            "by": "random", "first": -(-crowd.n_items // QUARTER),
            "batch": max(1, int(SHARE * len(tokens) / ROUNDS)),
        },
        "aggregate": {"method": bench.method},
        "model": {"name": "none"},
    }  # fmt: skip

    def hear(campaign: Campaign, facts: Mapping[str, Any]) -> None:
        money = facts["spent"] / MICRO
        points.append(Point(bench.scored(campaign.progress.result), money / everything))

    taggers = {"machine.goldspan": bench.taggers[0]}
    run_replay(plan, crowd, hear, taggers=taggers, stop=AfterRounds(1 + 2 * ROUNDS))
    return tuple(points)


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
        progress: Told how many of all runs are over.
        repeats: Seeds; 5 by default, one where it must be quick.
        quick: Whether it is only to be seen that the study runs.
        state: File of finished runs, or None.
        so_far: Make the tables of the repeats that are finished, and do no run.
        threads: How many; None is all cores.

    Raises:
        InputError: The data are not there, or `repeats` is no whole number of at least 1.
    """
    check_repeats(repeats)
    times = repeats or (1 if quick else REPEATS)
    crowd, others = read_crowds(data)
    if quick:
        crowd = crowd.select_items(np.arange(crowd.n_items) < QUICK_SENTENCES)
    bench = Bench(crowd, others, "bsc-seq" if quick else "auto", Threads(threads))
    kept, told = None if state is None else Path(state), None
    if so_far:
        times, told = journal.whole_repeats(_journal(bench, kept).runs, _keys(times))
    runs = _carry_out(bench, times, kept, progress)
    alone = 100 * bench.scored(_alone(bench))
    notes = [
        (
            f"{crowd.n_items} sentences, {len(crowd.latest)} answers. The machine alone: F1 "
            f"{alone:.1f}. All labels are made by {bench.method}."
        ),
        (
            "Two people: two of those who labelled the sentence, another draw for every seed. "
            "Above people: above the same people without a machine; least of a seed: the worst "
            "such difference."
        ),
        "Span F1 by conlleval's reading; gold is only scored.",
        (
            'The campaign is one of `goldspan run` with redundancy.by = "gain": the machine and '
            f"two people label a random quarter first; then the machine, for {CHEAP} a sentence, "
            f"and people are asked until {SHARE:.0%} of what all people's answers cost is spent."
        ),
    ]
    notes = [told, *notes] if told else notes
    if quick:
        notes.insert(0, "QUICK: part of the sentences. It shows that the study runs, no result.")
    return Study(
        "People and a machine",
        [*team_tables(runs, times, bench.method), campaign_table(runs)],
        notes,
    )


def team_tables(
    runs: Mapping[journal.Key, tuple[Point, ...]], times: int, method: str
) -> list[Table]:
    """Show the teams beside the people alone, a table for each method."""
    columns = ("team", "seeds", "F1, mean", "least", "most", "above people", "least of a seed")
    tables = []
    for place, name in enumerate((method, PLAIN)):
        rows = []
        for team in TEAMS:
            seeds = [0] if team in ALONE else [*range(times)]
            beside = ALL if team in ALONE else PEOPLE
            f1 = [100 * runs[seed, team][place].f1 for seed in seeds]
            plain = [100 * runs[seed, beside][place].f1 for seed in seeds]
            gaps = [a - b for a, b in zip(f1, plain, strict=True)]
            gap = (None, None) if team == beside else (float(np.mean(gaps)), min(gaps))
            rows.append((team, len(seeds), float(np.mean(f1)), min(f1), max(f1), *gap))
        tables.append(
            Table(f"What a machine adds to people, labels by {name}", columns, tuple(rows))
        )
    return tables


def campaign_table(runs: Mapping[journal.Key, tuple[Point, ...]]) -> Table:
    """Show the rounds of the campaigns."""
    full = 100 * runs[0, ALL][0].f1
    own = [points for (_, team), points in runs.items() if team == CAMPAIGN]
    rows = []
    for number, stage in enumerate(zip(*own, strict=False), start=1):
        f1 = [100 * point.f1 for point in stage]
        share = 100 * float(np.mean([point.share for point in stage]))
        mean = float(np.mean(f1))
        rows.append((number, len(f1), share, mean, min(f1), max(f1), mean - full))
    columns = (
        "round", "seeds", "% of the money", "F1, mean", "least", "most", "above all people"
    )  # fmt: skip
    return Table(
        "A campaign by gain: the machine, and people where it is in doubt",
        columns, tuple(rows), {"% of the money": 1},
    )  # fmt: skip


def _carry_out(
    bench: Bench, times: int, state: Path | None, told: Callable[[int, int], None] | None
) -> dict[journal.Key, tuple[Point, ...]]:
    """Do the runs that are not kept yet."""
    book, keys = _journal(bench, state), _keys(times)
    for done, (seed, team) in enumerate(keys, start=1):
        if (seed, team) not in book.runs:
            book.add((seed, team), bench.play(team, seed))
        if told:
            told(done, len(keys))
    return {key: book.runs[key] for key in keys}


def _journal(bench: Bench, state: Path | None) -> Journal:
    """Return the runs that are kept of these data and parameters."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (bench.crowd.latest.codes, bench.crowd.latest.worker, bench.others.offsets):
        digest.update(np.ascontiguousarray(part).tobytes())
    facts = repr([Journal.version, bench.method, LEARNED, SEED, ROUNDS, SHARE, digest.hexdigest()])
    return Journal(state, {team: hashlib.sha256(f"{team}{facts}".encode()).hexdigest()[:32]
                           for team in RUNS})  # fmt: skip


def _keys(times: int) -> list[journal.Key]:
    return [(seed, team) for seed in range(times) for team in RUNS if not seed or team not in ALONE]


def _alone(bench: Bench) -> Any:
    """Return what the machine says alone, as labels of the same items."""
    own = replace(bench.machines[MACHINES[0]])
    crowd = replace(bench.crowd, answers=own, gold=None)
    return aggregate(crowd, "mv")


def _gold(crowd: Crowd) -> list[list[str]]:
    return crowd.tagset.decode_complete(crowd.gold_tagged)


def read_crowds(data: Path, study: str = "people-models") -> tuple[Crowd, Crowd]:
    """Read people's answers, and the sentences that machines learn from in the same tags."""
    people, others = data / "ner_mturk" / "crowd.tsv.gz", data / "conll2003" / "testa.tsv.gz"
    for file in (people, others):
        if not file.is_file():
            raise InputError(f"{file} is not there: study {study} needs it (--data DIR)")
    crowd = read_crowd(people)
    return crowd, read_crowd(others, format="conll", columns={"tag": "ner_bio"})
