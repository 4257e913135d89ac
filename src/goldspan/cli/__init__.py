"""The `goldspan` command: a thin shell over the library.

Exit codes: 0 done, 1 the input was refused, 2 wrong usage, 3 `verify` found a store that is not
whole, 130 interrupted. Messages go to standard error, results to standard output.
Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from goldspan import __version__
from goldspan.cli.aggregate import aggregate
from goldspan.cli.agree import agree
from goldspan.cli.backup import backup, restore
from goldspan.cli.bill import bill
from goldspan.cli.check import check
from goldspan.cli.compiling import notice
from goldspan.cli.control import control
from goldspan.cli.convert import convert
from goldspan.cli.desk import desk
from goldspan.cli.forget import forget
from goldspan.cli.init import init
from goldspan.cli.inspect import inspect
from goldspan.cli.links import links
from goldspan.cli.next import next  # noqa: A004 - the command's name
from goldspan.cli.outbox import outbox
from goldspan.cli.output import leave_quietly, warn
from goldspan.cli.plan import plan
from goldspan.cli.plan_test import plan_test
from goldspan.cli.report import report
from goldspan.cli.run import run
from goldspan.cli.score import score
from goldspan.cli.select import select
from goldspan.cli.serve import serve
from goldspan.cli.simulate import simulate
from goldspan.cli.tag import tag
from goldspan.cli.tagger import tagger
from goldspan.cli.train import train
from goldspan.cli.verify import verify
from goldspan.cli.workers import workers
from goldspan.errors import GoldspanError, InputError
from goldspan.old_name import OldNameWarning

_GROUPS = {
    "Campaigns": ("init", "plan", "run", "serve", "links", "desk", "report"),
    "A campaign's store and payments": ("verify", "backup", "restore", "forget", "outbox"),
    "Answers": ("aggregate", "score", "agree"),
    "People": ("workers", "next", "plan-test", "control", "bill"),
    "Items": ("select", "simulate"),
    "Models": ("train", "tag", "tagger"),
    "Files": ("inspect", "convert", "check"),
}
"""The commands by what they are for, as `--help` lists them."""
_INTERRUPTED = "goldspan: interrupted; nothing half-written is left behind"


class _Commands(TyperGroup):
    """The list of commands, in plain text: Rich would double the time that `--help` takes."""

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
        limit = formatter.width - 6 - width
        for title, names in _GROUPS.items():
            short = [(name, self.commands[name].get_short_help_str(limit)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in short])


app = typer.Typer(
    name="goldspan",
    cls=_Commands,
    no_args_is_help=True,
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
    """From a crowd of imperfect annotators to gold.

    To label texts of your own: goldspan init FILE --labels NAMES

    With annotations that are there already: goldspan inspect FILE
    """
    del version


def _epilogs() -> dict[str, str]:
    """Lists at the end of a command's help, from the registries."""
    from goldspan.aggregation.registry import METHODS, TEXTS
    from goldspan.crowd.registry import FORMATS
    from goldspan.simulation.registry import WORKERS

    methods = [f"{name}: {text}" for name, (_, text) in METHODS.items()]
    methods += [f"bsc-…+{name}: {text}" for name, text in TEXTS.items()]
    formats = f"Formats: {', '.join(FORMATS)}"
    return {
        "aggregate": "\n\n".join(["Methods:", *methods, formats]),
        "simulate": f"Kinds of workers: {', '.join(WORKERS)}. --list says what each does.",
        "inspect": formats,
        "convert": formats,
    }


_COMMANDS: dict[Callable[..., None], str] = {
    init: "A plan to label texts of your own, or the example.",
    inspect: "What a file holds, what is wrong with it, what to run next.",
    aggregate: "From a crowd's answers to gold, with a confidence.",
    score: "Precision, recall and F1 against the truth.",
    agree: "How well the workers agree.",
    workers: "Whom to keep, drop or test more, and which team to hire.",
    check: "Whether tags are well-formed.",
    convert: "Another encoding, another format.",
    train: "From labelled items to a tagger.",
    tag: "Label text with a trained tagger.",
    simulate: "Simulated workers answer items whose truth is known.",
    select: "Which items of a pool are worth labelling.",
    next: "Which items need another answer, and whose.",
    plan_test: "How long a qualification test must be, before anybody is paid.",
    control: "Choose control questions, or see whether they have leaked.",
    bill: "What every worker gets, and what all of it costs.",
    run: "A whole campaign: pool + crowd + budget to gold, a model and the bill.",
    report: "The report of a campaign, also while it runs.",
    serve: "A campaign in browsers: a page for workers, a desk for its requester.",
    links: "Personal links for the workers of a campaign that is served.",
    outbox: "Approvals, rejections and bonuses for a crowd from outside, sent once.",
    verify: "Whether a campaign's store is what its log says.",
    backup: "A copy of a campaign in one file, also while it is served.",
    restore: "A campaign again, of a backup.",
    forget: "Erase a person from a campaign, or show what is stored of them.",
}
for command, summary in _COMMANDS.items():
    app.command(short_help=summary, epilog=_epilogs().get(command.__name__))(command)
app.add_typer(tagger, name="tagger")
app.add_typer(plan, name="plan")
app.add_typer(desk, name="desk")


@app.command(hidden=True, context_settings={"ignore_unknown_options": True})
def study(words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
    """Say where the replications of papers are: they were a command until version 0.2."""
    raise InputError(
        "the replications of papers are beside the package now: in a checkout of goldspan, run "
        f"`python -m studies {' '.join(words or ['NAME', '--data', 'DIR'])}`"
    )


def main(commands: typer.Typer = app) -> None:
    """Run a command line and end the process with the right code."""
    warnings.formatwarning = _one_line
    try:
        code = _run(commands)
        sys.stdout.flush()
    except BrokenPipeError:
        leave_quietly()
    sys.exit(code)


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Format a warning of an old name as a message to whoever typed the command."""
    if issubclass(category, OldNameWarning):
        return f"goldspan: {message}\n"
    return _usual(message, category, filename, lineno, line)


_usual = warnings.formatwarning


def _run(commands: typer.Typer) -> int | str | None:
    try:
        with notice.shown():
            commands()
    except SystemExit as end:
        return end.code
    except GoldspanError as error:
        warn(f"goldspan: {error}")
        return 1
    except KeyboardInterrupt:
        warn(_INTERRUPTED)
        return 130
    except MemoryError:
        warn("goldspan: not enough memory for this input")
        return 1
    return 0
