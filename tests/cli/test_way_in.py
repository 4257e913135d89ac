"""What a newcomer types first is understood: groups of commands, completion, names of methods."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import goldspan
from campaign.tiny import plan_of
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.registry import ALIASES, METHODS, canonical, nearest
from goldspan.campaign import read_plan
from goldspan.cli import app
from goldspan.cli.app import GROUPS
from goldspan.errors import UnknownNameError
from test_docs import ROOT

GOLDSPAN = [sys.executable, "-c", "from goldspan.cli import main; main()"]
CROWD = str(ROOT / "examples" / "crowd.tsv")
TASKS = b"task,worker,label\n1,a,x\n1,b,x\n1,c,y\n2,a,y\n2,b,y\n2,c,y\n"


def call(*words):
    return CliRunner().invoke(app, list(words))


def test_every_command_is_in_one_group_of_the_help():
    from typer.main import get_command

    grouped = [name for names in GROUPS.values() for name in names]
    commands = get_command(app).commands.items()
    assert sorted(grouped) == sorted(name for name, one in commands if not one.hidden)
    shown = call("--help").stdout
    assert "goldspan init FILE --labels" in shown  # where to begin
    assert all(f"\n{title}:\n" in shown for title in GROUPS)
    assert all(f"\n  {name} " in shown for name in grouped)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_is_told_how_to_complete(shell):
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    words = [*GOLDSPAN, "--show-completion", shell]
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=True)
    assert "complete_" + shell in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("goldspan ag", ["aggregate", "agreement"]),
        ("goldspan aggregate x --method bsc-s", ["bsc-seq"]),
        ("goldspan convert x --to-format lab", ["label-studio"]),
    ],
)
def test_commands_methods_and_formats_are_completed(typed, offered):
    env = {
        **os.environ, "_GOLDSPAN_COMPLETE": "complete_bash", "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }  # fmt: skip
    name = "import sys; sys.argv[0] = 'goldspan'; from goldspan.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", name], capture_output=True, text=True, env=env)
    assert done.stdout.split() == offered, done.stderr


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("majority-vote", "mv-token"), ("MajorityVote", "mv-token"), ("MV", "mv-token"),
        ("dawid-skene", "ds"), ("DawidSkene", "ds"), ("Dawid Skene", "ds"),
        ("OneCoinDawidSkene", "one-coin"), ("ZeroBasedSkill", "zbs"), ("Wawa", "wawa"),
        ("GLAD", "glad"), ("MACE", "mace"), ("crf_ma", "crf-ma"),
        ("bsc", "bsc-seq"), ("BSC+crf", "bsc-seq+crf"), ("bsc_cv+words", "bsc-cv+words"),
        ("ds", "ds"), ("no-such", "no-such"),
    ],
)  # fmt: skip
def test_other_names_of_methods_are_understood(name, meant):
    assert canonical(name) == meant


def test_no_other_name_hides_a_method():
    assert not set(ALIASES) & set(METHODS)
    assert set(ALIASES.values()) <= set(METHODS)
    assert all(canonical(name) == meant for name, meant in ALIASES.items())


def test_they_are_understood_in_python_in_a_plan_and_on_the_command_line(tmp_path):
    assert goldspan.aggregate(TASKS, "dawid-skene").method == "ds"
    assert get_aggregator("BSC+crf").name == "bsc-seq+crf"
    assert read_plan(plan_of(aggregate={"method": "Dawid-Skene"})).method == "ds"
    path = tmp_path / "crowd.csv"
    path.write_bytes(TASKS)
    made = call("aggregate", str(path), "--method", "majority-vote")
    assert made.stdout == call("aggregate", str(path), "--method", "mv-token").stdout
    assert "mv-token: 2 items" in made.output
    made = call("aggregate", str(path), "-m", "bsc", "--tagger", str(tmp_path / "x.goldspan"))
    assert "--tagger needs a method with a CRF" in made.output


@pytest.mark.parametrize(("name", "near"), [("dawid-skeen", "ds"), ("majorty", "mv-token")])
def test_a_method_that_is_not_there_is_refused_with_the_one_that_may_be_meant(name, near):
    assert nearest(name) == near
    with pytest.raises(UnknownNameError, match=rf"unknown method '{name}'.*{near} may be meant"):
        get_aggregator(name)
    with pytest.raises(UnknownNameError, match=r"\(did you mean 'bsc-seq'\?\)$"):
        get_aggregator("bsc-sek")  # told once
    with pytest.raises(UnknownNameError) as caught:
        get_aggregator("xyzzy")
    assert "may be meant" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["agregate"], "'aggregate'"),
        (["plan", "chek"], "'check'"),
        (["aggregate", CROWD, "--mehtod", "ds"], "--method"),
    ],
)
def test_a_command_or_option_that_is_not_there_is_refused_with_one_that_may_be_meant(words, hint):
    result = call(*words)
    assert result.exit_code == 2
    assert hint in result.output


def test_the_name_of_a_format_in_the_place_of_an_encoding_is_understood(tmp_path):
    by_format, by_encoding = tmp_path / "a.json", tmp_path / "b.json"
    call("convert", CROWD, "--to-format", "label-studio", "-o", str(by_format))
    result = call("convert", CROWD, "--to", "label-studio", "-o", str(by_encoding))
    assert result.exit_code == 0, result.output
    assert by_format.read_bytes() == by_encoding.read_bytes()
    back = call("convert", str(by_format), "--from", "label-studio", "-o", str(tmp_path / "c.tsv"))
    assert back.exit_code == 0, back.output


def test_what_is_neither_encoding_nor_format_is_refused_with_both_lists():
    result = call("convert", CROWD, "--to", "label-studo")
    assert isinstance(result.exception, UnknownNameError)
    said = str(result.exception)
    assert "unknown encoding in --to 'label-studo': choose from IOB, BIO" in said
    assert "formats are named by --to-format: parquet" in said
    both = call("convert", CROWD, "--to", "brat", "--to-format", "doccano")
    assert both.exit_code == 2
    assert "names another" in both.output
