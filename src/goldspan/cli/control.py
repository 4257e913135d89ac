"""`goldspan control`: choose control questions, or see whether those in use have leaked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import (
    Overwrite,
    check_outputs,
    emit_json,
    not_held,
    say,
    steps,
    table,
    warn,
)
from goldspan.cli.wording import in_options

if TYPE_CHECKING:
    from goldspan.workers import GoldQuestions, LeakReport

_OPTIONS = {"read it with gold=… or a `gold` column": "pass --gold, or add a column gold"}
"""What messages say of arguments, and of options."""


def control(
    source: r.Input,
    n: Annotated[
        int | None,
        typer.Option(
            "-n", min=1, help="How many questions to choose; 20 by default.", show_default=False
        ),
    ] = None,
    hard: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of hard ones; 0.3 by default.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the choice; 0 by default.", show_default=False)
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the questions with their gold.")
    ] = None,
    overwrite: Overwrite = False,
    check: Annotated[
        bool, typer.Option("--check", help="Choose none: see whether those with gold have leaked.")
    ] = False,
    most_shown: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --check: answers after which a question is retired; 100 by default.",
            show_default=False,
        ),
    ] = None,
    format: r.Format = None,  # noqa: A002 - the word users know
    gold: r.Gold = None,
    encoding: r.EncodingName = None,
    columns: r.Columns = None,
    workers: r.Workers = None,
    label: r.Labels = None,
    missing: r.Missing = None,
    delimiter: r.Delimiter = None,
    text_encoding: r.TextEncoding = None,
    max_decompressed: r.MaxDecompressed = None,
    raw_csv: r.RawCsv = False,
    json: r.AsJson = False,
) -> None:
    """Choose control questions among the items with gold, or check those in use.

    They are spread over labels, or types of spans and items without any, and over documents.

    Examples:

      goldspan control answers.csv --gold truth.csv -n 20 -o control.csv

      goldspan control answers.csv --gold control.csv --check
    """
    choosing = {"-n": n, "--hard": hard, "--seed": seed, "-o": output}
    _check_usage({"--most-shown": most_shown}, choosing, check=check)
    check_outputs(output, inputs=[source, gold], overwrite=overwrite)
    r.check_files(output=output)
    options = r.Reading(
        format=format, gold=gold, encoding=encoding, columns=columns, workers=workers,
        labels=label, missing=missing, delimiter=delimiter, text_encoding=text_encoding,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    from goldspan.workers import check_leaks, choose_gold_questions

    with steps(2, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        step("checking" if check else "choosing")
        found: GoldQuestions | LeakReport
        if check:
            with in_options(_OPTIONS):
                found = check_leaks(crowd, **_given(most_shown=most_shown))
        else:
            with in_options(_OPTIONS):
                found = choose_gold_questions(
                    crowd, 20 if n is None else n, **_given(hard=hard, random_state=seed)
                )
            for what in found.write(output, raw_csv=raw_csv) if output else []:
                warn(not_held(what))
    if json:
        emit_json({"output": output, **found.to_dict()})
        return
    say(str(found))
    if not check:
        rows = [[row["item"], row["reason"]] for row in found.to_arrow().to_pylist()]
        say(table(rows))
        say(f"written: {output}" if output else "nothing written: pass -o control.csv to keep them")


def _check_usage(checking: dict[str, Any], choosing: dict[str, Any], *, check: bool) -> None:
    """Reject options of the other of the two tasks.

    Raises:
        typer.BadParameter: One was given.
    """
    given = [name for name, value in (choosing if check else checking).items() if value is not None]
    if given and check:
        raise typer.BadParameter(f"--check chooses no questions: leave out {', '.join(given)}")
    if given:
        raise typer.BadParameter(f"{', '.join(given)} is for --check: add it, or leave that out")


def _given(**options: Any) -> dict[str, Any]:
    """Leave the library's defaults where an option was not given."""
    return {name: value for name, value in options.items() if value is not None}
