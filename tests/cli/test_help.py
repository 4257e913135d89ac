"""`--help` of every command: short, wrapped, with an example; `--help-all` has the rest."""

from __future__ import annotations

import re
import sys
from itertools import pairwise

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from goldspan.cli.app import app, main

TWO_SCREENS = 100
"""Lines, of 80 columns."""


def commands(command, words=()):
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        if not one.hidden:
            yield from commands(one, (*words, name))


COMMANDS = dict(commands(get_command(app)))


def help_of(words, option="--help"):
    shown = CliRunner().invoke(app, [*words, option], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    return shown.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_a_command_is_short_and_has_examples(words):
    text = help_of(words)
    lines = text.splitlines()
    assert len(lines) <= TWO_SCREENS
    assert max(map(len, lines)) <= 80
    if not hasattr(COMMANDS[words], "commands"):
        examples = re.findall(r"^    goldspan .*", text, re.MULTILINE)
        assert 1 <= len(examples) <= 3
        assert all(f"goldspan {' '.join(words)} " in f"{one} " for one in examples)


GROUPS = [words for words, one in COMMANDS.items() if hasattr(one, "commands")]


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_group_without_arguments_shows_its_help(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["goldspan", *words])
    with pytest.raises(SystemExit, match="2"):
        main()
    shown = capsys.readouterr().out
    assert f"Usage: {' '.join(['goldspan', *words])} " in shown
    assert all(f"\n  {name} " in shown for name in COMMANDS[words].commands)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_paragraph_fills_its_lines(words):
    paragraphs = help_of(words).split("\n\n")[1:]
    for lines in (one.splitlines() for one in paragraphs if one.startswith("  ")):
        for line, following in pairwise(lines):
            assert re.match(r" +-| +[A-Z]+ {2}", following) or len(line) > 80 - 22


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_all_has_every_option(words):
    options = [name for one in COMMANDS[words].params for name in one.opts if name[:2] == "--"]
    text = help_of(words)
    if "--help-all" in text:
        assert not all(re.search(rf"{name}\\b", text) for name in options)
        text = help_of(words, "--help-all")
    assert all(name in text for name in options)


def test_options_are_in_groups_and_rare_ones_are_left_out():
    text, every = help_of(["workers"]), help_of(["workers"], "--help-all")
    titles = ["Arguments", "Options", "Team", "Reading", "More options", "More about reading"]
    assert re.findall(r"^(\w.*):$", every, re.MULTILINE) == titles
    assert re.findall(r"^(\w.*):$", text, re.MULTILINE) == titles[:4]
    assert "--strict" in every
    assert "--strict" not in text
