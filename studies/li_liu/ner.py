"""Sequences: choose workers on twenty articles, and label the rest with a third of the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import aggregate
from goldspan.crowd import Crowd, read_crowd
from goldspan.errors import InputError
from goldspan.protocols import Runner
from goldspan.spans import score
from goldspan.workers.reliability import measure_reliability
from studies.table import Table

ARTICLES, SHARE = 20, 1 / 3
"""Articles with gold, and the share of every other article's answers that is kept."""
GOLDEN = 0.618
"""Its multiples spread evenly over 0 … 1."""
METHODS = ("mv-token", "bsc-seq")
TEAMS = ("all", "chosen third", "random third")


def ner_table(data: Path, n_trials: int, runner: Runner, told: Callable[[], None]) -> Table:
    """Compare all answers with a chosen and a random third of them.

    Args:
        data: The folder that holds `ner_mturk`.
        n_trials: Draws of the articles with gold.
        runner: Where to work.
        told: Told of every trial that is over.

    Raises:
        InputError: The data are not there.
    """
    path = data / "ner_mturk" / "crowd.tsv.gz"
    if not path.is_file():
        raise InputError(f"{path} is not there: study li-liu needs it")
    crowd = read_crowd(path)
    found: dict[tuple[str, str], list[float]] = {}
    answers = {}
    for seed in range(n_trials):
        known, rest = _split(crowd, seed)
        merit = measure_reliability(crowd.select_items(known)).mean
        for team, ranks in zip(TEAMS, (None, merit, _noise(crowd, seed)), strict=True):
            kept = crowd if ranks is None else _best_third(crowd, ranks, rest)
            answers[team] = len(kept.select_items(rest).latest)
            for method in METHODS:
                found.setdefault((team, method), []).append(_f1(kept, known, rest, method, runner))
        told()
    rows = []
    for team in TEAMS:
        cells = []
        for method in METHODS:
            runs = np.array(found[team, method])
            error = float(runs.std(ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else None
            cells += [float(runs.mean()), error]
        rows.append((team, answers[team], *cells))
    heads = [head for method in METHODS for head in (f"{method}: F1", f"s.e. of {method}")]
    return Table(
        f"NER crowd: workers ranked by span F1 on {ARTICLES} articles with gold, span F1 on the "
        f"other articles ({n_trials} draws)",
        ("answers", "number", *heads),
        tuple(rows),
    )


def _split(crowd: Crowd, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Draw the articles with gold: which items are of them, and which are not."""
    assert crowd.groups is not None
    index = crowd.groups.dictionary_encode().indices.to_numpy()
    drawn = np.random.default_rng((seed, 3)).permutation(index.max() + 1)[:ARTICLES]
    known = np.isin(index, drawn)
    return known, ~known


def _noise(crowd: Crowd, seed: int) -> NDArray[np.float64]:
    """Rank every worker of every article at random: float64 [n_workers, n_articles]."""
    assert crowd.groups is not None
    n_articles = len(crowd.groups.unique())
    return np.random.default_rng((seed, 4)).random((crowd.n_workers, n_articles))


def _best_third(crowd: Crowd, ranks: NDArray[np.float64], rest: NDArray[np.bool_]) -> Crowd:
    """Keep of every article the answers of its best workers, a third of them; of the known all.

    Args:
        crowd: The crowd.
        ranks: float64 [n_workers] or [n_workers, n_articles], larger is better.
        rest: bool [n_items], the items without known gold.
    """
    assert crowd.groups is not None
    article = crowd.groups.dictionary_encode().indices.to_numpy()
    latest = crowd.latest
    of = article[latest.item]
    merit = ranks[latest.worker] if ranks.ndim == 1 else ranks[latest.worker, of]
    kept = ~rest[latest.item]
    for one in np.unique(of[~kept]).tolist():
        own = np.flatnonzero((of == one) & ~kept)
        workers, first = np.unique(latest.worker[own], return_index=True)
        order = np.argsort(-merit[own[first]], kind="stable")
        # Rounded up or down so that it is a third over all articles.
        n_kept = max(1, int(SHARE * len(workers) + one * GOLDEN % 1))
        kept[own] = np.isin(latest.worker[own], workers[order[:n_kept]])
    return replace(crowd, answers=latest.take(kept))


def _f1(
    crowd: Crowd,
    known: NDArray[np.bool_],
    rest: NDArray[np.bool_],
    method: str,
    runner: Runner,
) -> float:
    """Aggregate everything, with the known articles' gold, and score the other articles."""
    gold = np.where(np.repeat(known, np.diff(crowd.offsets)), crowd.gold_tagged.codes, -1)
    truth = crowd.with_gold(gold.astype(np.int16))
    result = aggregate(crowd, method, gold=truth, runner=runner)
    tags, right = result.tagged_by_id(), crowd.select_items(rest).tagged_by_id()
    # Where nobody's answer is left nothing is found.
    found = [["O" if tag is None else tag for tag in tags[name]] for name in right]
    return 100 * score(list(right.values()), found).f1
