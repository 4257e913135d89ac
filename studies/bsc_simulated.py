"""What each worker model can and cannot see: simulated workers with one habit each.

Simpson and Gurevych (2019) say of every worker model what it misses: a spammer who always gives the
frequent label deceives acc; mistakes at the starts of spans are nothing to MACE; one wrong label
that is given again and again is nothing to the confusion vector; and only the model with memory
sees spans that go on too long or are cut in two. Here every habit is that of four
workers, beside three who make mistakes of all sorts. The truth is the gold of real sentences.

Two questions. What are the labels worth, when nobody knows the truth? And what does a model know of
the four once it is told the truth of half of the sentences: how likely are their answers to the
others, which it has not seen?
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus, aggregate
from goldspan.crowd import Crowd
from goldspan.protocols import Runner
from goldspan.simulation import simulate_crowd
from goldspan.simulation.base import has_unknown
from goldspan.spans import Codec, Tagged
from goldspan.spans.scoring import score_codes
from studies.rodrigues.paired import paired_p
from studies.table import Table

Floats = NDArray[np.float64]
MODELS = ("acc", "mace", "cv", "cm", "seq")
HONEST = "misses(0.15) + late(0.1) + early(0.1) + wrong_type(0.1) + invents(0.01)"
N_ODD, N_HONEST = 4, 3
SENTENCES, QUICK_SENTENCES = 800, 150
SURE = 0.05
"""A claim holds with a p below this."""
ANY = "any"


@dataclass(frozen=True)
class Fact:
    """A share of the four workers' answers, to be compared with what a model believes.

    Attributes:
        words: What it says.
        given: Roles or tags that are counted.
        truth: Roles or tags of the truth among which they are counted.
        before: Roles of the worker's label before; `ANY`: all.
    """

    words: str
    given: str
    truth: str
    before: str = ANY


@dataclass(frozen=True)
class Scene:
    """Four workers with a habit, and what the paper says of it.

    Attributes:
        habit: In words.
        worker: The worker, as `parse_worker` reads it.
        blind: The worker model that does not see it, according to the paper.
        sees: The next model, which does.
        facts: What to look at.
    """

    habit: str
    worker: str
    blind: str
    sees: str
    facts: tuple[Fact, ...]


SCENES = (
    Scene(
        "always gives the frequent label", "spammer(frequent)", "acc", "cm",
        (Fact("O where a span begins", "O", "B"), Fact("O where the truth is O", "O", "O")),
    ),
    Scene(
        "starts spans two tokens early", "early(0.7, tokens=2)", "mace", "cv",
        (Fact("right where a span begins", "=", "B"), Fact("right where the truth is O", "=", "O")),
    ),
    Scene(
        "calls ORG a LOC", "wrong_type(0.7, type=ORG, to=LOC)", "cv", "cm",
        (
            Fact("B-LOC where B-ORG is right", "B-LOC", "B-ORG"),
            Fact("B-PER where B-ORG is right", "B-PER", "B-ORG"),
        ),
    ),
    Scene(
        "ends spans two tokens late", "late(0.7, tokens=2)", "cm", "seq",
        (Fact("I where O is right, after B or I", "I", "O", "BI"),
         Fact("I where O is right, after O", "I", "O", "O")),
    ),
    Scene(
        "cuts spans in two", "splits(0.8)", "cm", "seq",
        (Fact("B where I is right, after I", "B", "I", "I"),
         Fact("B where I is right, after B", "B", "I", "B")),
    ),
)  # fmt: skip
NOTES = (
    (
        f"Simulated: all {N_ODD} workers of a row have its habit, beside {N_HONEST} who make "
        f"mistakes of all sorts ({HONEST}); everybody labels every sentence. The truth is the gold "
        "of sentences that are drawn anew for every repeat."
    ),
    (
        "Hidden answers: -ln of the probability of what the habit's workers answered, per 100 "
        "tokens, on the half of the sentences that was kept from the model, which knows the truth "
        "of the other half. Less is better."
    ),
    (
        "Differences are paired by repeat (t-test, two-sided); a p of 0.05 or more shows nothing. "
        "The p are not corrected for their number."
    ),
)


def simulate(
    truth: Crowd,
    repeats: int,
    n_sentences: int,
    *,
    runner: Runner,
    told: Callable[[], None],
    verdicts: bool = True,
) -> list[Table]:
    """Make the tables.

    Args:
        truth: Sentences with gold.
        repeats: How many crowds are drawn of every scene.
        n_sentences: How many sentences each.
        runner: Where to work.
        told: Called after every crowd.
        verdicts: Whether the crowds are enough to say which claims hold.
    """
    known = truth.select_items(~has_unknown(truth))
    known = known.select_items(np.diff(known.offsets) > 0)
    runs = []
    for scene in SCENES:
        found = []
        for seed in range(repeats):
            found.append(_Run.of(scene, known, seed, n_sentences, runner))
            told()
        runs.append((scene, found))
    return [_labels(runs), _hidden(runs), _claims(runs, verdicts=verdicts), _beliefs(runs)]


@dataclass(frozen=True)
class _Run:
    """One crowd: F1, nats per 100 hidden tokens, and facts: as they are, and as believed."""

    f1: dict[str, float]
    nats: dict[str, float]
    facts: dict[str, Floats]

    @classmethod
    def of(cls, scene: Scene, truth: Crowd, seed: int, n_sentences: int, runner: Runner) -> _Run:
        rng = np.random.default_rng(seed)
        chosen = np.zeros(truth.n_items, np.bool_)
        chosen[rng.permutation(truth.n_items)[:n_sentences]] = True
        team = {f"odd{n}": scene.worker for n in range(N_ODD)}
        team |= {f"honest{n}": HONEST for n in range(N_HONEST)}
        crowd = simulate_crowd(truth.select_items(chosen), team, seed=seed, runner=runner)
        told = np.repeat(rng.random(crowd.n_items) < 0.5, np.diff(crowd.offsets))
        half = crowd.with_gold(np.where(told, crowd.gold_tagged.codes, np.int16(-1)))
        answers = _answers(crowd, ~told)
        f1, nats = {}, {}
        facts = {"really": _shares(answers, scene.facts, crowd.tagset, None)}
        for ties in ("outside", "inside"):
            votes = aggregate(crowd, "mv-token", ties=ties, runner=runner)
            f1[f"votes, ties {ties}"] = _f1(crowd, votes)
        for model in MODELS:
            f1[model] = _f1(crowd, aggregate(crowd, f"bsc-{model}", runner=runner))
            result = aggregate(crowd, f"bsc-{model}", gold=half, runner=runner)
            tables = _tables(result)
            nats[model] = _nats(answers, tables)
            facts[model] = _shares(answers, scene.facts, crowd.tagset, tables)
        return cls(f1, nats, facts)


def _f1(crowd: Crowd, result: Consensus) -> float:
    found = Tagged(result.codes, crowd.offsets)
    return 100 * score_codes(crowd.gold_tagged, found, crowd.tagset).f1


def _answers(crowd: Crowd, hidden: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count hidden answers of the habit's workers, int64 [N_ODD, J, J, J]: before, truth, given."""
    answers, codec = crowd.latest, crowd.tagset
    before = np.roll(answers.codes, 1)
    before[answers.offset[:-1]] = codec.outside
    token, who = crowd.token_of, crowd.worker_of
    counts = np.zeros((N_ODD, *[len(codec.tags)] * 3), np.int64)
    for n in range(N_ODD):
        own = (who == crowd.worker_index(f"odd{n}")) & hidden[token]
        place = before[own], crowd.gold_tagged.codes[token[own]], answers.codes[own]
        np.add.at(counts[n], place, 1)
    return counts


def _tables(result: Consensus) -> Floats:
    """Return what a model believes of the habit's workers, in the shape of `_answers`."""
    memory = result.memory
    model, names = memory.model, memory.worker_ids.to_pylist()
    found = []
    for n in range(N_ODD):
        table = model.workers.mean(
            memory.posterior, model.rows, model.prior, names.index(f"odd{n}")
        )
        n_labels = table.shape[1]
        found.append(np.broadcast_to(table[:n_labels], (n_labels, n_labels, n_labels)))
    return np.array(found)


def _nats(answers: NDArray[np.int64], tables: Floats) -> float:
    with np.errstate(divide="ignore"):
        logs = np.where(answers > 0, np.log(tables), 0.0)
    return float(-100 * (answers * logs).sum() / answers.sum())


def _shares(
    answers: NDArray[np.int64], facts: tuple[Fact, ...], codec: Codec, tables: Floats | None
) -> Floats:
    """Return the share of every fact: as it is, or as believed; NaN where it never came up."""
    found = []
    for fact in facts:
        before = _mask(fact.before, codec)[:, None] & _mask(fact.truth, codec)
        given = np.eye(len(codec.tags), dtype=np.bool_)
        if fact.given != "=":
            given = np.broadcast_to(_mask(fact.given, codec), given.shape)
        total = answers.sum(axis=3)[:, before].sum()
        # What is believed is weighed by how often the truth and the label before came up.
        seen = answers if tables is None else answers.sum(axis=3, keepdims=True) * tables
        share = (seen * given)[:, before].sum() / total if total else np.nan
        found.append(float(share))
    return np.array(found)


def _mask(which: str, codec: Codec) -> NDArray[np.bool_]:
    """Return the tags that are meant, bool [J]: one tag, or first letters."""
    if which in codec.tags:
        return np.array([tag == which for tag in codec.tags])
    return np.array([which == ANY or tag[0] in which for tag in codec.tags])


# --------------------------------------------------------------------------------------------------
# The tables.


Runs = list[tuple[Scene, list[_Run]]]


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _labels(runs: Runs) -> Table:
    names = list(runs[0][1][0].f1)
    rows = tuple(
        (scene.habit, *(_mean([run.f1[name] for run in found]) for name in names))
        for scene, found in runs
    )
    caption = "Simulated: span F1 of the labels, nobody knows the truth"
    return Table(caption, ("habit", *names), rows, dict.fromkeys(names, 1))


def _hidden(runs: Runs) -> Table:
    rows = tuple(
        (scene.habit, *(_mean([run.nats[name] for run in found]) for name in MODELS))
        for scene, found in runs
    )
    caption = "Simulated: hidden answers of the habit's workers, -ln P per 100 tokens"
    return Table(caption, ("habit", *MODELS), rows, dict.fromkeys(MODELS, 2))


def _claims(runs: Runs, *, verdicts: bool) -> Table:
    rows: list[tuple[Any, ...]] = []
    for scene, found in runs:
        row: list[Any] = [f"{scene.blind} does not see what {scene.sees} sees: {scene.habit}"]
        for less, values in ((True, [r.nats for r in found]), (False, [r.f1 for r in found])):
            blind, sees = (np.array([v[m] for v in values]) for m in (scene.blind, scene.sees))
            p = paired_p(sees.tolist(), blind.tolist())
            gap = float((sees - blind).mean())
            so = _verdict(p, is_better=(gap < 0) == less) if verdicts else "–"
            row += [gap, p, so]
        rows.append(tuple(row))
    columns = ("claim", "hidden answers", "p", "so", "span F1", "p of F1", "so F1")
    digits: dict[str, int | str] = {"hidden answers": 2, "p": ".0e", "span F1": 1, "p of F1": ".0e"}
    caption = "Simulated: what the paper says of its worker models; second model less first"
    return Table(caption, columns, tuple(rows), digits)


def _verdict(p: float | None, *, is_better: bool) -> str:
    if p is None or p >= SURE:
        return "not shown"
    return "holds" if is_better else "contradicted"


def _beliefs(runs: Runs) -> Table:
    rows = []
    names = ("really", *MODELS)
    for scene, found in runs:
        for n, fact in enumerate(scene.facts):
            shares = (100 * _mean([run.facts[name][n] for run in found]) for name in names)
            rows.append((scene.habit, fact.words, *shares))
    caption = "Simulated: how often in per cent, really and as believed"
    return Table(caption, ("habit", "what is given", *names), tuple(rows), dict.fromkeys(names, 1))
