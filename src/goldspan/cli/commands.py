"""Commands and groups of commands: their help, and errors with the names of options.

Help is plain text, which Click wraps. `--help` leaves out the groups of options whose title begins
with "More"; `--help-all` shows them too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from goldspan.cli.output import warn
from goldspan.errors import InputError

RARE = "More"
"""How the titles of groups of options begin that only `--help-all` shows."""
_WIDTH = 26
_TYPES = re.compile(r"<(?:list\[)?(str|int|float)( range)?\]?>")


class Command(TyperCommand):
    """A command."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.rich_markup_mode = None
        if any(_group(one).startswith(RARE) for one in self.params):
            self.params.append(_help_all_option())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; messages are ours, not Pydantic's."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List arguments and options in their groups."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            record, title = one.get_help_record(ctx), _group(one)
            if record is not None and (ctx.meta.get(RARE) or not title.startswith(RARE)):
                name, text = record
                kind = "" if one.param_type_name == "argument" else _value_name
                groups.setdefault(title, []).append((_TYPES.sub(kind, name).strip(), text))
        width = max(len(name) for rows in groups.values() for name, _ in rows)
        for title in sorted(groups, key=_rank):
            with formatter.section(title):
                rows = [(name.ljust(min(width, _WIDTH)), text) for name, text in groups[title]]
                formatter.write_dl(rows, col_max=_WIDTH)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a message about a parameter of the library names its option."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            if not (error.parameter or error.hint):
                raise
            options = {str(one.name): max(one.opts, key=len) for one in self.params if one.opts}
            warn(f"goldspan: {error.worded(options)}")
            raise typer.Exit(1) from None


class Group(TyperGroup):
    """Commands; without arguments their help is shown, which Typer itself loses if it is plain."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, or show the help."""
        if not args and not ctx.resilient_parsing:
            print(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)


T = TypeVar("T", bound=Callable[..., Any])


class Commands(typer.Typer):
    """Subcommands of a command."""

    def __init__(self, **settings: Any) -> None:
        usual: dict[str, Any] = {"cls": Group, "rich_markup_mode": None}
        usual["context_settings"] = {"help_option_names": ["-h", "--help"]}
        super().__init__(add_completion=False, **usual | settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[T], T]:
        """Return the decorator that adds a function as a subcommand."""
        return super().command(name, **{"cls": Command} | settings)


def _show_all(ctx: typer.Context, value: bool) -> None:
    if value:
        ctx.meta[RARE] = True
        print(ctx.get_help())
        raise typer.Exit


_HELP = "Show all options, also those that are rarely needed."
_SHOWN = typer.Option(
    "--help-all", help=_HELP, callback=_show_all, is_eager=True, expose_value=False
)


def _with_help_all(help_all: Annotated[bool, _SHOWN] = False) -> None:
    del help_all


@cache
def _help_all_option() -> Any:
    """Return the option as Typer makes it from the parameter of a function."""
    app = typer.Typer(add_completion=False)
    app.command()(_with_help_all)
    return typer.main.get_command(app).params[0]


def _group(parameter: Any) -> str:
    """Return the title of the group that a parameter is listed in."""
    usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
    return getattr(parameter, "rich_help_panel", None) or usual


def _rank(title: str) -> int:
    """Return where a group is listed: arguments, options, groups of the command, rare ones."""
    order = ("Arguments", "Options", "", "Reading", f"{RARE} options", RARE)
    return order.index(title if title in order else RARE if title.startswith(RARE) else "")


def _value_name(found: re.Match[str]) -> str:
    return "TEXT" if found[1] == "str" else "NUMBER"
