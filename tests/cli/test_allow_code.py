"""A plan is data: no command imports what it names, unless that was allowed by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from campaign.tiny import plan_of, toml, write_files
from goldspan.web import load_keys, open_service

EVIL = "from pathlib import Path\nPath('ran').touch()\ndef f(items): return ['rain'] * len(items)\n"
WORKERS = """
[[crowd.workers]]
id = "rules"
kind = "python"
call = "evil:f"
[[crowd.workers]]
id = "people"
kind = "people"
"""


def write(folder, call="evil:f"):
    """Write a plan whose worker runs the file beside it."""
    write_files(folder)
    (folder / "evil.py").write_text(EVIL)
    made = plan_of()
    made["crowd"] = {"source": "mixed"}
    (folder / "campaign.toml").write_text(toml(made) + WORKERS.replace("evil:f", call))


@pytest.mark.parametrize(
    "words",
    ["plan check", "run", "serve", "desk overview", "desk workers", "desk item d1", "desk pause",
     "desk export record.json", "invite --workers ann", "tokens list", "webhooks", "verify",
     "forget ann", "payments", "backup b.sqlite",
     "label pool.jsonl --labels rain,sun --kind single -w"],
)  # fmt: skip
def test_no_command_runs_the_code_that_a_plan_names(run, tmp_path, monkeypatch, words):
    write(tmp_path)
    with closing(open_service("campaign.toml", "out", load_keys("out"))) as service:
        service.begin()
    monkeypatch.syspath_prepend(tmp_path)  # were it imported, it would be found
    command, *more = words.split()
    subcommand = [more.pop(0)] if command in {"plan", "desk", "tokens"} else []
    at_end = command == "label"
    plan = [*more, "campaign.toml"] if at_end else ["campaign.toml", *more]
    code, _, told = run(command, *subcommand, *plan)
    assert "Usage" not in told
    assert not Path("ran").exists()
    if command in {"run", "serve", "label"}:
        assert code == 1
        assert told == (
            "goldspan: worker rules runs code of the module evil: if you trust it, add "
            "--allow-code evil, or for a file its path, --allow-code ./evil.py\n"
        )


def test_a_file_under_its_path_has_functions_of_several_workers(run, tmp_path):
    write_files(tmp_path)
    Path("evil.py").write_text(EVIL)
    made = plan_of(redundancy={"min": 2, "max": 2}) | {"crowd": {"source": "mixed"}}
    own = "".join(
        f'[[crowd.workers]]\nid = "{one}"\nkind = "python"\ncall = "./evil.py:f"\n' for one in "ab"
    )
    Path("campaign.toml").write_text(f"{toml(made)}\n{own}")
    assert run("run", "campaign.toml", "--allow-code", "./evil.py")[0] == 0


def python_m(folder, *words):
    """Run `python -m goldspan` in a folder, which Python itself puts before all others."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-m", "goldspan", *words], cwd=folder, env=env, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def test_a_file_beside_the_plan_runs_where_its_path_is_given_and_only_then(tmp_path):
    write(tmp_path)
    told = python_m(tmp_path, "run", "campaign.toml", "--allow-code", "evil").stderr
    assert "cannot import evil: No module named 'evil'" in told
    assert not (tmp_path / "ran").exists()
    done = python_m(tmp_path, "run", "campaign.toml", "--allow-code", "./evil.py")
    assert "waiting for" in done.stdout, done.stderr
    assert "--allow-code ./evil.py" in done.stdout  # in the command that goes on
    assert (tmp_path / "ran").exists()


def test_what_lies_beside_the_plan_is_no_installed_module(tmp_path):
    """Neither under the name of a package, nor as an entry point."""
    write(tmp_path, call="planted")
    for name in ("sklearn", "scipy", "matplotlib", "fastapi"):
        (tmp_path / f"{name}.py").write_text(EVIL)
    (tmp_path / "evil-1.dist-info").mkdir()
    points = "[goldspan.annotators]\nplanted = evil:f\n"
    (tmp_path / "evil-1.dist-info" / "entry_points.txt").write_text(points)
    assert python_m(tmp_path, "plan", "check", "campaign.toml").returncode == 0
    told = python_m(tmp_path, "run", "campaign.toml").stderr
    assert "'planted' must look like module:function, or be an entry point" in told
    assert not (tmp_path / "ran").exists()
