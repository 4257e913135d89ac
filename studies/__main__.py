"""`python -m studies`: the papers' tables, redone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from goldspan.cli import main
from goldspan.cli.options import AsJson, Overwrite
from goldspan.cli.output import (
    check_files,
    check_outputs,
    emit_json,
    listed,
    say,
    steps,
)
from goldspan.errors import InputError, MissingExtraError, UnknownNameError
from studies import options_of, run_study
from studies.registry import PARTS, STUDIES, WITH_PICTURE, names_by_length

app = typer.Typer(
    name="python -m studies",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_DRAWN = (
    "Of the studies campaign-ner, li-liu…, ntoulas-…, redundancy, rodrigues-…, scale, "
    "selection-ner…"
)
_MOST = (
    "Of the studies bsc, campaign-ner, li-liu…, ntoulas-…, people-models, purity, "
    "redundancy, rodrigues-…, selection-ner…"
)
_QUICK = f"{_MOST}, scale"
_KEPT = (
    "Of the studies campaign-ner, li-liu-…, people-models, purity, rodrigues-…, scale "
    "and selection-ner…"
)
_SO_FAR = (
    "Of the studies campaign-ner, li-liu-…, people-models, purity, rodrigues-… or selection-ner…"
)
_NAMED = "Print the names of all studies, those that take hours last, and stop."
_RODRIGUES = "Of the studies rodrigues-… alone"
_PURITY = "Of the study purity alone"
_SCALE = "Of the study scale alone"


def _epilog() -> str:
    return "\n\n".join(f"{name}: {text}" for name, (_, text) in STUDIES.items())


def _print_names(wished: bool) -> None:
    if wished:
        say(" ".join(names_by_length()))
        raise typer.Exit


@app.command(epilog=_epilog())
def study(
    name: Annotated[str, typer.Argument(help="One of the studies listed below.")],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="The folder with the real data sets; not needed by scale.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the tables as Markdown too.")
    ] = None,
    overwrite: Overwrite = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; by default all cores.", show_default=False)
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(metavar="NAME,…", help="Which methods. Repeatable.")
    ] = None,
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            metavar="NAME,…",
            help=f"Only these of: {', '.join(PARTS)}. Repeatable.",
            rich_help_panel=_PURITY,
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Crowds to draw; by default 30, of li-liu… 20 to 100, of the others 5 or 10.",
            rich_help_panel=_MOST,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="See in minutes that it runs.", rich_help_panel=_QUICK),
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(
            help="Write the picture (.svg, .png, .pdf); by default beside the output.",
            rich_help_panel=_DRAWN,
        ),
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(min=1, help="Use about so many sentences.", rich_help_panel=_RODRIGUES),
    ] = None,
    labels: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Largest crowd; by default 100,000,000 labels.",
            show_default=False,
            rich_help_panel=_SCALE,
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Keep finished runs here, to go on after a break; by default beside the output.",
            rich_help_panel=_KEPT,
        ),
    ] = None,
    so_far: Annotated[
        bool,
        typer.Option(
            "--so-far",
            help="Make the tables of the runs that are finished, and do none.",
            rich_help_panel=_SO_FAR,
        ),
    ] = False,
    json: AsJson = False,
    names: Annotated[  # noqa: ARG001 - its callback prints
        bool, typer.Option("--names", help=_NAMED, is_eager=True, callback=_print_names)
    ] = False,
) -> None:
    """Redo a paper's tables on real data, with our numbers beside the published ones.

    Examples:

      python -m studies bsc --data ../shared/data

      python -m studies rodrigues-5 --data ../shared/data --quick --plot crowd.svg

      python -m studies li-liu --data ../shared/data --quick --plot hiring.svg

      python -m studies rodrigues-2 --data ../shared/data --repeats 30 -o names.md --json

      python -m studies rodrigues-2 --data ../shared/data -o names.md --overwrite --so-far

      python -m studies purity --data ../shared/data --part sources,labels -o purity.md

      python -m studies scale --labels 10000000 -o scale.md
    """
    check_files(output=output, plot=plot)
    check_outputs(output, plot, overwrite=overwrite)
    given = {
        "methods": listed(methods, "--methods"), "repeats": repeats, "sentences": sentences,
        "labels": labels, "parts": listed(parts, "--part"),
    }  # fmt: skip
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    options |= {"quick": True} if quick else {}
    options |= _places(name, output, state)
    options |= _checked_so_far(name, options.get("state")) if so_far else {}
    plot = _picture_file(name, output, plot)
    check_outputs(output, plot, overwrite=overwrite)
    options |= {name: tuple(options[name]) for name in ("methods", "parts") if name in options}
    with steps(1, quiet=json) as step:
        step(f"study {name}")
        found = run_study(name, data, progress=step.part, threads=threads, **options)
    if output:
        from goldspan.crowd.atomic import write_text

        write_text(output, [found.markdown()])
    if plot and found.picture:
        from goldspan.report import save_figure

        save_figure(found.picture(), plot)
    if json:
        emit_json(found.to_dict())
    else:
        say(found.markdown())


def _places(name: str, output: str | None, state: str | None) -> dict[str, Any]:
    """Return where finished runs are kept.

    Raises:
        InputError: The study keeps none, or there is no such folder.
    """
    if "state" not in options_of(name):
        if state is not None:
            raise InputError(f"study {name} keeps no finished runs: leave out --state")
        return {}
    if state is not None:
        if not Path(state).is_dir():
            raise InputError(f"--state {state} is no folder")
        return {"state": Path(state) / f"{name}.runs.jsonl"}
    return {"state": Path(output).with_suffix(".runs.jsonl")} if output else {}


def _checked_so_far(name: str, state: Path | None) -> dict[str, Any]:
    """Return the option of tables from finished runs, of a study that has some.

    Raises:
        InputError: The study has no such tables, or there are no finished runs.
    """
    if "so_far" not in options_of(name):
        raise InputError(f"study {name} has no tables of a part of its runs: leave out --so-far")
    if state is None:
        raise InputError("--so-far needs the finished runs: name their folder (--state), or the "
                         "output beside which they lie (-o)")  # fmt: skip
    if not state.is_file():
        raise InputError(f"{state} is not there: no run is finished, or it lies elsewhere")
    return {"so_far": True}


def _picture_file(name: str, output: str | None, plot: str | None) -> str | None:
    """Return where the picture goes: as wished, or beside the output if it can be drawn at all.

    Raises:
        InputError: The study has none.
        UnknownNameError: It is no format of pictures.
        MissingExtraError: Matplotlib is not installed, and a picture was asked for.
    """
    if name not in WITH_PICTURE:
        if plot is not None:
            raise InputError(
                f"study {name} has no picture: leave out --plot, or choose one of "
                f"{', '.join(sorted(WITH_PICTURE))}"
            )
        return None
    from goldspan.report.drawing import SUFFIXES, new_figure

    wished = plot or (str(Path(output).with_suffix(".svg")) if output else None)
    if wished is None:
        return None
    if Path(wished).suffix.lower() not in SUFFIXES:
        raise UnknownNameError("picture format", Path(wished).suffix, SUFFIXES)
    try:
        new_figure(1, 1)  # says now, and not after hours, that Matplotlib is missing
    except MissingExtraError:
        if plot is None:
            return None
        raise
    return wished


if __name__ == "__main__":
    main(app)
