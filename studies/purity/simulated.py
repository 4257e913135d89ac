"""Simulated crowds whose truth is known: families of workers, and long spans with rough ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Answers, Crowd
from goldspan.crowd.model import list_array
from goldspan.simulation import SimulatedWorker, draw_truth, parse_worker, simulate_crowd
from goldspan.simulation.annotators import Cm, SpanHabit
from goldspan.simulation.base import Assignment
from goldspan.spans import Codec
from goldspan.spans.corpus import SpanArray

MODEL = "model"
"""The hidden worker whose answers a family shares."""
N_ALONE = 5
"""Workers who err on their own."""
N_FAMILY = 5
"""Workers who err together: as many as the others, so that they can outvote the truth."""
LABEL_WORKERS = ("flip(0.25)", "flip(0.4)")
"""Who labels items: the workers alone, and those of the family, who are worse."""
SPAN_WORKERS = (
    "misses(0.25) + wrong_type(0.1) + late(0.1) + invents(0.01)",
    "misses(0.4) + wrong_type(0.2) + early(0.15) + invents(0.02)",
)
"""The same for spans."""
NAMES = {"PER": (0, 120), "LOC": (80, 200), "ORG": (160, 280)}
"""Numbers of the words of names, by type: a third of them belongs to two types."""
N_FILLERS = 120
"""Other words; one in eight of them is also a word of names, though in none here."""
REACHES = (2.0, 4.0, 8.0)
"""By how many tokens the three kinds of workers miss the ends of long spans."""


def draw_sentences(n_items: int, *, seed: int = 0) -> Crowd:
    """Draw sentences with names of three types, ten to a document.

    Returns:
        A crowd with gold and without workers.
    """
    rng = np.random.default_rng([seed, 1])
    codec = Codec.from_types(list(NAMES), "BIO")
    words: list[str] = []
    tags: list[str] = []
    lengths: list[int] = []
    for _ in range(n_items):
        before = len(words)
        for _ in range(int(rng.integers(1, 4))):
            for _ in range(int(rng.integers(2, 7))):
                is_name = rng.random() < 1 / 8
                words.append(f"n{rng.integers(280)}" if is_name else f"w{rng.integers(N_FILLERS)}")
                tags.append("O")
            kind = str(rng.choice(list(NAMES)))
            length = int(rng.integers(1, 4))
            words += [f"n{n}" for n in rng.integers(*NAMES[kind], length).tolist()]
            tags += [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
        lengths.append(len(words) - before)
    return _truth(words, tags, lengths, codec, per_document=10)


def draw_long_spans(n_items: int = 50, *, n_tokens: int = 150, seed: int = 0) -> Crowd:
    """Draw long items with three to five spans of 4 to 25 tokens, of one type.

    The words say little: four in ten of those inside are of the spans' own vocabulary.

    Returns:
        A crowd with gold and without workers.
    """
    rng = np.random.default_rng([seed, 2])
    words: list[str] = []
    tags: list[str] = []
    lengths = (n_tokens * rng.uniform(0.7, 1.3, n_items)).astype(np.int64).tolist()
    for length in lengths:
        own = np.full(length, "O", "<U3")
        end = -1
        starts = np.sort(rng.choice(length - 25, int(rng.integers(3, 6)), replace=False))
        for start in starts.tolist():
            if start <= end:
                continue
            end = start + int(rng.integers(4, 26))
            own[start:end], own[start] = "I-P", "B-P"
        is_special = (own != "O") & (rng.random(length) < 0.4)
        number = rng.zipf(1.3, length) % 400
        words += [
            f"p{n % 30}" if special else f"w{n}"
            for n, special in zip(number.tolist(), is_special.tolist(), strict=True)
        ]
        tags += own.tolist()
    return _truth(words, tags, lengths, Codec.from_types(["P"], "BIO"), per_document=1)


@dataclass(frozen=True)
class Rough(SpanHabit):
    """Begins and ends spans too early or too late, each end by some tokens.

    Attributes:
        reach: Mean distance in tokens of an end that is missed.
    """

    reach: float = 4.0
    name = "rough"

    def _alter(self, spans: SpanArray, work: Assignment) -> SpanArray:
        """Move both ends; where spans would overlap, the later one is cut."""
        hit = self.happens(spans, work)
        left = self._moves(work.draws.per_token("left")[spans.start]) * hit
        right = self._moves(work.draws.per_token("right")[spans.start]) * hit
        low, high = work.offsets[spans.item], work.offsets[spans.item + 1]
        start = np.clip(spans.start - left, low, high - 1)
        end = np.clip(spans.end + right, start + 1, high)
        reached = np.maximum.accumulate(np.concatenate([[0], end]))[:-1] if len(end) else end
        start = np.maximum(start, reached)
        kept = start < end
        return replace(spans, start=start, end=end).take(kept)

    def _moves(self, uniform: NDArray[np.float64]) -> NDArray[np.int64]:
        """Turn numbers in [0, 1) into distances with either sign, geometric in size."""
        size = np.minimum(np.abs(2 * uniform - 1), 0.999)
        steps = np.floor(np.log1p(-size) / np.log(self.reach / (1 + self.reach)))
        return np.asarray((np.sign(uniform - 0.5) * steps).astype(np.int64))


def long_span_crowd(*, seed: int = 0, n_items: int = 50) -> Crowd:
    """Simulate workers who find most long spans and agree on few of their ends.

    Six of 18 workers answer every item. Methods with memory and a CRF ran away on such crowds.
    """
    base = parse_worker("misses(0.2) + invents(0.003)")
    team = {
        f"w{n}": Rough(base=base, p=0.3, reach=reach)
        for n, reach in enumerate(REACHES * 6, start=1)
    }
    return simulate_crowd(draw_long_spans(n_items, seed=seed), team, per_item=6, seed=seed)


def family_crowd(
    truth: Crowd, rho: float, workers: tuple[str, str], *, size: int = N_FAMILY, seed: int = 0
) -> Crowd:
    """Simulate five workers alone and a family; all answer everything.

    The members of the family take an answer from a hidden worker with probability sqrt(rho) and
    give one of their own otherwise, so that any two of them have a common one with probability rho.

    Args:
        truth: The items with their gold.
        rho: From 0 to 1.
        workers: A worker alone and one of the family, in text.
        size: Members of the family.
        seed: Of everything random.
    """
    alone, member = workers
    copy = f"copier('{MODEL}', {float(np.sqrt(rho))!r})"
    team: dict[str, str | SimulatedWorker] = {f"alone{n}": alone for n in range(1, N_ALONE + 1)}
    team |= {f"family{n}": f"{member} + {copy}" for n in range(1, size + 1)}
    team[MODEL] = member
    crowd = simulate_crowd(truth, team, seed=seed)
    return crowd.select_workers(np.arange(crowd.n_workers - 1))


def family_labels(rho: float, *, size: int = N_FAMILY, seed: int = 0) -> Crowd:
    """Simulate a family of workers on single labels: 500 items, four labels."""
    return family_crowd(draw_truth(500, 4, seed=seed), rho, LABEL_WORKERS, size=size, seed=seed)


def family_spans(rho: float, *, size: int = N_FAMILY, n_items: int = 400, seed: int = 0) -> Crowd:
    """Simulate a family of workers on spans: sentences with names of three types."""
    truth = draw_sentences(n_items, seed=seed)
    return family_crowd(truth, rho, SPAN_WORKERS, size=size, seed=seed)


def independent_labels(*, seed: int = 0) -> Crowd:
    """Simulate workers who err alone, each of whom knows some labels well and others badly.

    Those who know the same labels agree beyond what one number for every worker explains: the
    agreement of pairs has not rank one, and a test of families must not take them for one.
    """
    rng = np.random.default_rng([seed, 4])
    n_labels, n_workers = (3, 4, 5)[seed % 3], (6, 12, 20)[seed // 3 % 3]
    others, team = ~np.eye(n_labels, dtype=bool), dict[str, str | SimulatedWorker]()
    for n in range(n_workers):
        is_known = np.arange(n_labels) % 2 == rng.integers(2)
        right = np.where(is_known, rng.uniform(0.85, 0.98), rng.uniform(0.3, 0.6))
        wrong = rng.dirichlet(np.full(n_labels, 0.5), n_labels) * others + 1e-6 * others
        wrong *= ((1 - right) / wrong.sum(axis=1))[:, None]
        team[f"w{n + 1}"] = Cm(table=(wrong + np.diag(right))[None])
    return simulate_crowd(draw_truth(1000, n_labels, seed=seed), team, per_item=6, seed=seed)


def independent_spans(*, seed: int = 0, n_items: int = 400) -> Crowd:
    """Simulate workers who err alone, each of whom finds one type and overlooks another."""
    rng = np.random.default_rng([seed, 5])
    team: dict[str, str | SimulatedWorker] = {}
    for n in range((6, 8, 12)[seed % 3]):
        known, missed = (("PER", "ORG"), ("ORG", "PER"))[rng.integers(2)]
        rates = zip((known, missed, "LOC"), rng.uniform([0, 0.5, 0], [0.1, 0.9, 0.5]), strict=True)
        misses = " + ".join(f"misses({rate:.3f}, type={kind})" for kind, rate in rates)
        team[f"w{n + 1}"] = f"{misses} + late(0.05) + wrong_type(0.1) + invents(0.01)"
    return simulate_crowd(draw_sentences(n_items, seed=seed), team, per_item=5, seed=seed)


def rare_label(*, seed: int = 0) -> Crowd:
    """Simulate a label of one item in 20, four careful workers, and four who never give it.

    Simpson and Gurevych (2019): whoever always gives the frequent label is mostly right.
    """
    truth = draw_truth(400, 2, shares=(19, 1), seed=seed)
    return simulate_crowd(truth, ["flip(0.1) x4", "spammer(frequent) x4"], seed=seed)


def _truth(
    words: list[str], tags: list[str], lengths: list[int], codec: Codec, *, per_document: int
) -> Crowd:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    document = [n // per_document for n in range(len(lengths))]
    return Crowd(
        item_ids=pa.array([f"s{n + 1}" for n in range(len(lengths))], pa.string()),
        tokens=list_array(pa.array(words, pa.string()), offsets),
        worker_ids=pa.array([], pa.string()),
        tagset=codec,
        answers=Answers.none(),
        groups=pa.array([f"d{n + 1}" for n in document], pa.string()),
        gold=np.array([codec.index[tag] for tag in tags], np.int16),
    )
