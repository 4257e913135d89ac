"""Campaigns of some twenty items that run in a second."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from goldspan.campaign import Campaign, read_inputs, read_plan
from goldspan.simulation.crowd import BEGIN
from goldspan.store import create_ledger, open_ledger

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

    def words(value):
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {words(v)}" for key, v in value.items()) + " }"
        if isinstance(value, list):
            return f"[{', '.join(map(words, value))}]"
        return json.dumps(value)

    plain = [f"{key} = {json.dumps(v)}" for key, v in plan.items() if not isinstance(v, dict)]
    tables = [(key, value) for key, value in plan.items() if isinstance(value, dict)]
    for name, table in tables:
        plain += [f"[{name}]", *(f"{key} = {words(v)}" for key, v in table.items())]
    return "\n".join(plain) + "\n"


def inputs_of(folder, **sections):
    return read_inputs(read_plan(plan_of(**sections)), folder, allow_code=["campaign.rules"])


def ledger_of(inputs, place):
    plan = inputs.plan
    return create_ledger(
        place, name=plan.name, cap=plan.cap, currency="", now=BEGIN,
        tagset=plan.tagset,
    )  # fmt: skip


def telling(lines):
    """Return an observer that adds what it hears to a list of lines."""
    return lambda event: lines.extend(event.lines())


def campaign_of(folder, place=None, **sections):
    """Make a campaign over a new ledger."""
    inputs = inputs_of(folder, **sections)
    return Campaign(inputs, ledger_of(inputs, place or folder / "campaign.sqlite"))


class Break(Exception):  # noqa: N818 - it is no error
    """Ends the process's work at a call, before or after it took effect."""


class Breaking:
    """A ledger that breaks off at its n-th writing call."""

    WRITING = (
        "add_items", "open_batch", "adjust", "lease", "submit", "bar", "set_gold", "record",
        "begin_version", "release", "charge",
    )  # fmt: skip

    def __init__(self, ledger, n, *, after):
        self.ledger, self.left, self.after = ledger, n, after

    def __getattr__(self, name):
        method = getattr(self.ledger, name)
        if name not in self.WRITING:
            return method

        def call(*args, **kwargs):
            self.left -= 1
            if self.left == 0 and not self.after:
                raise Break
            value = method(*args, **kwargs)
            if self.left == 0:
                raise Break
            return value

        return call


def ends_with_the_same_log(folder, inputs, step):
    """Break a campaign off at every so-many-th call, in turn before and after it took effect."""
    # Before a call is after the one before: what is in memory is lost in either case.
    with ledger_of(inputs, folder / "whole.sqlite") as ledger:
        counting = Breaking(ledger, 0, after=False)
        Campaign(inputs, counting).run()
        head, n_calls = ledger.head, -counting.left
    for n in range(3, n_calls, step):
        place = folder / f"{n}.sqlite"
        with ledger_of(inputs, place) as ledger, pytest.raises(Break):
            Campaign(inputs, Breaking(ledger, n, after=bool(n // step % 2))).run()
        with open_ledger(place) as again:
            Campaign(inputs, again).run()
            assert again.head == head
