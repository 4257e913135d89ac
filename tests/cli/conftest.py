"""Commands that are run in this process, in an empty folder."""

from __future__ import annotations

import sys

import pytest

from goldspan.cli import main


@pytest.fixture
def run(request, monkeypatch, capfd, tmp_path):
    """Run the module's COMMAND of `goldspan`; gives exit code, output and messages."""
    monkeypatch.chdir(tmp_path)
    command = getattr(request.module, "COMMAND", None)

    def call(*words):
        named = [] if command is None else [command]
        monkeypatch.setattr(sys, "argv", ["goldspan", *named, *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return end.value.code or 0, out, err

    return call
