"""`goldspan methods`: which methods, rules, simulated workers and taggers there are, by name."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from goldspan.aggregation.registry import METHODS, TEXTS, canonical
from goldspan.cli.options import AsJson, argument
from goldspan.cli.output import print_result, table
from goldspan.errors import UnknownNameError
from goldspan.plugins import load, plugins
from goldspan.simulation.registry import WORKERS

if TYPE_CHECKING:
    from goldspan.params import Parameter


@dataclass(frozen=True)
class Family:
    """Methods of one kind."""

    kind: str  # What one of them is
    use: str  # A command that uses one, with `{name}` in it
    # Their names, each with its place, "module:class", and what it does
    names: Mapping[str, tuple[str, str]]
    parameters: Callable[[Any], Iterable[Parameter]]  # Returns what can be set of a class
    # What may follow bsc methods after a plus
    suffixes: Mapping[str, str] = field(default_factory=dict)

    def shown(self, name: str) -> dict[str, Any]:
        """Return the facts of one of them without its parameters."""
        use = self.use.format(name=name)
        return {"name": name, "kind": self.kind, "summary": self.names[name][1], "use": use}

    def opened(self, name: str) -> dict[str, Any]:
        """Return the facts of one of them with its parameters."""
        found = self.parameters(load(self.names[name][0]))
        return {**self.shown(name), "parameters": list(map(_facts, found))}


def methods(
    name: str = argument("One of the names; without it all are listed.", "NAME", default=""),
    json: AsJson = False,
) -> None:
    """List methods, rules, simulated workers and taggers, or show the parameters of one.

    A parameter is shown with its default, the values that it may have, and what it means.

    Examples:

      goldspan methods

      goldspan methods bsc-seq
    """
    families = _families()
    if not name:
        every = [one.shown(key) for one in families for key in one.names]
        print_result({"methods": every}, _list(families), as_json=json)
        return
    found = [one.opened(key) for one in families for key in _named(one, name)]
    if not found:
        raise UnknownNameError("method", name, [key for one in families for key in one.names])
    lines = (line for one in found for line in _details(one))
    print_result({"methods": found}, lines, as_json=json)


def _families() -> list[Family]:
    from goldspan.params import parameters
    from goldspan.selection.registry import SELECTORS
    from goldspan.simulation.crowd import arguments
    from goldspan.workers.stopping import RULES

    def known(names: Mapping[str, tuple[str, str]], group: str) -> dict[str, tuple[str, str]]:
        others = {name: (place, "of another package") for name, place in plugins(group).items()}
        return {**names, **others}

    together = {
        f"{base}+{text}": (place, f"{summary}, {what}")
        for base, (place, summary) in METHODS.items() if base.startswith("bsc-")
        for text, what in TEXTS.items()
    }  # fmt: skip
    taggers = {
        "crf": ("goldspan.tagger:CRF", "a linear-chain CRF: slower to train, more accurate"),
        "hmm": (
            "goldspan.tagger:HMM",
            "a hidden Markov model: trains in one pass if all tags are known",
        ),
    }
    return [
        Family("method of aggregation",
               "goldspan aggregate FILE --method {name} --param NAME=VALUE",
               known({**METHODS, **together}, "goldspan.methods"), parameters, TEXTS),
        Family("rule for another answer", 'goldspan next FILE --rule "{name}(NAME=VALUE)"',
               RULES, parameters),
        Family("rule that selects items", 'goldspan select POOL --by "{name}(NAME=VALUE)"',
               known(SELECTORS, "goldspan.selectors"), parameters),
        Family("simulated worker", 'goldspan simulate FILE --worker "{name}(NAME=VALUE)"',
               known(WORKERS, "goldspan.workers"), arguments),
        Family("tagger", "goldspan train {name} FILE", taggers, parameters),
    ]  # fmt: skip


def _named(family: Family, name: str) -> Iterator[str]:
    """Yield the name in a family, also of a method that other packages call otherwise."""
    known = canonical(name) if family.kind == "method of aggregation" else name
    if known in family.names:
        yield known


def _facts(one: Parameter) -> dict[str, Any]:
    default = None if one.is_required else one.default
    return {
        "name": one.name, "required": one.is_required, "default": default,
        "allowed": one.allowed, "help": one.doc,
    }  # fmt: skip


def _list(families: Iterable[Family]) -> Iterator[str]:
    for family in families:
        yield f"{family.kind.capitalize()}: {family.use.format(name='METHOD')}"
        rows = [[name, text] for name, (_, text) in family.names.items() if "+" not in name]
        rows += [[f"bsc-…+{name}", text] for name, text in family.suffixes.items()]
        yield textwrap.indent(table(rows), "  ")
        yield ""
    yield "The parameters of one: goldspan methods NAME"


def _details(one: Mapping[str, Any]) -> Iterator[str]:
    yield f"{one['name']}, a {one['kind']}: {one['summary']}"
    yield f"  {one['use']}"
    for facts in one["parameters"]:
        yield ""
        yield facts["name"] + (" (required)" if facts["required"] else f" = {facts['default']!r}")
        told = [facts["help"], f"Allowed: {facts['allowed']}." if facts["allowed"] else ""]
        for line in filter(None, told):
            yield textwrap.fill(line, 96, initial_indent="    ", subsequent_indent="    ")
    if not one["parameters"]:
        yield "  It has no parameters."
