"""Accuracy on crowds of single labels: ours and crowd-kit's methods on sixteen public sets.

Our default is named before the run, and every method has its defaults. Both sides get the same
answers: of several answers of a worker to a task the last. Accuracy is over the tasks with known
truth; a task without an answer counts as wrong for everybody. Also a simulation of workers with few
labels each.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import crowdkit.aggregation as peers
import numpy as np
import pandas as pd
from scipy.stats import rankdata

import goldspan
from goldspan.aggregation.votes import vote_counts
from goldspan.crowd import Crowd, read_crowd
from simulated import single_labels

DATA = Path(os.environ.get("GOLDSPAN_DATA") or Path(__file__).parents[2] / "shared" / "data")
FOLDER = DATA / "classification"
LIMIT = 300.0
"""Seconds that a method may take for a set."""
DEFAULT = "auto"
OURS = (DEFAULT, "mv-token", "ds", "one-coin", "ibcc", "mace")
PEERS = (
    "MajorityVote", "DawidSkene", "OneCoinDawidSkene", "MACE", "GLAD", "Wawa", "ZeroBasedSkill",
    "MMSR",
)  # fmt: skip
SEEDS = range(10)
NAN = float("nan")


class TooLongError(Exception):
    """The limit is over."""


def report() -> str:
    """Run everything and give it as Markdown."""
    parts = [few_labels()]
    if FOLDER.is_dir():
        parts.insert(0, public_sets(sorted(path for path in FOLDER.iterdir() if path.is_dir())))
    else:
        print(f"left out: classification (no folder {FOLDER})")
    return "\n\n".join(parts)


def public_sets(folders: list[Path]) -> str:
    """Return the tables of accuracy and of seconds."""
    names = [
        r"plurality\*",
        *(f"goldspan {name}" for name in OURS),
        *(f"crowd-kit {n}" for n in PEERS),
    ]
    accuracy, seconds = np.full((2, len(names), len(folders)), NAN)
    trouble: list[str] = []
    for column, folder in enumerate(folders):
        crowd = read_set(folder)
        frame = as_frame(crowd)
        accuracy[0, column] = plurality(crowd)
        for row, (method, work) in enumerate(methods(crowd, frame), 1):
            begin = time.perf_counter()
            try:
                with limit(LIMIT), warnings.catch_warnings(action="ignore"):
                    labels = work()
            except Exception as error:  # noqa: BLE001 - whatever stops a peer is reported
                found = str(error).splitlines()[0] if str(error) else "no result"
                trouble.append(f"{method} on {folder.name}: {type(error).__name__}: {found}")
            else:
                accuracy[row, column] = right(crowd, labels)
                seconds[row, column] = time.perf_counter() - begin
            took = time.perf_counter() - begin
            print(f"{folder.name}: {method}, {took:.1f} s", file=sys.stderr, flush=True)
    notes = [
        f"""Accuracy in percent. The rank is among the methods that finished, the plurality aside;
the mean is over all sets, or none. Our default, named before the run: `{DEFAULT}`.""",
        r"""\* the vote of most, in expectation over ties; the tie rules of the two votes below fall
to one side of it. Wawa and ZeroBasedSkill fail in `predict` under this scikit-learn; their last
step, a majority vote with their skills, is called directly.""",
    ]
    if trouble:
        notes.append("No result: " + "; ".join(trouble) + ".")
    sets = [folder.name for folder in folders]
    text = [_accuracy_table(names, sets, accuracy), _seconds_table(names, sets, seconds), *notes]
    return "\n\n".join(text)


def read_set(folder: Path) -> Crowd:
    """Read a set with its truth."""
    found = next(path for path in folder.iterdir() if path.name.startswith("labels.csv"))
    return read_crowd(found, gold=folder / "truth.csv")


def as_frame(crowd: Crowd) -> pd.DataFrame:
    """Return the answers that count, as crowd-kit takes them."""
    answers, tags = crowd.latest, np.array(crowd.tagset.tags, object)
    tasks, workers = crowd.item_ids.to_pandas(), crowd.worker_ids.to_pandas()
    return pd.DataFrame(
        {
            "task": tasks.to_numpy()[answers.item],
            "worker": workers.to_numpy()[answers.worker],
            "label": tags[answers.codes],
        }
    )


def methods(crowd: Crowd, frame: pd.DataFrame) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield every method as a function of nothing, which gives labels by task."""
    ids = crowd.item_ids.to_pylist()
    for name in OURS:
        yield (
            f"goldspan {name}",
            lambda name=name: pd.Series(goldspan.aggregate(crowd, name).labels, index=ids),
        )
    for name in PEERS:
        yield f"crowd-kit {name}", lambda name=name: peer_labels(name, frame)


def peer_labels(name: str, frame: pd.DataFrame) -> Any:
    """Run a method of crowd-kit with its defaults."""
    model = getattr(peers, name)()
    if name in {"Wawa", "ZeroBasedSkill"}:
        # Their predict() calls scikit-learn's check_is_fitted, which refuses them since 1.6; it
        # is nothing else than this vote.
        return peers.MajorityVote().fit_predict(frame, skills=model.fit(frame).skills_)
    return model.fit_predict(frame)


def right(crowd: Crowd, labels: Any) -> float:
    """Return the accuracy over tasks with known truth."""
    assert crowd.gold is not None
    known = np.flatnonzero(crowd.gold >= 0)
    truth = np.array(crowd.tagset.tags, object)[crowd.gold[known]]
    found = labels.reindex(crowd.item_ids.take(known).to_pylist())
    return float((found.astype(object).to_numpy() == truth).mean())


def plurality(crowd: Crowd) -> float:
    """Return the expected accuracy of a vote whose ties are drawn."""
    assert crowd.gold is not None
    known = np.flatnonzero(crowd.gold >= 0)
    counts, truth = vote_counts(crowd)[known], crowd.gold[known]
    first = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
    hit = first[np.arange(len(known)), truth]
    return float((hit / np.maximum(1, first.sum(axis=1))).mean())


def few_labels() -> str:
    """Simulate workers with about eight labels each, and give the table."""
    names = (
        r"plurality\*",
        "goldspan auto",
        "goldspan ds",
        "goldspan ibcc",
        "goldspan one-coin",
        "crowd-kit DawidSkene",
    )
    found = np.empty((len(names), len(SEEDS)))
    for column, seed in enumerate(SEEDS):
        made = single_labels(1000, 625, per_task=5, n_classes=4, seed=seed)
        frame = made.frame()
        frame["label"] = frame["label"].astype(str)  # labels come back as they were given
        crowd = read_crowd(frame)
        gold = np.array([crowd.tagset.tags.index(str(j)) for j in made.truth], np.int16)
        crowd = crowd.with_gold(gold)  # items stand in order of tasks, as the rows do
        found[0, column] = plurality(crowd)
        for row, name in enumerate(names[1:-1], 1):
            labels = goldspan.aggregate(crowd, name.split()[1]).labels
            found[row, column] = right(crowd, pd.Series(labels, index=crowd.item_ids.to_pylist()))
        found[-1, column] = right(crowd, peer_labels("DawidSkene", frame))
    lines = [
        "### Few labels per worker",
        "",
        f"1,000 tasks, 4 classes, 5 labels per task of 625 workers (8 each), {len(SEEDS)} seeds.",
        "",
        "| method | accuracy, % | s.d. over seeds |",
        "|---|---:|---:|",
    ]
    lines += [
        f"| {name} | {values.mean() * 100:.2f} | {values.std(ddof=1) * 100:.2f} |"
        for name, values in zip(names, found, strict=True)
    ]
    return "\n".join(lines)


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise `TooLongError` in the block when its time is over; for work in Python."""

    def stop(*_: Any) -> None:
        raise TooLongError(f"more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _accuracy_table(names: list[str], sets: list[str], accuracy: Any) -> str:
    ranks = np.full_like(accuracy, NAN)
    ranks[1:] = rankdata(-accuracy[1:], axis=0, nan_policy="omit")
    lines = [f"| method | {' | '.join(sets)} | mean | mean rank |", _rule(len(sets) + 2)]
    for name, values, rank in zip(names, accuracy, ranks, strict=True):
        cells = [_cell(100 * value, 2) for value in [*values, values.mean()]]
        place = _cell(float(np.nanmean(rank)), 2) if np.isfinite(rank).any() else "-"
        lines.append(f"| {_bold(name)} | {' | '.join(cells)} | {place} |")
    return "\n".join(lines)


def _seconds_table(names: list[str], sets: list[str], seconds: Any) -> str:
    lines = [f"| seconds | {' | '.join(sets)} | sum |", _rule(len(sets) + 1)]
    for name, values in zip(names[1:], seconds[1:], strict=True):
        cells = [_cell(value, 2) for value in [*values, values.sum()]]
        lines.append(f"| {_bold(name)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _rule(columns: int) -> str:
    return "|---|" + "---:|" * columns


def _cell(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def _bold(name: str) -> str:
    return f"**{name}**" if name == f"goldspan {DEFAULT}" else name


if __name__ == "__main__":
    print(report())
