"""Campaigns of some twenty items that run in a second."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from goldspan.campaign import Campaign, read_inputs, read_plan
from goldspan.simulation.crowd import BEGIN
from goldspan.store import create_ledger

WORDS = {"rain": ["wet", "cloud", "grey", "storm"], "sun": ["warm", "bright", "blue", "dry"]}
PLAN = {
    "name": "weather",
    "seed": 3,
    "task": {"labels": ["rain", "sun"]},
    "pool": {"file": "pool.jsonl"},
    "crowd": {"source": "simulated", "truth": "truth.csv", "workers": ["flip(0.1) x5"]},
    "redundancy": {"min": 2, "max": 4},
    "prices": {"per_answer": "0.05"},
    "budget": {"money": "8"},
    "select": {"by": "random", "batch": 10},
    "model": {"name": "naive-bayes"},
    "aggregate": {"method": "one-coin"},
}


def plan_of(changes=None, **sections):
    """Return the tiny plan with other sections; keys of a section that are given replace its own.

    None takes a section out.
    """
    made = copy.deepcopy(PLAN)
    for name, section in {**(changes or {}), **sections}.items():
        old = made.get(name)
        made[name] = (
            {**old, **section} if isinstance(old, dict) and section is not None else section
        )
    return {name: section for name, section in made.items() if section is not None}


def write_files(folder: Path, n=20):
    """Write the pool and its truth."""
    rows, truth = [], ["item,label"]
    for i in range(n):
        label = "rain" if i % 3 else "sun"
        words = WORDS[label]
        text = f"{words[i % 4]} and {words[(i // 4) % 4]} day {i}"
        rows.append(json.dumps({"id": f"d{i}", "text": text}))
        truth.append(f"d{i},{label}")
    (folder / "pool.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "truth.csv").write_text("\n".join(truth) + "\n")


def write_spans(folder: Path, n=24):
    """Write a pool of sentences with names of places, in a file that holds their gold too."""
    lines = []
    for i in range(n):
        place = ["Rome", "Paris", "New York", "Kiel"][i % 4].split()
        words = [["We", "saw"], ["Ann", "left"], ["They", "love"]][i % 3]
        tags = ["O", "O", "B-LOC", *["I-LOC"] * (len(place) - 1), "O"]
        lines += [f"{w}\t{t}" for w, t in zip([*words, *place, "."], tags, strict=True)] + [""]
    (folder / "gold.conll").write_text("\n".join(lines) + "\n")


SPANS = {
    "task": {"types": ["LOC"], "labels": []},
    "pool": {"file": "gold.conll"},
    "crowd": {"truth": "gold.conll"},
    "aggregate": {"method": "ibcc"},
    "model": {"name": "hmm"},
}


def toml(plan):
    """Write a plan as TOML."""
    plain = [f"{key} = {json.dumps(v)}" for key, v in plan.items() if not isinstance(v, dict)]
    tables = [(key, value) for key, value in plan.items() if isinstance(value, dict)]
    for name, table in tables:
        plain += [f"[{name}]", *(f"{key} = {json.dumps(v)}" for key, v in table.items())]
    return "\n".join(plain) + "\n"


def inputs_of(folder, **sections):
    return read_inputs(read_plan(plan_of(**sections)), folder)


def ledger_of(inputs, place):
    plan = inputs.plan
    return create_ledger(
        place, name=plan.name, cap=plan.cap, currency="", now=BEGIN,
        tagset=inputs.codec,
    )  # fmt: skip


def campaign_of(folder, place=None, **sections):
    """Make a campaign over a new ledger."""
    inputs = inputs_of(folder, **sections)
    return Campaign(inputs, ledger_of(inputs, place or folder / "campaign.sqlite"))
