"""What every command shares: messages, JSON, progress, and exit codes."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from goldspan import protocols

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.crowd.source import ImportReport


def say(text: str, *, to_stderr: bool = False) -> None:
    """Print a line of text, also where the terminal cannot show every character."""
    stream = sys.stderr if to_stderr else sys.stdout
    try:
        print(text, file=stream)
    except BrokenPipeError:
        leave_quietly()
    except UnicodeEncodeError:
        safe = text.encode(stream.encoding or "ascii", "replace").decode(stream.encoding or "ascii")
        print(safe, file=stream)


def leave_quietly() -> NoReturn:
    """End with success, because the reader of our output went away (`goldspan … | head`)."""
    discard_output()
    raise SystemExit(0)


def discard_output() -> None:
    """Let what is left of the output go nowhere: nobody reads it, or it has no room."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def emit_json(value: Any) -> None:
    """Print a value as JSON; NaN and infinity become null."""
    say(json.dumps(_finite(value), ensure_ascii=False, indent=2, default=str))


def print_result(
    facts: Any, lines: Iterable[str], *, as_json: bool, to_stderr: bool = False
) -> None:
    """Print a result: its facts as JSON, or its lines, which are not made otherwise."""
    if as_json:
        emit_json(facts)
        return
    for line in lines:
        # Words of files may hold control characters, which a terminal would obey.
        shown = re.sub(r"[\0-\x08\x0b-\x1f\x7f-\x9f]", lambda one: f"\\x{ord(one[0]):02x}", line)
        say(shown, to_stderr=to_stderr)


def warn(text: str) -> None:
    """Print a line on standard error."""
    print_result(None, [text], as_json=False, to_stderr=True)


def as_read(report: ImportReport) -> list[str]:
    """Word what a reader decided and could not use, unless that was asked for."""
    return [f"{report.source or 'input'}: {remark}" for remark in report.unasked]


def not_held(what: str) -> str:
    """Word what a file that was written does not give back."""
    return f"the file does not give back: {what}"


def table(rows: list[list[str]], right: tuple[int, ...] = ()) -> str:
    """Lay out rows as aligned columns; `right` names the columns that are numbers."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def write_crowd_to(
    crowd: Crowd, output: str | None, name: str | None, usual: str, **how: Any
) -> list[str]:
    """Write a crowd to a file, or to standard output in its usual format; return what is lost."""
    from goldspan.crowd.io import write_crowd, write_to_stdout

    if output in {None, "-"}:
        return write_to_stdout(crowd, name or usual, **how)
    return write_crowd(crowd, str(output), format=name, **how)


def csv_text(rows: Any, *, raw: bool) -> str:
    """Return an Arrow table as CSV, a heading and a line per row; `raw` as of `csv_text`."""
    from goldspan.crowd.grid import csv_text as written

    return written(rows.column_names, map(list, map(dict.values, rows.to_pylist())), raw=raw)


_WORDS = {"true": True, "false": False, "none": None}


def read_value(text: str) -> Any:
    """Read a parameter: true, false, none, a number, or a string."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def key_values(pairs: list[str] | None, what: str) -> dict[str, str]:
    """Read repeated options such as `--columns item=question`."""
    found: dict[str, str] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{pair!r} must look like {what}")
        if key in found:
            raise typer.BadParameter(
                f"{key} is given twice, {found[key]!r} and {value!r}: leave one out"
            )
        found[key] = value
    return found


def listed(lists: list[str] | None, option: str) -> list[str] | None:
    """Read a repeated option such as `--workers a,b`: rows of CSV, so that quotes hold a comma."""
    import csv

    if lists is None:
        return None
    try:
        rows = [row for text in lists for row in csv.reader([text], strict=True)]
    except csv.Error as error:
        raise typer.BadParameter(
            f'{option}: {error}: put a value with a comma in double quotes, "Lee, Ann"; a '
            "double quote in it is written twice"
        ) from None
    return [value for row in rows for value in row if value]


def numbers(text: str, option: str, wanted: str) -> list[float]:
    """Read numbers between commas; a message says what is `wanted` of the option."""
    try:
        return [float(one) for one in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{option} {wanted}, not {text!r}") from None


def check_outputs(
    *outputs: str | None,  # Names of files; None and "-" (standard output) are left out
    inputs: Iterable[str | None] = (),  # Files that the command reads
    overwrite: bool | None,  # Whether files may be replaced; None: no option says so
    as_json: bool = False,  # Whether standard output is taken by JSON
) -> None:
    """Reject outputs that cannot or must not be written, before any work is done.

    Every command that writes a file which the user names calls it first.
    """
    from goldspan.errors import InputError

    if as_json and "-" in outputs:
        raise typer.BadParameter("-o - and --json both write to standard output: choose one")

    read = {Path(one).resolve() for one in inputs if one and one != "-"}
    seen: set[Path] = set()
    for output in outputs:
        if output is None or output == "-":
            continue
        target = Path(output).resolve()
        if target in read:
            raise InputError(f"{output} is an input too: choose another name for the output")
        if target in seen:
            raise InputError(f"{output} is the name of two outputs: choose another for one of them")
        seen.add(target)
        if not target.parent.is_dir():
            hint = "does the folder exist?"
            hint = "goldspan convert FILE hf://… does" if output.startswith("hf://") else hint
            raise InputError(f"cannot write {output}: {hint}")
        if target.is_dir():
            raise InputError(f"{output} is a folder: remove it, or choose another name")
        if target.exists() and not overwrite:
            replaced = "" if overwrite is None else ", or replace it with --overwrite"
            raise InputError(f"{output} exists already: choose another name{replaced}")
        if not os.access(target.parent, os.W_OK):
            raise InputError(f"cannot write {output}: its folder is write-protected")


def check_files(**outputs: str | None) -> None:
    """Reject `-` for outputs that cannot go to standard output, by the names of their options."""
    for option, path in outputs.items():
        if path == "-":
            name = option.replace("_", "-")
            raise typer.BadParameter(f"--{name} cannot be standard output: give the name of a file")


def check_ending(option: str, path: str | None, *endings: str) -> None:
    """Reject a name of an output whose ending says nothing."""
    if path and path != "-" and not path.lower().endswith(endings):
        raise typer.BadParameter(f"{option}: the name must end in {' or '.join(endings)}")


def check_there(*inputs: str | None) -> None:
    """Reject inputs that are not there, before any work is done."""
    from goldspan.errors import InputError

    for path in inputs:
        if path and path != "-" and not Path(path).exists():
            raise InputError(f"{path}: there is no such file")


_STORE = ("sqlalchemy",)
_SERVER = (
    "fastapi", "starlette", "uvicorn", "jinja2", "itsdangerous", "argon2", "prometheus_client",
)  # fmt: skip
_PARTS = {
    "picture": ("report", "a picture", ("matplotlib",)),
    "report": ("report", "a report", ("matplotlib", "jinja2")),
    "model": ("llm", "a language model", ("httpx2",)),
    "hub": ("hub", "the Hugging Face Hub", ("huggingface_hub",)),
    "store": ("store", "the store", _STORE),
    "plan": ("campaign", "a campaign's plan", ("pydantic",)),
    "campaign": ("campaign", "a campaign", ("pydantic", *_STORE)),
    "server": ("server", "the server", ("pydantic", *_STORE, *_SERVER)),
}
"""Optional parts: the extra that installs them, their name, the packages they need."""


def check_part(name: str) -> None:
    """Reject an optional part of which a package is missing, before any work is done."""
    from importlib.util import find_spec

    from goldspan.errors import MissingExtraError

    extra, purpose, packages = _PARTS[name]
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(package, extra, purpose)


class Steps:
    """The steps of a command, shown as they begin; nothing is shown without a bar."""

    def __init__(self, bar: Any = None, task: Any = None) -> None:
        self._bar, self._task, self._done = bar, task, -1

    def __call__(self, name: str) -> None:
        """Begin the next step."""
        self._done += 1
        if self._bar:
            self._bar.update(self._task, description=name, completed=self._done)

    def part(self, done: int, total: int) -> None:
        """Show how far the present step is."""
        if self._bar and total:
            self._bar.update(self._task, completed=self._done + done / total)

    def round(self, done: int, total: int, objective: float, seconds_left: float) -> None:
        """Show how far iterative work is (a `goldspan.protocols.Progress`)."""
        if self._bar:
            text = f"round {done}, objective {objective:,.1f}, at most {seconds_left:.0f} s left"
            self._bar.update(self._task, description=text, completed=self._done + done / total)


@contextmanager
def steps(total: int, *, quiet: bool = False) -> Iterator[Steps]:
    """Show a progress bar on standard error if the work takes longer than a second.

    Nothing is shown where standard error is not a terminal.
    """
    if quiet or not sys.stderr.isatty():
        yield Steps()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=8,
    )
    task = bar.add_task("", total=total)
    timer = Timer(1.0, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield Steps(bar, task)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


# --------------------------------------------------------------------------------------------------
# The line that says that kernels are compiled.

COMPILING = "Compiling numerical kernels (first run on this machine, up to a minute) …"


@contextmanager
def compiling_shown() -> Iterator[None]:
    """Say on standard error, once, that kernels are compiled; nothing if all are in the cache."""
    is_said = False

    def hear(begins: bool) -> None:
        nonlocal is_said
        if begins and not is_said:
            is_said = True
            with suppress(OSError):  # a reader who is gone must not stop the work
                print(COMPILING, file=sys.stderr, flush=True)

    protocols.listeners.append(hear)
    try:
        yield
    finally:
        protocols.listeners.remove(hear)
