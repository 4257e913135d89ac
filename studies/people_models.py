"""People and models in one crowd: what models add to people, declared and not, alone and together.

The people are those of the NER crowd of Rodrigues et al. One model is whatever labelled their
sentences by `goldspan label` (MODELS); the other, "the tagger", is a CRF that learned from 200
sentences of other articles. `auto` makes all labels. Gold is only scored.
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
from goldspan.aggregation.machines import models_of
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
from studies.purity.crowds import fewer_answers, translated, with_workers
from studies.table import Study, Table, check_repeats

REPEATS, QUICK_SENTENCES = 5, 300
LEARNED = 200
"""Sentences that the tagger learned from."""
MODELS = "ner_mturk/models.jsonl"
"""The answers of a model, below the data folder; of fewer sentences it takes the study to these."""
SEED = 20
MODEL, COPY, TAGGER = "model", "copy", "tagger"
PEOPLE, ALL = "two people", "all people"
BESIDE = {
    "": (),
    " and the model": (MODEL,),
    " and the model twice": (MODEL, COPY),
    " and the tagger": (TAGGER,),
    " and both": (MODEL, TAGGER),
}
DECLARED, UNDECLARED = ", declared", ", not declared"
TEAMS = {
    f"{people}{beside}{how}": (people, names, how)
    for people in (PEOPLE, ALL)
    for beside, names in BESIDE.items()
    for how in ((DECLARED, UNDECLARED) if names else ("",))
}
"""By name: the people, the models beside them, and whether `auto` is told that they are models."""
CAMPAIGN = "campaign by gain: the tagger and people"
RUNS = (*TEAMS, CAMPAIGN)
ALONE = tuple(team for team, (people, *_) in TEAMS.items() if people == ALL)
"""One seed is enough for these: nothing is drawn."""
CHEAP = "0.0001"
"""What an answer of the tagger costs in the campaign; those of people as in its examples."""
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
    version: ClassVar[int] = 2

    def plain(self, run: tuple[Point, ...]) -> dict[str, Any]:
        """Return the points as values that JSON can hold."""
        return {"points": [asdict(point) for point in run]}

    def made(self, found: Mapping[str, Any]) -> tuple[Point, ...]:
        """Make the points of what a line holds."""
        return tuple(Point(**point) for point in found["points"])


@dataclass(frozen=True, eq=False)
class Bench:
    """People, and models.

    Attributes:
        crowd: All people's answers; gold is only scored.
        others: Sentences of other articles with gold, from which the tagger learns.
        model: The answers of the model to every sentence.
        method: Makes the labels.
        runner: Where.
    """

    crowd: Crowd
    others: Crowd
    model: Answers | None = None
    method: str = "auto"
    runner: Runner = Serial()  # noqa: RUF009 - it has no state

    @cached_property
    def tagger(self) -> CRF:
        """The tagger."""
        seen = {tuple(words) for words in self.crowd.tokens_list}
        words, tags = self.others.tokens_list, _gold(self.others)
        fresh = [n for n in range(len(words)) if words[n] and tuple(words[n]) not in seen]
        own = np.random.default_rng(SEED).permutation(fresh)[:LEARNED]
        return CRF().fit([words[n] for n in own], [tags[n] for n in own])

    @cached_property
    def tagged(self) -> Answers:
        """What the tagger answers to everything."""
        tags = self.tagger.predict(self.crowd.tokens_list)
        codes = np.array([self.crowd.tagset.index[t] for row in tags for t in row], np.int16)
        n = self.crowd.n_items
        return Answers(
            np.arange(n, dtype=np.int32), np.zeros(n, np.int32), self.crowd.offsets, codes,
            np.zeros(n, np.int16),
        )  # fmt: skip

    def score(self, crowd: Crowd, models: tuple[str, ...] | None = None) -> float:
        """Label a crowd of the same items without its gold, and score the labels."""
        more: dict[str, Any] = {"models": models} if models else {}
        crowd = crowd.with_gold(None)
        return self.scored(aggregate(crowd, self.method, runner=self.runner, **more))

    def scored(self, labels: Any) -> float:
        """Score labels of the same items."""
        return score_of(replace(labels, crowd=labels.crowd.with_gold(self.crowd.gold)))

    def play(self, team: str, seed: int) -> tuple[Point, ...]:
        """Have a team label everything."""
        if team == CAMPAIGN:
            return play_campaign(self, seed)
        who, names, how = TEAMS[team]
        people = self.crowd if who == ALL else fewer_answers(self.crowd, 2, seed)
        share = len(people.latest) / len(self.crowd.latest)
        crowd = with_workers(people, {name: self.answers(name) for name in names})
        is_told = how == DECLARED and self.method == "auto"
        return (Point(self.score(crowd, names if is_told else None), share),)

    def answers(self, name: str) -> Answers:
        """Return what a model answers to everything."""
        if name == TAGGER:
            return self.tagged
        assert self.model is not None
        return self.model

    def alone(self, name: str) -> float:
        """Return the score of a model alone."""
        return self.scored(
            aggregate(replace(self.crowd, answers=self.answers(name), gold=None), "mv")
        )


def play_campaign(bench: Bench, seed: int) -> tuple[Point, ...]:
    """Run a campaign of `goldspan run` by gain: the tagger, and two people, about a quarter first.

    With the tagger alone in the first round nothing could be judged: no two people overlap.
    """
    crowd, points = bench.crowd, list[Point]()
    tokens = np.diff(crowd.offsets)[crowd.latest.item]
    everything = float(PER_ANSWER) * len(tokens) + float(PER_TOKEN) * float(tokens.sum())
    people = [{"id": name, "kind": "replay"} for name in crowd.worker_ids.to_pylist()]
    tagger = {
        "id": TAGGER, "kind": "tagger", "model": "tagger.goldspan", "prices": {"per_answer": CHEAP},
    }  # fmt: skip
    plan = {
        "name": "people-and-models",
        "seed": seed,
        "task": {"types": list(crowd.tagset.types), "encoding": crowd.tagset.encoding},
        "pool": {"file": FILE},
        "crowd": {"answers": FILE, "workers": [tagger, *people]},
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

    taggers = {"tagger.goldspan": bench.tagger}
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
        data: The folder that holds `ner_mturk`, with what a model answered, and `conll2003`.
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
    crowd, model, name = read_model(data, crowd, QUICK_SENTENCES if quick else None)
    bench = Bench(crowd, others, model, "bsc-seq" if quick else "auto", Threads(threads))
    kept, told = None if state is None else Path(state), None
    if so_far:
        times, told = journal.whole_repeats(_journal(bench, kept).runs, _keys(times))
    runs = _carry_out(bench, times, kept, progress)
    alone = [f"{100 * bench.alone(one):.1f}" for one in (MODEL, TAGGER)]
    notes = [
        (
            f"{crowd.n_items} sentences, {len(crowd.latest)} answers. Alone the model, {name}, has "
            f"F1 {alone[0]}, the tagger {alone[1]}. All labels are made by {bench.method}."
        ),
        (
            "Two people: two of those who labelled the sentence, another draw for every seed. "
            "Above people: above the same people without a model; least of a seed: the worst "
            "such difference."
        ),
        "Span F1 by conlleval's reading; gold is only scored.",
        (
            'The campaign is one of `goldspan run` with redundancy.by = "gain": the tagger and '
            f"two people label a random quarter first; then the tagger, for {CHEAP} a sentence, "
            f"and people are asked until {SHARE:.0%} of what all people's answers cost is spent."
        ),
    ]
    notes = [told, *notes] if told else notes
    if quick:
        notes.insert(0, "QUICK: part of the sentences. It shows that the study runs, no result.")
    tables = [team_table(runs, times), campaign_table(runs)]
    return Study("People and models", tables, notes)


def team_table(runs: Mapping[journal.Key, tuple[Point, ...]], times: int) -> Table:
    """Show the teams beside the people alone."""
    rows = []
    for team, (people, names, _) in TEAMS.items():
        seeds = [0] if people == ALL else [*range(times)]
        f1, plain = ([100 * runs[seed, one][0].f1 for seed in seeds] for one in (team, people))
        gaps = [a - b for a, b in zip(f1, plain, strict=True)]
        gap = (float(np.mean(gaps)), min(gaps)) if names else (None, None)
        rows.append((team, len(seeds), float(np.mean(f1)), min(f1), max(f1), *gap))
    columns = ("team", "seeds", "F1, mean", "least", "most", "above people", "least of a seed")
    return Table("What models add to people", columns, tuple(rows))


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
        "A campaign by gain: the tagger, and people where it is in doubt",
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
    answers = bench.crowd.latest
    for part in (answers.codes, answers.worker, bench.answers(MODEL).codes, bench.others.offsets):
        digest.update(np.ascontiguousarray(part).tobytes())
    facts = repr([Journal.version, bench.method, LEARNED, SEED, ROUNDS, SHARE, digest.hexdigest()])
    return Journal(state, {team: hashlib.sha256(f"{team}{facts}".encode()).hexdigest()[:32]
                           for team in RUNS})  # fmt: skip


def _keys(times: int) -> list[journal.Key]:
    return [(seed, team) for seed in range(times) for team in RUNS if not seed or team not in ALONE]


def _gold(crowd: Crowd) -> list[list[str]]:
    return crowd.tagset.decode_complete(crowd.gold_tagged)


def read_crowds(data: Path, study: str = "people-models") -> tuple[Crowd, Crowd]:
    """Read people's answers, and the sentences that the tagger learns from in the same tags."""
    people, others = data / "ner_mturk" / "crowd.tsv.gz", data / "conll2003" / "testa.tsv.gz"
    for file in (people, others):
        if not file.is_file():
            raise InputError(f"{file} is not there: study {study} needs it (--data DIR)")
    crowd = read_crowd(people)
    return crowd, read_crowd(others, format="conll", columns={"tag": "ner_bio"})


def read_model(data: Path, crowd: Crowd, most: int | None) -> tuple[Crowd, Answers, str]:
    """Read what a model answered; return the crowd of these items, `most` at most, and its name."""
    file = data / MODELS
    if not file.is_file():
        raise InputError(
            f"{file} is not there: let a model label {file.parent / 'crowd.tsv.gz'} by `goldspan "
            "label` (docs/models.md)"
        )
    labelled = read_crowd(file)
    (name, *_) = models_of(labelled, None)
    labelled = labelled.select_workers(np.array([labelled.worker_index(name)]))
    place = {one: n for n, one in enumerate(labelled.item_ids.to_pylist())}
    found = np.array([place.get(one, -1) for one in crowd.item_ids.to_pylist()])
    is_there = np.isin(found, labelled.latest.item)
    labelled = labelled.select_items(found[is_there][:most])
    codes = translated(labelled.latest.codes, labelled.tagset, crowd.tagset)
    kept = crowd.select_items(np.flatnonzero(is_there)[:most])
    return kept, replace(labelled.latest, codes=codes), name
