"""`karat study`: the papers' tables, redone."""

from __future__ import annotations

from typing import Annotated

import typer

from karat.cli import reading as r
from karat.cli.output import emit_json, say, steps


def study(
    name: Annotated[str, typer.Argument(help="One of the studies listed below.")],
    data: Annotated[str, typer.Option(metavar="DIR", help="The folder with the real data sets.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the tables as Markdown too.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; by default all cores.", show_default=False)
    ] = None,
    json: r.AsJson = False,
) -> None:
    """Redo a paper's tables on real data, with our numbers beside the published ones.

    Examples:

      karat study bsc --data ../shared/data

      karat study classification --data ../shared/data --json
    """
    r.check_output(output)
    from karat.studies import run_study

    with steps(1, quiet=json) as step:
        step(f"study {name}")
        found = run_study(name, data, progress=step.part, threads=threads)
    if output:
        from karat.crowd.atomic import write_text

        write_text(output, [found.markdown()])
    if json:
        emit_json(found.to_dict())
    else:
        say(found.markdown())
