"""How surely people who paste a model's answers are found, and honest ones left alone.

Simulated people answer beside a model that labels silently (a probe), and one of them copies it
item by item with some probability. In the second part one worker of a public crowd plays the
probe: those crowds are older than language models, so that every flag is a false alarm, or people
who copied each other.

    python benchmarks/pasting.py
    python benchmarks/pasting.py --real $GOLDSPAN_DATA/classification
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import goldspan
from goldspan.crowd import Crowd
from goldspan.simulation import draw_truth, simulate_crowd
from goldspan.workers import find_quality_flags
from goldspan.workers.copying import PASTING

PEOPLE = 10
SEEDS = 20
SHARES = (0.3, 0.6, 1.0)
ANSWERS = (50, 100, 200, 400)


class Scene(NamedTuple):
    """Labels, answers per item, people, the model, and the one who copies it."""

    name: str
    n_labels: int
    per_item: int
    person: str
    model: str
    known: float = 0.0


SCENES = (
    Scene("4 labels, 3 answers each, model right in .9", 4, 3, "flip(0.15)", "flip(0.1)"),
    Scene("the same, model right in .8", 4, 3, "flip(0.15)", "flip(0.2)"),
    Scene("2 labels, 3 answers each, model right in .9", 2, 3, "flip(0.15)", "flip(0.1)"),
    Scene("4 labels, 2 answers each, model right in .9", 4, 2, "flip(0.15)", "flip(0.1)"),
    Scene("4 labels, 3 each, .9, 10 % of the items known", 4, 3, "flip(0.15)", "flip(0.1)", 0.1),
    Scene("good people (.96) and a good model (.96)", 4, 3, "flip(0.04)", "flip(0.04)"),
)


def without(crowd: Crowd, names: list[str]) -> tuple[Crowd, Crowd]:
    """Return the crowd without some workers, and those alone."""
    inside = np.isin(np.array(crowd.worker_ids.to_pylist()), names)
    return crowd.select_workers(np.flatnonzero(~inside)), crowd.select_workers(
        np.flatnonzero(inside)
    )


def thin(crowd: Crowd, per_item: int, seed: int) -> Crowd:
    """Keep so many answers of every item, drawn at random."""
    answers, rng = crowd.answers, np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(answers)), answers.item))
    rank = np.arange(len(answers)) - np.searchsorted(answers.item[order], answers.item[order])
    return replace(crowd, answers=answers.take(np.sort(order[rank < per_item])))


def flagged(scene: Scene, n: int, share: float, seed: int) -> set[str]:
    """Return who is flagged in one crowd in which everybody gives about n answers."""
    truth = draw_truth(n * PEOPLE // scene.per_item, scene.n_labels, seed=seed)
    team = {f"w{k}": scene.person for k in range(PEOPLE - 1)} | {"gpt": scene.model}
    team["eve"] = f"{scene.person} + copier(gpt, {share})" if share else scene.person
    people, model = without(simulate_crowd(truth, team, seed=seed), ["gpt"])
    people = thin(people, scene.per_item, seed)
    is_known = np.random.default_rng(seed).random(people.n_tokens) < scene.known
    people = people.with_gold(np.where(is_known, people.gold, np.int16(-1)))
    found = find_quality_flags(
        people, kinds=PASTING, probes=model.with_gold(None),
        result=goldspan.aggregate(people, "mv-token"),
    )  # fmt: skip
    return {flag.worker for flag in found}


def simulated() -> None:
    """Print a table of simulated crowds."""
    print("| crowd | pasted | " + " | ".join(f"{n} answers" for n in ANSWERS) + " |")
    print("|---|---:|" + "---:|" * len(ANSWERS))
    for scene in SCENES:
        alarms, honest, nobody = 0, 0, []
        for share in (0.0, *SHARES):
            row = []
            for n in ANSWERS:
                found = [flagged(scene, n, share, seed) for seed in range(SEEDS)]
                row.append(sum("eve" in names for names in found))
                alarms += sum(len(names - {"eve"}) for names in found)
                honest += SEEDS * (PEOPLE - 1)
            if share:
                cells = " | ".join(f"{100 * hits // SEEDS} %" for hits in row)
                print(f"| {scene.name} | {share:g} | {cells} |", flush=True)
            else:
                nobody = row
        honest, alarms = honest + SEEDS * len(ANSWERS), alarms + sum(nobody)
        print(f"| … honest people with a flag | | {alarms} of {honest:,} | | | |", flush=True)


def real(folder: Path, n_probes: int = 8) -> None:
    """Print the flags of public crowds, each of the busiest workers being the probe once."""
    print("| crowd | people and probes | flags by known labels | by the others alone |")
    print("|---|---:|---:|---:|")
    for path in sorted(folder.iterdir()):
        file = next(iter(sorted(path.glob("labels.csv*"))), None)
        if file is None:
            continue
        try:
            crowd = goldspan.read_crowd(file, gold=path / "truth.csv")
        except goldspan.GoldspanError as error:
            print(f"| {path.name}: {str(error)[:60]} | | | |")
            continue
        n = np.bincount(crowd.latest.worker, minlength=crowd.n_workers)
        names = [crowd.worker_ids[int(k)].as_py() for k in np.argsort(-n, kind="stable")[:n_probes]]
        flags, judged = [0, 0], 0
        for name in names:
            people, probe = without(crowd, [name])
            judged += people.n_workers
            for k, one in enumerate((people, people.with_gold(None))):
                flags[k] += len(
                    find_quality_flags(
                        one, kinds=PASTING, probes=probe.with_gold(None),
                        result=goldspan.aggregate(one, "mv-token"),
                    )
                )  # fmt: skip
        print(f"| {path.name} | {judged:,} | {flags[0]} | {flags[1]} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--real", type=Path, help="a folder of public crowds of single labels")
    given = parser.parse_args()
    real(given.real) if given.real else simulated()
