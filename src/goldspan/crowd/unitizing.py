r"""Agreement on spans as units: gamma (Mathet et al. 2015) and alpha_u (Krippendorff 2004).

A *continuum* is the tokens of one document that both annotators of a pair labelled, item after
item. gamma = 1 - observed / expected disorder. An alignment pairs spans of the two annotators, or
leaves them alone, which costs 1 for each; a pair of spans from s to e of length l costs

    d(u, v) = ((|s_u - s_v| + |e_u - e_v|) / (l_u + l_v))^2 + [type_u != type_v]

The disorder is the cost of the cheapest alignment, divided by the mean number of spans; by chance
it is that of annotators drawn among the two and shifted by random amounts.

alpha_u = 1 - D_o / D_e, sums over types of what `category_disagreement` computes.

The measures of a crowd, a pair or a document are ratios of sums over pairs of annotators and
documents. Mathet et al. align all annotators of a document at once, which is not done here. The
intervals are percentiles of a bootstrap over documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import plain
from goldspan.crowd.io import to_crowd
from goldspan.crowd.model import Crowd
from goldspan.errors import InputError
from goldspan.spans import Tagged, find_spans

N_SAMPLES = 30
"""Continua by chance, per pair of annotators and document."""
N_RESAMPLES = 1000
LEVEL = 0.95
_INTERVALS = ("gamma_interval", "alpha_u_interval")


class Units(NamedTuple):
    """Spans of one annotator on a continuum, in order."""

    start: NDArray[np.int64]  # [n], first position
    end: NDArray[np.int64]  # [n], one past the last
    type: NDArray[np.int64]  # [n]

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int]]) -> Units:
        """Make them of (start, end, type)."""
        array = np.array(sorted(rows), np.int64).reshape(-1, 3)
        return cls(array[:, 0], array[:, 1], array[:, 2])


def disorder_cost(one: Units, other: Units) -> float:
    """Return the cost of the cheapest alignment of the spans of two annotators.

    Divided by the mean number of their spans it is the disorder of Mathet et al. (2015).
    """
    n, m = len(one.start), len(other.start)
    if not n or not m:
        return float(n + m)
    from scipy.optimize import linear_sum_assignment

    apart = np.abs(one.start[:, None] - other.start) + np.abs(one.end[:, None] - other.end)
    lengths = (one.end - one.start)[:, None] + (other.end - other.start)
    gain = np.maximum(
        2.0 - (apart / lengths) ** 2 - (one.type[:, None] != other.type), 0.0
    )  # what aligning saves, of the two spans that are left alone otherwise
    if not gain.any():
        return float(n + m)
    rows, columns = linear_sum_assignment(gain, maximize=True)
    return float(n + m - gain[rows, columns].sum())


def expected_disorder(
    one: Units, other: Units, length: int, rng: np.random.Generator, n_samples: int = N_SAMPLES
) -> float:
    """Return the mean disorder of two annotators by chance; 0 if neither has a span."""
    both = (one, other)
    n = len(one.start) + len(other.start)
    if not n:
        return 0.0
    spans = np.concatenate([one.end - one.start, other.end - other.start])
    least = min(max(1, int(spans.mean() / 2)), length // 2)
    found = []
    for _ in range(n_samples):
        first = int(rng.integers(length))
        second = first + int(rng.integers(least, max(least, length - least) + 1))
        drawn = [
            _shifted(both[int(which)], by, length)
            for which, by in zip(rng.integers(2, size=2), (first, second), strict=True)
        ]
        mean = sum(len(units.start) for units in drawn) / 2
        found.append(disorder_cost(*drawn) / mean if mean else 0.0)
    return float(np.mean(found))


def _shifted(units: Units, by: int, length: int) -> Units:
    start = (units.start + by) % length
    return Units(start, start + (units.end - units.start), units.type)


def category_disagreement(one: Units, other: Units, length: int, kind: int) -> tuple[float, float]:
    """Return the observed and expected disagreement of one type of Krippendorff (2004, ch. 11).

    Observed: of two spans that overlap, the squared distances of their starts and of their ends; of
    a span that overlaps none, its squared length; all over L^2. Expected, with the N spans of
    length l and the gaps of length g of both annotators (m = 2):

        2/L * sum_l [(N-1)/3 * (2 l^3 - 3 l^2 + l) + l^2 * sum_(g >= l) (g - l + 1)]
            / (m L (m L - 1) - sum_l l (l - 1))
    """
    mine, theirs = (
        np.stack([units.start, units.end], 1)[units.type == kind] for units in (one, other)
    )
    overlap = np.minimum(mine[:, None, 1], theirs[:, 1]) > np.maximum(
        mine[:, None, 0], theirs[:, 0]
    )
    apart = ((mine[:, None] - theirs[None]) ** 2).sum(axis=2)
    lengths = np.concatenate([mine, theirs]) @ np.array([-1, 1])
    alone = np.concatenate([~overlap.any(axis=1), ~overlap.any(axis=0)])
    observed = float(apart[overlap].sum() + (lengths[alone] ** 2).sum()) / length**2
    gaps = np.concatenate([_gaps(spans, length) for spans in (mine, theirs)])
    sizes = lengths.astype(np.float64)
    fits = np.maximum(gaps[None] - sizes[:, None] + 1, 0) * (gaps[None] >= sizes[:, None])
    within = (len(sizes) - 1) / 3 * (2 * sizes**3 - 3 * sizes**2 + sizes)
    total = float((within + sizes**2 * fits.sum(axis=1)).sum())
    ways = 2 * length * (2 * length - 1) - float((sizes * (sizes - 1)).sum())
    return observed, 2 / length * total / ways if ways > 0 else 0.0


def _gaps(spans: NDArray[np.int64], length: int) -> NDArray[np.float64]:
    """Lengths of what lies between spans, float64 [n]."""
    starts = np.append(spans[:, 0], length)
    ends = np.concatenate([[0], spans[:, 1]])
    return np.asarray(np.maximum(starts - ends, 0), np.float64)


@dataclass(frozen=True)
class UnitAgreement:
    """What `unit_agreement` found; NaN where nothing can be said."""

    gamma: float  # Of all pairs and documents; 1 is perfect, 0 is chance
    gamma_interval: tuple[float, float]  # Of 95 %, by a bootstrap over documents
    alpha_u: float
    alpha_u_interval: tuple[float, float]
    pairs: pa.Table = field(repr=False)  # Arrow table
    documents: pa.Table = field(repr=False)  # Arrow table
    n_samples: int = N_SAMPLES  # Continua by chance, per pair and document
    n_resamples: int = N_RESAMPLES

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, None for NaN."""
        intervals = {name: list(getattr(self, name)) for name in _INTERVALS}
        tables = {name: getattr(self, name).to_pylist() for name in ("pairs", "documents")}
        return dict(plain({**vars(self), **intervals, **tables}))

    def __str__(self) -> str:
        """Return the two measures with their intervals."""
        rows = (
            ("gamma of spans", self.gamma, self.gamma_interval),
            ("alpha_u of spans", self.alpha_u, self.alpha_u_interval),
        )
        if np.isnan([self.gamma, self.alpha_u]).all():
            return (
                "gamma and alpha_u of spans: unknown, as no two annotators of a document marked any"
            )
        return "\n".join(
            f"{name:<26}{value:8.3f}  "
            + (
                "(no interval: too few documents)"
                if np.isnan(low)
                else f"(95 %: {low:.3f} to {high:.3f})"
            )
            for name, value, (low, high) in rows
        )


def unit_agreement(
    crowd: Any,  # A `Crowd`, or anything that `read_crowd` reads, with spans
    *,
    policy: str = "conlleval",  # How malformed tags are read
    n_samples: int = N_SAMPLES,  # Continua by chance, per pair of annotators and document
    n_resamples: int = N_RESAMPLES,  # Of documents, for the intervals
    seed: int = 0,
) -> UnitAgreement:
    """Measure how far annotators agree on spans, by gamma and alpha_u.

    >>> rows = [{"item": 1, "text": "Ann sang in Rome", "worker": w, "spans": [[0, 3, "PER"]]}
    ...         for w in ("ann", "bob")]
    >>> unit_agreement(rows).gamma
    1.0
    """
    found = to_crowd(crowd)
    if found.tagset.rules.is_plain:
        raise InputError("gamma and alpha_u are for spans, and these labels are not spans")
    rows = list(_pairs(found, policy, np.random.default_rng(seed), n_samples))
    names = found.worker_ids.to_pylist()
    by_document: dict[str, list[_Pair]] = defaultdict(list)
    by_pair: dict[tuple[str, str], list[_Pair]] = defaultdict(list)
    for row in rows:
        by_document[row.document].append(row)
        by_pair[names[row.left], names[row.right]].append(row)
    pairs = [
        {"left": left, "right": right, "documents": len(some), **_measures(some)}
        for (left, right), some in sorted(by_pair.items())
    ]
    documents = [
        {
            "document": name,
            "annotators": len({one for row in some for one in (row.left, row.right)}),
            **_measures(some),
        }
        for name, some in by_document.items()
    ]
    whole = _measures(rows)
    sums = np.array([np.sum([row.sums for row in some], axis=0) for some in by_document.values()])
    gamma, alpha = _intervals(sums.reshape(-1, 4), n_resamples, np.random.default_rng(seed))
    return UnitAgreement(
        gamma=whole["gamma"],
        gamma_interval=gamma,
        alpha_u=whole["alpha_u"],
        alpha_u_interval=alpha,
        pairs=pa.Table.from_pylist(pairs, _PAIRS),
        documents=pa.Table.from_pylist(documents, _DOCUMENTS),
        n_samples=n_samples,
        n_resamples=n_resamples,
    )


_TEXT, _COUNT = pa.string(), pa.int64()
_MEASURED = [("spans", _COUNT), ("gamma", pa.float64()), ("alpha_u", pa.float64())]
_PAIRS = pa.schema([("left", _TEXT), ("right", _TEXT), ("documents", _COUNT), *_MEASURED])
_DOCUMENTS = pa.schema([("document", _TEXT), ("annotators", _COUNT), *_MEASURED])


class _Pair(NamedTuple):
    """Two annotators on one document."""

    document: str
    left: int
    right: int
    spans: int  # How many they gave together
    sums: NDArray[np.float64]  # [4]


def _pairs(crowd: Crowd, policy: str, rng: np.random.Generator, n_samples: int) -> Iterator[_Pair]:
    answers = crowd.latest
    found = find_spans(Tagged(answers.codes, answers.offset), crowd.tagset, policy)
    spans: list[list[tuple[int, int, int]]] = [[] for _ in range(len(answers))]
    base = answers.offset[found.item]
    columns = (found.item, found.start - base, found.end - base, found.type)
    for a, start, end, kind in zip(*(one.tolist() for one in columns), strict=True):
        spans[a].append((start, end, kind))
    lengths = np.diff(crowd.offsets).tolist()
    names = (crowd.item_ids if crowd.wholes is None else crowd.wholes).to_pylist()
    groups = names if crowd.groups is None else crowd.groups.to_pylist()
    said: dict[str, dict[int, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for a, (n, worker) in enumerate(
        zip(answers.item.tolist(), answers.worker.tolist(), strict=True)
    ):
        said[names[n] if groups[n] is None else groups[n]][worker][n] = a
    for document, workers in said.items():
        for left, right in combinations(sorted(workers), 2):
            shared = sorted(workers[left].keys() & workers[right].keys())
            if not shared:
                continue
            rows: tuple[list[tuple[int, int, int]], ...] = ([], [])
            length = 0
            for n in shared:
                for side, worker in zip(rows, (left, right), strict=True):
                    own = spans[workers[worker][n]]
                    side.extend((length + a, length + b, kind) for a, b, kind in own)
                length += lengths[n]
            one, other = map(Units.of, rows)
            n_spans = len(one.start) + len(other.start)
            sums = _compared(one, other, length, rng, n_samples)
            yield _Pair(document, left, right, n_spans, sums)


def _compared(
    one: Units, other: Units, length: int, rng: np.random.Generator, n_samples: int
) -> NDArray[np.float64]:
    n = len(one.start) + len(other.start)
    chance = expected_disorder(one, other, length, rng, n_samples) * n / 2
    kinds = np.unique(np.concatenate([one.type, other.type])).tolist()
    alpha = [category_disagreement(one, other, length, kind) for kind in kinds]
    observed, expected = np.sum(alpha, axis=0) * length if alpha else (0.0, 0.0)
    return np.array([disorder_cost(one, other), chance, observed, expected])


def _measures(rows: Sequence[_Pair]) -> dict[str, Any]:
    sums = np.sum([row.sums for row in rows], axis=0) if rows else np.zeros(4)
    gamma, alpha = _ratios(sums[None])[0].tolist()
    return {"spans": sum(row.spans for row in rows), "gamma": gamma, "alpha_u": alpha}


def _ratios(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 - observed / expected of both measures, [n, 2]; NaN where none is expected."""
    # sums float64 [n, 4]
    observed, expected = sums[:, [0, 2]], sums[:, [1, 3]]
    there = expected > 0
    return np.where(there, 1 - observed / np.where(there, expected, 1), np.nan)


def _intervals(
    sums: NDArray[np.float64], n_resamples: int, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Return an interval for each of the two measures; NaN for fewer than two documents."""
    n = len(sums)
    if n < 2:
        return [(float("nan"), float("nan"))] * 2
    counts = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)
    found = _ratios(counts @ sums)
    rest = (1 - LEVEL) / 2
    known = found[~np.isnan(found).any(axis=1)]
    if not len(known):  # nobody marked anything
        return [(float("nan"), float("nan"))] * 2
    with np.errstate(all="ignore"):
        low, high = np.quantile(known, [rest, 1 - rest], axis=0)
    return [(float(low[k]), float(high[k])) for k in range(2)]
