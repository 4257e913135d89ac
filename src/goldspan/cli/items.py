"""Items: which of a pool are worth labelling, and simulated workers who label them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli.options import (
    AsJson,
    MaxDecompressed,
    Overwrite,
    RawCsv,
    Reading,
    Seed,
    ThreadCount,
    reads_crowd,
    reads_pool,
)
from goldspan.cli.output import (
    check_outputs,
    check_there,
    csv_text,
    emit_json,
    key_values,
    not_held,
    say,
    steps,
    table,
    warn,
)
from goldspan.selection.registry import DEFAULT, SELECTORS

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.selection import Cost, Features, Pool
    from goldspan.selection.base import Selection
    from goldspan.simulation import SimulatedWorker

# --------------------------------------------------------------------------------------------------
# goldspan select


_SHOWN = 10
_COST, _VALUES = "Costs", "Attribute values"


def _show_rules(value: bool) -> None:
    if value:
        say(table([[name, text] for name, (_, text) in SELECTORS.items()]))
        raise typer.Exit


@reads_pool
def select(
    pool: dict[str, Any],
    source: Annotated[
        str,
        typer.Argument(metavar="POOL", help="Items to choose from (.gz too), or - for stdin."),
    ],
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", "-b", help="What may be spent: 100items, 5000tokens or 12.50money."
        ),
    ] = None,
    number: Annotated[int | None, typer.Option("-n", min=0, help="Most items.")] = None,
    by: Annotated[str, typer.Option(help="A rule, or a schedule of rules.")] = DEFAULT,
    labelled: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Items that are labelled already, as POOL is written."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A tagger of `goldspan train`; several are a committee."),
    ] = None,
    errors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Errors of a model on labelled items it was not trained on: item, error (0–1).",
        ),
    ] = None,
    round_: Annotated[
        int | None,
        typer.Option("--round", min=0, help="Round of the schedule; by default 0, with a model 1."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where to write: .jsonl or .csv; - for stdout."),
    ] = None,
    overwrite: Overwrite = False,
    attributes: Annotated[
        bool, typer.Option("--attributes", help="POOL is a table with a row per item.")
    ] = False,
    format: Annotated[  # noqa: A002 - the word users know
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="text, folder, table, jsonl, json, conll, attributes or crowd; by the name and "
            "the content by default.",
        ),
    ] = None,
    fixed: Annotated[
        str | None, typer.Option(help="Money per answer.", rich_help_panel=_COST)
    ] = None,
    per_token: Annotated[
        str | None, typer.Option(help="Money per answer and token.", rich_help_panel=_COST)
    ] = None,
    answers: Annotated[
        int, typer.Option(min=1, help="Planned answers per item.", rich_help_panel=_COST)
    ] = 1,
    templates: Annotated[
        str | None,
        typer.Option(
            help="Of texts: a named set of the tagger's, or FILE.toml.", rich_help_panel=_VALUES
        ),
    ] = None,
    numeric: Annotated[
        str,
        typer.Option(
            help="Numbers become values by nearest(10), quantile(10), log2 or categorical.",
            rich_help_panel=_VALUES,
        ),
    ] = "quantile(10)",
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RULE",
            help="Another rule for a column: age=log2; label=skip leaves it out. Repeatable.",
            rich_help_panel=_VALUES,
        ),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(
            help="A missing cell has no value (skip), or one of its own (value).",
            rich_help_panel=_VALUES,
        ),
    ] = "skip",
    features: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json",
            help="Values that were fitted before; if it is not there they are written to it.",
            rich_help_panel=_VALUES,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random, ties too.")] = 0,
    list_: Annotated[
        bool,
        typer.Option("--list", help="List the rules.", callback=_show_rules, is_eager=True),
    ] = False,
    max_decompressed: MaxDecompressed = None,
    raw_csv: RawCsv = False,
    json: AsJson = False,
) -> None:
    """Choose the items of a pool that are worth labelling.

    A pool is a .txt file with an item per line, a folder of .txt files, a table with a column of
    texts (.csv, .tsv, .parquet), .jsonl with `text` or `tokens`, .conll with a token per line, or
    any crowd. The first round needs no model: coverage picks items with much
    that is frequent in the pool and new. Later rounds ask a tagger what it is unsure of. Random
    picks are marked in the output (`is_control`): they are the fair sample to measure on.

    Examples:

      goldspan select pool.jsonl --budget 5000tokens -o batch.jsonl

      goldspan select pool.jsonl -b 5000tokens --labelled gold.conll --model ner.goldspan -o
      batch2.jsonl

      goldspan select news.txt -b 20money --fixed 0.02 --per-token 0.002 --answers 3 --by coverage

      goldspan select mails.csv --attributes -n 850 --by coverage-paper --numeric "nearest(10)"

      goldspan select pool.jsonl -n 100 --by "coverage for 2 rounds, then mnlp(top=3), 5% random"
    """
    del list_
    _check_usage_select(output, attributes, format, templates, as_json=json)
    inputs = [path for path in (source, labelled, errors, *(model or [])) if path]
    check_outputs(output, inputs=[*inputs, features], overwrite=overwrite)
    check_outputs(features, inputs=inputs, overwrite=True)  # it is read where it is there
    check_there(labelled, errors, *(model or []))
    cost = _cost(fixed, per_token, answers)
    from goldspan.selection.reading import read_errors, read_pool, selection_lines
    from goldspan.selection.schedule import read_selector

    rule = read_selector(by)
    if round_ is not None:
        rule = _in_round(rule, round_)
    kind = "attributes" if attributes else format
    with steps(4, quiet=json) as step:
        step(f"reading {source}")
        read = read_pool(source, kind, max_decompressed=max_decompressed, **pool)
        for note in read.notes:
            warn(f"goldspan: {source}: {note}")
        given: dict[str, Any] = {"budget": budget, "n": number, "costs": cost}
        if labelled:
            other = "attributes" if attributes else None
            known = read_pool(
                labelled, other, tokens=pool["tokens"], max_decompressed=max_decompressed
            )
            given["labelled"] = known.pool
        if errors:
            given["errors"] = read_errors(errors)
        if model:
            given["model"] = _models(model)
        step("finding attribute values")
        rules = key_values(column, "NAME=RULE")
        options: dict[str, Any] = {"numeric": numeric, "missing": missing, "discretisers": rules}
        values = _features(read.pool, features, templates, options)
        step("choosing")
        from goldspan.runners import Threads

        found = rule.select(
            read.pool, features=values, runner=Threads(), random_state=seed, **given
        )
        step("writing")
        if output:
            _write_select(found, output, selection_lines(found, read.fields), raw_csv=raw_csv)
    _tell_select(found, by, output, as_json=json)


def _check_usage_select(
    output: str | None, attributes: bool, format_: str | None, templates: str | None, *,
    as_json: bool,
) -> None:  # fmt: skip
    if output == "-" and as_json:
        raise typer.BadParameter("-o - and --json both write to standard output: choose one")
    known = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")
    if output and output != "-" and not output.endswith(known):
        raise typer.BadParameter(f"-o: the name must end in one of {', '.join(known)}")
    if attributes and format_ not in {None, "attributes"}:
        raise typer.BadParameter("--attributes says how POOL is read: leave out --format")
    if templates and (attributes or format_ == "attributes"):
        raise typer.BadParameter("--templates are for texts: a table has columns")


def _cost(fixed: str | None, per_token: str | None, answers: int) -> Cost | None:
    if fixed is None and per_token is None:
        if answers != 1:
            raise typer.BadParameter("--answers multiplies --fixed or --per-token: give one")
        return None
    from goldspan.selection import Cost

    return Cost(fixed=fixed or 0, per_token=per_token or 0, answers=answers)


def _in_round(rule: Any, number: int) -> Any:
    from goldspan.selection import Schedule

    if not isinstance(rule, Schedule):
        raise typer.BadParameter("--round is for schedules, and --by is a single rule")
    return rule.set_params(round=number)


def _models(paths: list[str]) -> Any:
    from goldspan.tagger import load_tagger

    models = [load_tagger(path) for path in paths]
    return models[0] if len(models) == 1 else models


def _features(
    pool: Pool, path: str | None, templates: str | None,
    options: dict[str, Any],
) -> Features:  # fmt: skip
    """Read the attribute values from a file, or fit them and write them there."""
    from goldspan.crowd.atomic import write_text
    from goldspan.errors import InputError
    from goldspan.selection import Features

    if path and Path(path).exists():
        try:
            return Features.from_json(Path(path).read_text(encoding="utf-8"))
        except (InputError, UnicodeDecodeError, OSError) as error:
            raise InputError(f"{path}: {error}") from None
    if templates:
        options["templates"] = templates
    found = Features.fit(pool, **options)
    if path:
        write_text(path, [found.to_json()])
    return found


def _write_select(found: Selection, output: str, lines: Any, *, raw_csv: bool) -> None:
    from goldspan.crowd.atomic import write_text

    if output == "-":
        for line in lines:
            say(line.removesuffix("\n"))
    elif output.endswith((".jsonl", ".jsonl.gz")):
        write_text(output, lines)
    else:
        write_text(output, [csv_text(found.to_arrow(), raw=raw_csv)])


def _tell_select(found: Selection, by: str, output: str | None, *, as_json: bool) -> None:
    facts: dict[str, Any] = {
        "by": by, "items": len(found), "tokens": found.n_tokens, "cost": found.total_cost,
        "unit": found.unit, "rules": found.counts(), "stopped": found.stopped,
        "seed": found.seed, "output": output, **found.facts,
    }  # fmt: skip
    if as_json:
        emit_json({**facts, "picks": found.to_arrow().to_pylist()})
        return
    tell = warn if output == "-" else say
    rules = ", ".join(f"{count} {name}" for name, count in found.counts().items())
    tokens = f", {found.n_tokens} tokens" if found.n_tokens else ""
    money = f", cost {found.total_cost / 1_000_000:.2f}" if found.unit == "micro" else ""
    tell(f"{len(found)} of {found.pool.n_items} items{tokens}{money} ({rules or 'none'})")
    tell(f"stopped: {_STOPPED[found.stopped]}")
    if "covered" in found.facts:
        covered, values = found.facts["covered"], found.facts["values"]
        tell(f"covered: {covered} of {values} attribute values")
        if not values:
            tell('no attribute value is in two items: try --by "coverage(weights=none)"')
    if found.facts.get("duplicates"):
        tell(f"duplicates left out: {found.facts['duplicates']}")
    if output is None and len(found):
        tell(_list(found))
    if output and output != "-":
        tell(f"written: {output}")


_STOPPED = {
    "budget": "nothing more fits into the budget",
    "saturated": "nothing more is new",
    "exhausted": "no item is left",
}


def _list(found: Selection) -> str:
    lines = [["item", "gain", "cost", "rule", "why"]]
    for row in found.to_arrow().slice(0, _SHOWN).to_pylist():
        numbers = (f"{row['gain']:.3f}", f"{row['cost']:g}")
        lines.append([row["item"], *numbers, row["rule"], row["why"]])
    more = len(found) - _SHOWN
    return table(lines, right=(1, 2)) + (f"\n… and {more} more" if more > 0 else "")


# --------------------------------------------------------------------------------------------------
# goldspan simulate


_DRAWN = "Drawn truth"


def _show_kinds(value: bool) -> None:
    if value:
        from goldspan.simulation.parsing import get_worker, signature
        from goldspan.simulation.registry import WORKERS

        rows = [[signature(get_worker(name)), text] for name, (_, text) in WORKERS.items()]
        say(table(rows))
        raise typer.Exit


@reads_crowd(without=("workers",))
def simulate(
    reading: Reading,
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
    seed: Seed = 0,
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
    classes: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="N|NAMES",
            help="How many labels (2 by default), or their names: no,yes.",
            rich_help_panel=_DRAWN,
        ),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(help="How frequent every label is: 3,1.", rich_help_panel=_DRAWN),
    ] = None,
    to_format: Annotated[
        str | None, typer.Option(help="Format of the output; by its ending by default.")
    ] = None,
    threads: ThreadCount = None,
    list_: Annotated[
        bool,
        typer.Option(
            "--list", help="List the kinds of workers.", callback=_show_kinds, is_eager=True
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Let simulated workers answer items whose truth is known.

    Answers depend on the seed, the worker's id and the item's id alone. Malformed
    tags stay as they are, unless --legal repairs them.

    Examples:

      goldspan simulate --list

      goldspan simulate gold.conll -w "crf_noise(0.05)" -w "flip(0.1) x3" --per-item 3 -o crowd.tsv

      goldspan simulate gold.conll -w "ana=flip(0.05) + misses(0.3)" -w "copier(ana)" --seed 7
      --json

      goldspan simulate gold.conll --workers crowd.toml --per-item 5 --workload zipf -o crowd.tsv

      goldspan simulate --items 1000 --labels 4 -w "flip(0.3) x31" --per-item 5 -o labels.csv
    """
    del list_
    _check_usage_simulate(source, items, classes, shares)
    if output == "-" and json:
        raise typer.BadParameter("-o - and --json both write to standard output: choose one")
    if worker and workers:
        raise typer.BadParameter("--worker and --workers cannot be used together: choose one")
    check_outputs(output, inputs=[source, reading.gold, tagger, workers], overwrite=overwrite)
    check_there(tagger)
    from goldspan.simulation import read_team, read_team_file

    team = read_team_file(workers) if workers else read_team(worker or [])
    if tagger and not any(map(_needs_tagger, team.values())):
        raise typer.BadParameter(
            "--tagger is for crf_noise workers, and there is none that uses it"
        )
    if items and any(reading.words()):
        raise typer.BadParameter("--items draws the truth: leave out the options of reading a FILE")
    with steps(3, quiet=json) as step:
        step(f"reading {source}" if source else "drawing the truth")
        if source:
            truth, n_left = _known(reading.read(source, step.part))
        else:
            truth, n_left = _drawn(items or 0, classes, shares, seed), 0
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
        lost = [] if json and output is None else _write_simulate(crowd, output, to_format)
    if n_left:
        warn(f"{n_left} items without all tags were left out")
    for what in lost:
        warn(not_held(what))
    _tell_simulate(crowd, team, output, as_json=json, seed=seed)


def _check_usage_simulate(
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


def _write_simulate(crowd: Crowd, output: str | None, to_format: str | None) -> list[str]:
    from goldspan.crowd.io import write_crowd, write_to_stdout

    if output in {None, "-"}:
        return write_to_stdout(crowd, to_format or ("long" if crowd.is_classification else "wide"))
    return write_crowd(crowd, str(output), format=to_format)


def _tell_simulate(
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
