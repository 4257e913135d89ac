"""The `goldspan` command: which commands there are, and how a command line begins and ends.

Exit codes: 0 done, 1 the input was rejected, 2 wrong usage, 3 `verify` found a damaged store, 130
interrupted. Messages go to standard error, results to standard output.
The module of a command is imported when the command is called, and not for the list of `--help`.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from goldspan import __version__
from goldspan.cli.commands import Command, Group
from goldspan.cli.output import compiling_shown, discard_output, leave_quietly, warn
from goldspan.errors import GoldspanError

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Campaigns": {
        "init": ("init", "Write a plan for labelling your own texts, or an example."),
        "plan": ("campaign", "Check what a plan will do and what it will cost."),
        "run": (
            "campaign",
            "Run a campaign from a plan: collect answers, aggregate, train, write labels and bill.",
        ),
        "serve": ("serve", "Serve campaigns: a page for annotators, pages for the requester."),
        "desk": ("desk", "Use the requester's pages (the desk) of a campaign without a browser."),
        "tokens": (
            "contact",
            "Make, list and revoke tokens for programs that use the desk's API.",
        ),
        "webhooks": ("contact", "Show webhook messages and their state; send failed ones again."),
        "report": ("campaign", "Write the report of a campaign, even while it runs."),
    },
    "A campaign's store and payments": {
        "verify": ("store", "Check that a campaign's store agrees with its log."),
        "backup": ("store", "Copy a campaign into one file, even while it is served."),
        "restore": ("store", "Restore a campaign from a backup."),
        "forget": ("store", "Erase a person from a campaign, or show what is stored about them."),
        "payments": (
            "contact",
            "Send approvals, rejections and bonuses to the provider, each only once.",
        ),
    },
    "Answers": {
        "aggregate": ("answers", "Combine annotators' answers into labels with a confidence."),
        "score": ("answers", "Measure precision, recall and F1 against the truth."),
        "audit": ("audit", "Find out how good labels are: a person checks some of them."),
        "agreement": ("answers", "Measure how well the annotators agree."),
        "label": ("labelling", "Let models and functions label a file, without a campaign."),
    },
    "People": {
        "workers": (
            "people",
            "Show which annotators to keep, drop or test more, and select a team.",
        ),
        "next": ("people:next_answers", "Show which items need another answer, and from whom."),
        "qualification": ("questions", "Compute how long a qualification test must be."),
        "gold-questions": (
            "questions",
            "Choose gold questions, or check whether they have leaked.",
        ),
        "bill": ("people", "Show what each annotator is paid, and the total cost."),
        "invite": ("contact", "Make, list and revoke annotators' links to a served campaign."),
    },
    "Items": {
        "select": ("items", "Choose the items of a pool that are worth labelling."),
        "simulate": ("items", "Let simulated workers answer items whose truth is known."),
    },
    "Models": {
        "train": ("models", "Train a tagger on labelled items."),
        "tag": ("models", "Label text with a trained tagger."),
        "tagger": ("models", "Inspect a trained tagger, or export it."),
    },
    "Files": {
        "inspect": ("files", "Show what a file contains, its faults, and the next command to run."),
        "convert": ("files", "Convert a file to another encoding or another format."),
        "check": ("files", "Check whether tags are well-formed."),
    },
    "Reference": {
        "methods": ("methods", "List methods, rules and simulated workers, with their parameters."),
    },
}
"""The commands as `--help` lists them: the module of `goldspan.cli` and a summary of each."""
_TABLE = {name: one for group in GROUPS.values() for name, one in group.items()}
_INTERRUPTED = "goldspan: interrupted; nothing half-written is left behind"


def _epilog(name: str) -> str | None:
    """Return the list at the end of a command's help, from a registry."""
    if name == "simulate":
        from goldspan.simulation.registry import WORKERS

        return f"Kinds of workers: {', '.join(WORKERS)}. `goldspan methods NAME` explains one."
    if name in {"inspect", "convert"}:
        from goldspan.crowd.registry import FORMATS

        return f"Formats: {', '.join(FORMATS)}"
    return None


@cache
def _command(name: str) -> Any:
    """Return a command, or a group of commands, of its module; KeyError of no command."""
    home, summary = _TABLE[name]
    module, _, attribute = home.partition(":")
    attribute = attribute or name.replace("-", "_")
    found = getattr(import_module(f"goldspan.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False, rich_markup_mode=None)
        found.command(name, cls=Command, short_help=summary, epilog=_epilog(name))(function)
    command = typer.main.get_command(found)
    command.name = name
    return command


class _Loaded(Mapping[str, Any]):
    """The commands by name, each built from its module when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_TABLE)

    def __len__(self) -> int:
        return len(_TABLE)


class _Commands(Group):
    """All commands; their list is in plain text: Rich would double the time that it takes."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Loaded()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, without building the commands."""
        del ctx
        return list(self.commands)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Typer itself would end in silence after Ctrl-C."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            warn(_INTERRUPTED)
            raise typer.Exit(130) from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands by what they are for."""
        del ctx
        width = max(map(len, self.commands))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                rows = [(name.ljust(width), text) for name, (_, text) in commands.items()]
                formatter.write_dl(rows)


app = typer.Typer(
    name="goldspan",
    cls=_Commands,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        print(f"goldspan {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Turn the annotations of several people into gold labels with a confidence.

    To label your own texts: goldspan init FILE --labels NAMES

    If you already have annotations: goldspan inspect FILE
    """
    del version


_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


def main(commands: typer.Typer = app) -> None:
    """Run a command line and end the process with the right code."""
    try:
        code = _run(commands)
        sys.stdout.flush()
    except BrokenPipeError:
        leave_quietly()
    except OSError as error:  # where no room is left, or a disk has become read-only or ill
        if error.errno not in _OF_THE_DISK:
            raise
        warn(f"goldspan: cannot write {error.filename or 'the output'}: {error.strerror}")
        code = 1
        discard_output()
    sys.exit(code)


def _run(commands: typer.Typer) -> int | str | None:
    try:
        with compiling_shown():
            commands()
    except SystemExit as end:
        return end.code
    except GoldspanError as error:
        for line in (f"goldspan: {error}", *getattr(error, "__notes__", ())):
            warn(line)
        return 1
    except KeyboardInterrupt:
        warn(_INTERRUPTED)
        return 130
    except MemoryError:
        warn("goldspan: not enough memory for this input")
        return 1
    return 0
