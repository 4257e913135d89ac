"""Options that several commands have: single ones, and groups that a decorator adds.

A command declares its own options in the place of defaults, with `option`, `flag` and `argument`.
Options of several commands are types (`AsJson`). A group takes the place of one parameter:
`@reads_crowd()` gives the option of every field of `goldspan.crowd.options.ReadOptions` to a
command with a parameter `reading`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.aggregation.registry import METHODS
from goldspan.cli.commands import RARE
from goldspan.cli.output import check_part, key_values, listed
from goldspan.crowd.registry import FORMATS
from goldspan.errors import GoldspanError, InputError

if TYPE_CHECKING:
    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.crowd import Crowd, Layers
    from goldspan.crowd.options import Option
    from goldspan.store import SqlLedger

Function = Callable[..., None]
MORE = f"{RARE} options"
"""The group of options that only `--help-all` shows."""
STORE = "campaign.sqlite"
"""The file of a campaign's folder that is its store, if no other is named."""

# Single options.


def option(
    help: str,  # noqa: A002 - the word of the command line
    *names: str,
    default: Any = None,
    panel: str | None = None,
    **more: Any,
) -> Any:
    """Declare an option by its help text; without `names` it is called as its parameter is."""
    return typer.Option(default, *names, help=help, rich_help_panel=panel, **more)


def flag(help: str, *names: str, **more: Any) -> Any:  # noqa: A002 - as above
    """Declare an option without a value, which is off by default."""
    return option(help, *names, default=False, **more)


def argument(
    help: str,  # noqa: A002 - the word of the command line
    metavar: str | None = None,
    default: Any = ...,
) -> Any:
    """Declare an argument, by default one that must be given."""
    return typer.Argument(default, metavar=metavar, help=help)


def method_names(incomplete: str) -> list[str]:
    """Complete the name of a method."""
    return [name for name in METHODS if name.startswith(incomplete)]


def format_names(incomplete: str) -> list[str]:
    """Complete the name of a format."""
    return [name for name in FORMATS if name.startswith(incomplete)]


Input = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A file (also .gz), a folder, a .zip, or - for standard input."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace output files that exist.")]
LayerNames = Annotated[
    list[str] | None,
    typer.Option(
        "--layer",
        help="A question of a file with several, such as spans; all takes each. Repeatable.",
        metavar="NAME",
        rich_help_panel="Reading",
    ),
]
NoText = Annotated[
    bool,
    typer.Option(
        "--no-text",
        help="Leave the original texts and character offsets out of columns of tokens.",
        rich_help_panel=MORE,
    ),
]
RawCsv = Annotated[
    bool,
    typer.Option(
        "--raw-csv",
        help="Write CSV cells unchanged, even those that a spreadsheet may take for formulas.",
        rich_help_panel=MORE,
    ),
]
Policy = Annotated[
    str,
    typer.Option(
        help="How malformed tags are read when scored: conlleval, strict, boundaries or raise.",
        rich_help_panel=MORE,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.", rich_help_panel=MORE)]
FamilyTable = Annotated[
    str | None,
    typer.Option(
        "--families",
        metavar="auto|none|FILE",
        help="Who copies whom and counts as fewer: auto detects it, none ignores it, or a table "
        "with columns worker and family.",
        show_default=False,
        rich_help_panel=MORE,
    ),
]
ThreadCount = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of threads; by default one per core.",
        show_default=False,
        rich_help_panel=MORE,
    ),
]
RunnerName = Annotated[
    str | None,
    typer.Option(
        "--runner",
        metavar="NAME",
        help="Where the work is done, with the same result: threads (the default), ray (a cluster "
        "on this machine) or ray(ADDRESS).",
        show_default=False,
        rich_help_panel=MORE,
    ),
]
PlanRunner = Annotated[
    str | None,
    typer.Option(
        "--runner",
        metavar="NAME",
        help="Where the work is done, with the same result, instead of the plan's `runner`: "
        "threads, ray or ray(ADDRESS).",
        show_default=False,
    ),
]
Overlap = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Answers per item, instead of the plan's redundancy.overlap.",
        show_default=False,
    ),
]
AllowCode = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-code",
        metavar="MODULE",
        help="Let the plan's annotators run the code of an installed module, or of a file such as"
        " ./rules.py. Repeatable.",
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where the campaign is stored: sqlite:///FILE or postgresql://…; by default "
        f"{STORE} in its folder.",
        show_default=False,
    ),
]
PublicUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address at which people reach the server, such as https://labels.example.org.",
        show_default=False,
    ),
]
MaxDecompressed = Annotated[
    str | None,
    typer.Option(
        "--max-decompressed",
        metavar="SIZE",
        help="Largest size to which compressed input may unpack, such as 20GiB.",
        show_default=False,
        rich_help_panel=MORE,
    ),
]


# Groups of options.


def adds(
    name: str, options: Sequence[Parameter], make: Callable[[dict[str, Any]], Any]
) -> Callable[[Function], Function]:
    """Return a decorator that puts options in the place of a function's parameter."""

    def decorate(function: Function) -> Function:
        own = signature(function, eval_str=True).parameters
        every = [one for key in own for one in (options if key == name else [own[key]])]

        @wraps(function)
        def command(**given: Any) -> None:
            mine = {one.name: given.pop(one.name) for one in options}
            function(**given, **{name: make(mine)})

        for_typer: Any = command
        parameters = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in every]
        for_typer.__signature__ = signature(function).replace(
            parameters=parameters, return_annotation=None
        )
        for_typer.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorate


def group(name: str, make: Callable[..., Any]) -> Callable[[Function], Function]:
    """Return a decorator that puts the parameters of a class or function in a parameter's place."""
    options = list(signature(make, eval_str=True).parameters.values())
    return adds(name, options, lambda given: make(**given))


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@dataclass(frozen=True)
class Reading:
    """How a command reads a crowd."""

    # Options by the names of `ReadOptions`, as they were given on the command line
    given: Mapping[str, Any]
    fixed: Mapping[str, Any]  # Those that the command itself sets

    @property
    def gold(self) -> str | None:
        """The second file, of known tags."""
        return self.given.get("gold")

    def read(
        self,
        source: Any,
        progress: Callable[[int, int], None] | None = None,
        layer: Sequence[str] | None = None,
    ) -> Crowd:
        """Read a crowd: the answers to one question if its name is given."""
        from goldspan.crowd import read_crowd

        if layer:
            return self.read_layers(source, layer)[layer[0]]
        return read_crowd(source, progress=progress, **self.options())

    def read_layers(self, source: Any, names: Sequence[str], ordinal: Sequence[str] = ()) -> Layers:
        """Read the answers to several questions, or to all."""
        from goldspan.crowd import read_layers

        wanted = None if "all" in names else names
        return read_layers(source, wanted, ordinal=ordinal, **self.options())

    def but(self, **given: Any) -> Reading:
        """Return it with other options."""
        return replace(self, given={**self.given, **given})

    def options(self) -> dict[str, Any]:
        """Return the options as those of `read_crowd`."""
        from goldspan.crowd.options import reading_options

        known = reading_options()
        found = {name: _value(known[name], value) for name, value in self.given.items()}
        if "delimiter" in found:
            found["delimiter"] = {"tab": "\t", "\\t": "\t"}.get(*2 * (found["delimiter"],))
        return {**found, **self.fixed}

    def words(self) -> Iterator[str]:
        """Yield the options that are not the default, as on the command line."""
        from goldspan.crowd.options import ReadOptions, reading_options

        known, usual = reading_options(), _defaults(ReadOptions)
        for name, value in self.given.items():
            flag = known[name].flags[0]
            if value is True:
                yield flag
            elif value and value != usual[name]:
                for one in value if isinstance(value, list) else [value]:
                    yield from (flag, one)


_USUAL = {"format", "gold", "columns", "workers", "labels"}
"""The options of reading that `--help` shows; `--help-all` shows every one."""


def reads_crowd(*, without: Collection[str] = (), **fixed: Any) -> Callable[[Function], Function]:
    """Add the options with which a crowd is read, for a parameter `reading`."""
    from goldspan.crowd.options import ReadOptions, reading_options

    usual = _defaults(ReadOptions)
    options = [
        _parameter(name, *_typed(name, told, usual[name]))
        for name, told in reading_options().items()
        if told.flags and name not in without and name not in fixed
    ]
    return adds("reading", options, lambda given: Reading(given, fixed))


def _defaults(made: type) -> dict[str, Any]:
    """Return the defaults of a dataclass's fields; None for those that are made anew."""
    return {one.name: None if one.default is MISSING else one.default for one in fields(made)}


def _typed(name: str, told: Option, default: Any) -> tuple[Any, Any]:
    """Return type and default of a reading option."""
    text, repeatable = told.help, told.shape in {"pairs", "list", "repeat"}
    if repeatable:
        text += " Repeatable."
    if told.shape == "list":
        text += """ Quote an id with a comma: '"Lee, Ann",bob'."""
    panel = "Reading" if name in _USUAL else f"{RARE} about reading"
    values: dict[str, Any] = {"help": text, "rich_help_panel": panel}
    if told.metavar:
        values["metavar"] = told.metavar
    if told.choices:
        values["autocompletion"] = _completion(told.choices)
    if repeatable:
        return Annotated[list[str] | None, typer.Option(*told.flags, **values)], None
    kind: Any = bool if told.shape == "flag" else str if default is not None else str | None
    return Annotated[kind, typer.Option(*told.flags, **values)], default


def _completion(choices: Sequence[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in choices if name.startswith(incomplete)]

    return complete


def _value(told: Option, value: Any) -> Any:
    """Return the value of an option for `read_crowd`."""
    if told.shape == "pairs":
        return key_values(value, told.metavar or "OLD=NEW")
    if told.shape == "list":
        return listed(value, told.flags[0])
    return value or None if told.shape == "repeat" else value


def _pool(
    text_column: str | None = option(
        "Column that holds the texts.", metavar="NAME", panel="Reading"
    ),
    id_column: str | None = option(
        "Column that holds the items' ids.", metavar="NAME", panel="Reading"
    ),
    document_column: str | None = option(
        "Column that names the document of each item.", metavar="NAME", panel="Reading"
    ),
    tokens: str | None = option(
        "How texts are split: fine, space, characters or given; by default as the pool, else fine.",
        panel="Reading",
    ),
) -> dict[str, Any]:
    return {"text": text_column, "id": id_column, "document": document_column, "tokens": tokens}


reads_pool = group("pool", _pool)
"""Adds the options with which a pool is read, for a parameter `pool`: arguments of `read_pool`."""


# The campaign that a command works on.


_Out = Annotated[str, typer.Option(help="The campaign's folder; its server.key signs all links.")]


@dataclass(frozen=True)
class Place:
    """A campaign: its plan, and where it is stored."""

    plan: Annotated[str, typer.Argument(metavar="PLAN", help="The plan, such as campaign.toml.")]
    out: _Out = "out"
    store: Store = None  # Address of its store, if that is not in the folder

    @property
    def address(self) -> str | Path:
        """Path or address of the store."""
        return self.store or Path(self.out) / STORE

    def inputs(
        self, *, overlap: int | None = None, allow_code: Sequence[str] | None = None
    ) -> CampaignInputs:
        """Read the plan with its files; with `allow_code` reject one that runs other code."""
        from goldspan.annotators.python import code_of
        from goldspan.campaign import read_inputs, read_plan

        plan, folder = read_plan(self.plan, overlap=overlap), Path(self.plan).parent
        if plan.provider is not None:
            from goldspan.web.providers.registry import check_provider

            check_provider(plan)
        for entry in plan.workforce if allow_code is not None else ():
            if entry.kind == "python":
                code_of(entry, allow_code or ())
        return read_inputs(plan, folder, allow_code=allow_code or ())

    def check_served(self, *, has_secret: bool = True) -> None:
        """Reject a place without a campaign or without the server's secret; create nothing."""
        from goldspan.store import open_ledger
        from goldspan.web.settings import FILE as SECRET
        from goldspan.web.settings import VARIABLE

        start = (
            f"start `goldspan serve {self.plan}` first, or give the --out and --store that it was "
            "started with"
        )
        if self.store is None and not Path(self.address).is_file():
            raise InputError(f"{self.out} holds no campaign: there is no {STORE} in it; {start}")
        try:
            open_ledger(self.address).close()
        except InputError as error:
            error.add_note(start)
            raise
        if has_secret and not (os.environ.get(VARIABLE) or (Path(self.out) / SECRET).is_file()):
            raise InputError(
                f"{self.out} holds no {SECRET}, the server's secret, and links signed by another "
                f"would not work; {start}"
            )

    @contextmanager
    def opened(self, *, has_secret: bool = True) -> Iterator[tuple[CampaignInputs, SqlLedger]]:
        """Open the store of a campaign that was begun."""
        check_part("server")
        from goldspan.campaign.clock import wall_clock
        from goldspan.web.opening import open_store

        inputs = self.inputs()
        self.check_served(has_secret=has_secret)
        with (
            told_of_damage(self.address),
            open_store(inputs, self.out, self.store, wall_clock()) as ledger,
        ):
            yield inputs, ledger

    def command(self, words: Sequence[str]) -> str:
        """Return a command on the campaign, without the password of a database."""
        from goldspan.store.ledger import where_of

        every = ["goldspan", *words, "--out", self.out]
        if self.store is not None:
            where = where_of(self.store)
            every += ["--store", where if "***" in where else self.store]
        return shlex.join(every)


at_campaign = group("place", Place)
"""Adds PLAN, --out and --store, for a parameter `place`."""


@dataclass(frozen=True)
class Places:
    """The campaigns that a server serves."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="PLAN…", help="A plan, such as campaign.toml, or a folder of plans."
        ),
    ]
    out: _Out = "out"  # Of several campaigns each has its own folder in it
    store: Store = None  # Of several campaigns with {name} in it

    @property
    def is_several(self) -> bool:
        """Whether it is more than the file of one plan."""
        return len(self.sources) > 1 or Path(self.sources[0]).is_dir()

    @property
    def is_shared(self) -> bool:
        """Whether several processes can work on the store."""
        return (self.store or "").startswith("postgres")

    def named(self) -> dict[str, Place]:
        """Return the campaigns by name; one that is alone has the name ""."""
        if not self.is_several:
            return {"": Place(self.sources[0], self.out, self.store)}
        check_part("server")
        from goldspan.web.app import find_plans

        if self.store is not None and "{name}" not in self.store:
            raise InputError(
                "every campaign has a store of its own: put {name} into --store, for example "
                "postgresql://localhost/{name}"
            )
        return {
            name: Place(
                str(path), str(Path(self.out) / name),
                None if self.store is None else self.store.replace("{name}", name),
            )
            for name, path in find_plans(self.sources).items()
        }  # fmt: skip


at_campaigns = group("places", Places)
"""Adds PLAN…, --out and --store, for a parameter `places`."""


@contextmanager
def told_of_damage(address: str | Path | None) -> Iterator[None]:
    """Turn a failure that a damaged store explains, wherever it shows, into a StoreError."""
    try:
        yield
    except (GoldspanError, typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
        raise
    except Exception as error:
        why = None if address is None else _damage(address)
        if why is None:
            raise
        raise why from error


def _damage(address: str | Path) -> Exception | None:
    """Return what is wrong with a store, None if nothing is."""
    from goldspan.store import open_ledger
    from goldspan.store.verify import check_whole

    try:
        with open_ledger(address) as ledger:
            check_whole(ledger.database)
    except InputError:  # there is no store: what did not begin leaves none
        return None
    except GoldspanError as error:
        return error
    return None
