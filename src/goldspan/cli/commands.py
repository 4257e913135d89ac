"""Commands and groups of commands: old names of either, and errors said with a command's options.

Commands and options that were renamed keep their old names for one version, hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from goldspan.cli.output import warn
from goldspan.errors import InputError


class Group(TyperGroup):
    """A group of commands, some of which were renamed."""

    old_names: ClassVar[Mapping[str, str]] = {}
    """The present names by the old ones."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called, also by its old name."""
        if args and args[0] in self.old_names:
            args = [_present(args[0], self.old_names[args[0]]), *args[1:]]
        return super().resolve_command(ctx, args)


class Command(TyperCommand):
    """A command."""

    old_options: ClassVar[Mapping[str, str]] = {}
    """The present options by the old ones."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line, also with old names of options."""
        return super().parse_args(ctx, [self._present(word) for word in args])

    def _present(self, word: str) -> str:
        name, equals, value = word.partition("=")
        if name not in self.old_options:
            return word
        return f"{_present(name, self.old_options[name])}{equals}{value}"

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


def command_with(old_options: Mapping[str, str]) -> type[Command]:
    """Return the class of a command with options that were renamed."""
    return type("Command", (Command,), {"old_options": old_options})


def _present(old: str, new: str) -> str:
    warn(f"goldspan: {old} is the old name of {new}, and will be removed in the next version")
    return new
