"""Names of commands and options that were renamed: the old ones work for one version, hidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typer.core import TyperCommand, TyperGroup

from goldspan.cli.output import warn


class Group(TyperGroup):
    """A group of commands, some of which were renamed."""

    old_names: ClassVar[Mapping[str, str]] = {}
    """The present names by the old ones."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called, also by its old name."""
        if args and args[0] in self.old_names:
            args = [_present(args[0], self.old_names[args[0]]), *args[1:]]
        return super().resolve_command(ctx, args)


def renamed_options(old: Mapping[str, str]) -> type[TyperCommand]:
    """Return the class of a command whose options have old names too."""

    class Renamed(TyperCommand):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            return super().parse_args(ctx, [_option(word, old) for word in args])

    return Renamed if old else TyperCommand


def _option(word: str, old: Mapping[str, str]) -> str:
    name, equals, value = word.partition("=")
    return f"{_present(name, old[name])}{equals}{value}" if name in old else word


def _present(old: str, new: str) -> str:
    warn(f"goldspan: {old} is the old name of {new}, and goes with the next version")
    return new
