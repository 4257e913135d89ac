"""The first run says that it compiles; a run that needs no kernel compiles none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from campaign.tiny import SPANS, inputs_of, plan_of, write_spans
from goldspan.aggregation.registry import METHODS
from goldspan.campaign import model as preflight
from goldspan.campaign import read_plan
from goldspan.cli.output import COMPILING
from goldspan.selection import selectors
from test_docs import ROOT

GOLDSPAN = [sys.executable, "-c", "from goldspan.cli import main; main()"]
COMPILE = """
import numpy as np
from goldspan.cli.output import compiling_shown
with compiling_shown():
    from goldspan.tagger.kernels import dot
    print(dot(np.ones(3), np.ones(3)), dot(np.ones(4), np.ones(4)))
"""


def run(cache, *words):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([*GOLDSPAN, *words], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done


def test_the_first_run_says_once_that_it_compiles_and_the_next_one_does_not(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=env)
        for _ in range(2)
    )
    assert (first.stdout, first.stderr) == ("3.0 4.0\n", f"{COMPILING}\n")
    assert (second.stdout, second.stderr) == ("3.0 4.0\n", "")


def test_environments_share_what_was_compiled_as_long_as_nothing_it_is_made_of_changes(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    for name in ("one", "other"):
        home = ROOT / "src" / "goldspan"
        shutil.copytree(home, tmp_path / name / "goldspan",
                        ignore=shutil.ignore_patterns("__pycache__", "static"))  # fmt: skip

    def compiles(name):
        env["PYTHONPATH"] = str(tmp_path / name)
        done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True,
                              env=env, check=True)  # fmt: skip
        assert done.stdout == "3.0 4.0\n"
        return COMPILING in done.stderr

    assert compiles("one")
    assert not compiles("other")
    callee = tmp_path / "other" / "goldspan" / "chains" / "forward_backward.py"
    callee.write_text(callee.read_text() + "\n# another state\n")
    assert compiles("other")
    assert not compiles("one")


def test_checking_a_plan_compiles_nothing(tmp_path):
    cache = tmp_path / "cache"
    for plan in ("campaign.toml", "serve.toml"):
        done = run(cache, "plan", "check", str(ROOT / "examples" / plan))
        assert COMPILING not in done.stderr
    assert not list(cache.rglob("*.nbi"))


@pytest.mark.parametrize("rule", sorted(preflight.ANY_METHOD))
@pytest.mark.parametrize("method", sorted(preflight.ANY_TASK))
def test_what_a_plan_is_not_tried_for_does_suit(method, rule, monkeypatch):
    monkeypatch.setattr(preflight, "ANY_TASK", set())
    written = {"confident": "confident(0.9)", "fixed": "fixed(3)"}.get(rule, "clear_majority(2)")
    preflight.try_method(["no", "yes"], [], "", method, {}, written)
    preflight.try_method([], ["PER", "LOC"], "IOBES", method, {}, written)


@pytest.mark.parametrize("model", ["auto", "crf", "hmm"])
def test_any_rule_but_those_of_committees_can_ask_a_tagger(tmp_path, model, monkeypatch):
    write_spans(tmp_path)
    monkeypatch.setattr(preflight, "_is_known_to_suit", lambda _: False)
    rules = sorted({*selectors()} - preflight.COMMITTEES)
    by = ", then ".join(rules)
    select = {"by": by, "errors": True}
    assert inputs_of(tmp_path, **{**SPANS, "model": {"name": model}, "select": select})


def test_what_is_not_known_to_suit_is_still_tried():
    rest = {name for name in METHODS if name not in preflight.ANY_TASK}
    assert {"mv-token", "crf-ma", "glad"} <= rest
    sections = {"aggregate": {"method": "ds", "params": {"tol": "x"}}}
    with pytest.raises(ValueError, match="aggregate"):
        read_plan(plan_of(sections))
