"""`goldspan simulate`: a crowd of simulated workers who answer items whose truth is known."""

from __future__ import annotations

import math
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

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.simulation import SimulatedWorker

_DRAWN = "Drawn truth"


def _show_kinds(value: bool) -> None:
    if value:
        from goldspan.simulation.parsing import get_worker, signature
        from goldspan.simulation.registry import WORKERS

        rows = [[signature(get_worker(name)), text] for name, (_, text) in WORKERS.items()]
        say(table(rows))
        raise typer.Exit


def simulate(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="Items with gold, in any format that holds it; - for stdin."
        ),
    ] = None,
    worker: Annotated[
        list[str] | None,
        typer.Option(
            "--worker",
            "-w",
            metavar="WORKER",
            help='A worker: "flip(0.1)", "ana=acc", "flip(0.1) x3". Repeatable.',
        ),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(metavar="FILE", help='A TOML file of workers: workers = ["flip(0.1) x3", …].'),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write; - or nothing for stdout.")
    ] = None,
    overwrite: Overwrite = False,
    per_item: Annotated[
        int | None,
        typer.Option(min=1, help="Workers per item; by default all.", show_default=False),
    ] = None,
    workload: Annotated[
        str, typer.Option(help="equal, zipf, or a weight per worker: 5,3,1.")
    ] = "equal",
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    legal: Annotated[
        bool, typer.Option("--legal", help="Make malformed answers well-formed.")
    ] = False,
    times: Annotated[
        bool, typer.Option("--times", help="Give every answer a time (for .csv and .parquet).")
    ] = False,
    tagger: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A trained CRF for crf_noise; else one is trained."),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(
            min=1, help="Draw the truth of so many single labels.", rich_help_panel=_DRAWN
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="How many labels (2 by default), or their names: no,yes.", rich_help_panel=_DRAWN
        ),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(help="How frequent every label is: 3,1.", rich_help_panel=_DRAWN),
    ] = None,
    to_format: Annotated[
        str | None, typer.Option(help="Format of the output; by its ending by default.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; by default all cores.", show_default=False)
    ] = None,
    format: r.Format = None,  # noqa: A002 - the word users know
    gold: r.Gold = None,
    encoding: r.EncodingName = None,
    columns: r.Columns = None,
    label: r.Labels = None,
    delimiter: r.Delimiter = None,
    text_encoding: r.TextEncoding = None,
    max_decompressed: r.MaxDecompressed = None,
    list_: Annotated[
        bool,
        typer.Option(
            "--list", help="List the kinds of workers.", callback=_show_kinds, is_eager=True
        ),
    ] = False,
    json: r.AsJson = False,
) -> None:
    """Let simulated workers answer items whose truth is known.

    Answers depend on the seed, the worker's id and the item's id alone. What the workers gave
    stays as it is, malformed tags too, unless --legal mends it.

    Examples:

      goldspan simulate --list

      goldspan simulate gold.conll -w "crf_noise(0.05)" -w "flip(0.1) x3" --per-item 3 -o crowd.tsv

      goldspan simulate gold.conll -w "ana=flip(0.05) + misses(0.3)" -w "copier(ana)" --seed 7
      --json

      goldspan simulate gold.conll --workers crowd.toml --per-item 5 --workload zipf -o crowd.tsv

      goldspan simulate --items 1000 --labels 4 -w "flip(0.3) x31" --per-item 5 -o labels.csv
    """
    del list_
    _check_usage(source, items, labels, shares)
    if output == "-" and json:
        raise typer.BadParameter("-o - and --json both write to standard output: choose one")
    if worker and workers:
        raise typer.BadParameter("--worker and --workers cannot be used together: choose one")
    check_outputs(output, inputs=[source, gold, tagger, workers], overwrite=overwrite)
    r.check_there(tagger)
    from goldspan.simulation import read_team, read_team_file

    team = read_team_file(workers) if workers else read_team(worker or [])
    if tagger and not any(map(_needs_tagger, team.values())):
        raise typer.BadParameter(
            "--tagger is for crf_noise workers, and there is none that uses it"
        )
    options = r.Reading(
        format=format, gold=gold, encoding=encoding, columns=columns, labels=label,
        delimiter=delimiter, text_encoding=text_encoding,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    if items and options != r.Reading():
        raise typer.BadParameter("--items draws the truth: leave out the options of reading a FILE")
    with steps(3, quiet=json) as step:
        step(f"reading {source}" if source else "drawing the truth")
        if source:
            truth, n_left = _known(options.read(source, step.part))
        else:
            truth, n_left = _drawn(items or 0, labels, shares, seed), 0
        step(f"{len(team)} workers answer {truth.n_items} items")
        from goldspan.runners import Threads
        from goldspan.simulation import simulate_crowd

        crowd = simulate_crowd(
            truth,
            team,
            per_item=per_item,
            workload=_weights(workload),
            seed=seed,
            legal=legal,
            times=times,
            tagger=_load(tagger),
            runner=Threads(threads),
            progress=step.round,
        )
        step("writing")
        lost = [] if json and output is None else _write(crowd, output, to_format)
    if n_left:
        warn(f"{n_left} items without all tags were left out")
    for what in lost:
        warn(not_held(what))
    _tell(crowd, team, output, as_json=json, seed=seed)


def _check_usage(
    source: str | None, items: int | None, labels: str | None, shares: str | None
) -> None:
    if (source is None) == (items is None):
        raise typer.BadParameter("give either a FILE with gold, or --items N to draw the truth")
    if source is not None and (labels is not None or shares is not None):
        raise typer.BadParameter("--labels and --shares belong to --items; FILE has its own labels")


def _needs_tagger(worker: SimulatedWorker) -> bool:
    """Return whether a worker, or one it is made of, answers as the given tagger with noise."""
    from goldspan.simulation.base import CrfNoise

    if isinstance(worker, CrfNoise) and worker.templates is None:
        return True
    return any(map(_needs_tagger, worker.parts()))


def _known(crowd: Crowd) -> tuple[Crowd, int]:
    """Return the items whose tags are all known, and the number of the others."""
    from goldspan.errors import InputError
    from goldspan.simulation.base import has_unknown

    unknown = has_unknown(crowd)
    if unknown.all() and crowd.n_items:
        raise InputError("there is no item whose tags are all known: read it with its gold")
    return (crowd.select_items(~unknown) if unknown.any() else crowd), int(unknown.sum())


def _drawn(items: int, labels: str | None, shares: str | None, seed: int) -> Crowd:
    from goldspan.simulation import draw_truth

    names = ("2" if labels is None else labels).split(",")
    number = int(names[0]) if len(names) == 1 and names[0].isdecimal() else None
    weights = None if shares is None else _numbers(shares, "--shares")
    chosen = names if number is None else number
    return draw_truth(items, chosen, shares=weights, seed=seed)


def _weights(workload: str) -> str | list[float]:
    from goldspan.simulation.crowd import WORKLOADS

    return workload if workload in WORKLOADS else _numbers(workload, "--workload")


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        hint = "equal, zipf or " if option == "--workload" else ""
        raise typer.BadParameter(
            f"{option} must be {hint}numbers such as 3,1, not {text}"
        ) from None


def _load(path: str | None) -> Any:
    if path is None:
        return None
    from goldspan.tagger import load_tagger

    return load_tagger(path)


def _write(crowd: Crowd, output: str | None, to_format: str | None) -> list[str]:
    from goldspan.crowd.io import write_crowd, write_to_stdout

    if output in {None, "-"}:
        return write_to_stdout(crowd, to_format or ("long" if crowd.is_classification else "wide"))
    return write_crowd(crowd, str(output), format=to_format)


def _tell(
    crowd: Crowd,
    team: dict[str, SimulatedWorker],
    output: str | None,
    *,
    as_json: bool,
    seed: int,
) -> None:
    from goldspan.simulation import measure_workers

    to_stdout = output in {None, "-"}
    rates = measure_workers(crowd)
    if as_json:
        rows = [{"kind": str(team[one.worker]), **one._asdict()} for one in rates]
        facts = {"items": crowd.n_items, "tokens": crowd.n_tokens, "answers": len(crowd.answers)}
        emit_json({"output": output, "seed": seed, **facts, "workers": rows})
        return
    tell = warn if to_stdout else say
    lines = [["worker", "kind", "answers", "accuracy", "F1"]]
    for one in rates:
        shown = ["-" if math.isnan(value) else f"{100 * value:.2f}" for value in one[3:]]
        lines.append([one.worker, str(team[one.worker]), str(one.n_answers), *shown])
    tell(table(lines, right=(2, 3, 4)))
    if not to_stdout:
        tell(f"written: {output} ({crowd.n_items} items, {len(crowd.answers)} answers)")
