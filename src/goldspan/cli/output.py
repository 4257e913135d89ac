"""What every command shares: messages, JSON, progress, and exit codes."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from goldspan import protocols

if TYPE_CHECKING:
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
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0)


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
        say(line, to_stderr=to_stderr)


def warn(text: str) -> None:
    """Print a line on standard error."""
    say(text, to_stderr=True)


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


def plural(n: int, word: str) -> str:
    """Write a number of things.

    >>> plural(1, "item"), plural(2000, "item")
    ('1 item', '2,000 items')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"


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
    """Read a repeated option such as `--workers a,b`: rows of CSV, so that quotes hold a comma.

    >>> listed(['ann,bob', '"Lee, Ann"'], "--workers")
    ['ann', 'bob', 'Lee, Ann']
    """
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


def check_outputs(
    *outputs: str | None,  # Names of files; None and "-" (standard output) are left out
    inputs: Iterable[str | None] = (),  # Files that the command reads
    overwrite: bool,  # Whether files that exist may be replaced; folders never are
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
            raise InputError(f"cannot write {output}: does the folder exist?")
        if target.is_dir():
            raise InputError(f"{output} is a folder: remove it, or choose another name")
        if target.exists() and not overwrite:
            raise InputError(
                f"{output} exists already: choose another name, or replace it with --overwrite"
            )
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
    with notice.beside_another_display(), _bar(total) as shown:
        yield shown


@contextmanager
def _bar(total: int) -> Iterator[Steps]:
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
    timer = _start_later(bar, seconds=1.0)
    try:
        yield Steps(bar, task)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _start_later(bar: Any, seconds: float) -> Any:
    from threading import Timer

    timer = Timer(seconds, bar.start)
    timer.daemon = True
    timer.start()
    return timer


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


# --------------------------------------------------------------------------------------------------
# The line that says that kernels are compiled, for a terminal and for a log.

TEXT = "Compiling numerical kernels (first run on this machine, up to a minute) …"
PERIOD = 0.25
"""Seconds after which the line is drawn again."""
IDLE = 2.0
"""Seconds without a compilation after which it is over, as far as one can tell."""


class CompileNotice:
    """Says on standard error that kernels are compiled: a live line on a terminal, else one line.

    Nothing is said where all kernels come from the cache.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0  # a kernel that calls another one compiles it within
        self._since = self._last = self._seconds = 0.0
        self._has_told = self._is_drawn = False
        self._displays = 0
        self._ticker: threading.Thread | None = None
        self._over = threading.Event()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Listen while a command runs."""
        protocols.listen(self._hear)
        try:
            yield
        finally:
            protocols.forget(self._hear)
            self._over.set()
            ticker = self._ticker
            if ticker is not None:
                ticker.join()
            self._over.clear()

    @contextmanager
    def beside_another_display(self) -> Iterator[None]:
        """Draw nothing while a progress bar or a log has the terminal: a plain line says it."""
        with self._lock:
            self._displays += 1
            self._erase()
        try:
            yield
        finally:
            with self._lock:
                self._displays -= 1

    def _hear(self, begins: bool) -> None:
        with self._lock:
            self._depth += 1 if begins else -1
            now = time.monotonic()
            if begins and self._depth == 1:
                self._since = now
                self._tell()
            elif not begins and self._depth == 0:
                self._seconds += now - self._since
                self._last = now

    def _tell(self) -> None:
        """Say it at the first kernel; on a terminal go on saying it."""
        if self._displays or not sys.stderr.isatty():
            if not self._has_told:
                self._has_told = True
                _print(TEXT)
        elif self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()

    def _tick(self) -> None:
        while True:
            with self._lock:
                now = time.monotonic()
                is_idle = self._depth == 0 and now - self._last > IDLE
                if is_idle or self._over.is_set():
                    self._finish()
                    self._ticker = None
                    return
                if not self._displays:
                    running = now - self._since if self._depth else 0.0
                    sys.stderr.write(f"\r{TEXT} {self._seconds + running:.0f} s ")
                    sys.stderr.flush()
                    self._is_drawn = True
            self._over.wait(PERIOD)

    def _erase(self) -> None:
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_drawn = False

    def _finish(self) -> None:
        """Put in the place of the line how long it took."""
        self._erase()
        if self._seconds >= 1 and not self._displays:
            _print(f"Compiled numerical kernels in {self._seconds:.0f} s; the next run has them.")
        self._seconds = 0.0


def _print(line: str) -> None:
    # A reader who is gone must not stop the work.
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


notice = CompileNotice()
