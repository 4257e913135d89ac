"""Items: which of a pool are worth labelling, and simulated workers who label them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from goldspan.cli.commands import RARE
from goldspan.cli.options import (
    MORE,
    AsJson,
    MaxDecompressed,
    Overwrite,
    RawCsv,
    Reading,
    RunnerName,
    ThreadCount,
    argument,
    flag,
    option,
    reads_crowd,
    reads_pool,
)
from goldspan.cli.output import (
    check_ending,
    check_outputs,
    check_there,
    csv_text,
    key_values,
    not_held,
    numbers,
    print_result,
    say,
    steps,
    table,
    warn,
    write_crowd_to,
)
from goldspan.crowd.atomic import write_text
from goldspan.errors import InputError
from goldspan.runners import working
from goldspan.selection.registry import DEFAULT
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.selection import Cost
    from goldspan.selection.base import Selection
    from goldspan.simulation import SimulatedWorker

# --------------------------------------------------------------------------------------------------
# goldspan select


_SHOWN = 10
_COST, _VALUES, _READING = "Costs", f"{RARE}: attribute values", "Reading"


@reads_pool
def select(
    pool: dict[str, Any],
    source: str = argument("Items to choose from (also .gz), or - for standard input.", "POOL"),
    budget: str | None = option(
        "The budget: 100items, 5000tokens or 12.50money.", "--budget", "-b"
    ),
    number: int | None = option("Choose at most this many items.", "-n", min=0),
    by: str = option("A rule of `goldspan methods`, or a schedule of rules.", default=DEFAULT),
    labelled: str | None = option(
        "Items that are labelled already, in the format of POOL.", metavar="FILE"
    ),
    model: list[str] | None = option(
        "A tagger of `goldspan train`; several are a committee. Repeatable.", metavar="FILE"
    ),
    errors: str | None = option(
        "A model's errors on items that it was not trained on: a table of item and error (0 to 1).",
        metavar="FILE",
        panel=MORE,
    ),
    round_: int | None = option(
        "Round of the schedule; by default 0, or 1 with a model.", "--round", min=0, panel=MORE
    ),
    output: str | None = option(
        "Where to write: .jsonl or .csv; - for standard output.", "--output", "-o"
    ),
    overwrite: Overwrite = False,
    attributes: bool = flag("POOL is a table of attributes, with a row per item.", "--attributes"),
    format: str | None = option(  # noqa: A002 - the word users know
        "Format of POOL, such as text, table, jsonl or crowd; guessed by default.",
        "--format",
        "-f",
        panel=_READING,
    ),
    fixed: str | None = option("Money per answer.", panel=_COST),
    per_token: str | None = option("Money per answer and token.", panel=_COST),
    answers: int = option("Planned answers per item.", default=1, min=1, panel=_COST),
    templates: str | None = option(
        "For texts: a named set of features of the taggers, or FILE.toml.", panel=_VALUES
    ),
    numeric: str = option(
        "How numbers become attribute values: nearest(10), quantile(10), log2 or categorical.",
        default="quantile(10)",
        panel=_VALUES,
    ),
    column: list[str] | None = option(
        "Another rule for one column: age=log2; label=skip leaves it out. Repeatable.",
        metavar="NAME=RULE",
        panel=_VALUES,
    ),
    missing: str = option(
        "Whether a missing cell has no value (skip) or a value of its own (value).",
        default="skip",
        panel=_VALUES,
    ),
    seed: int = option("Seed of the random numbers, also for ties.", default=0, panel=MORE),
    max_decompressed: MaxDecompressed = None,
    raw_csv: RawCsv = False,
    json: AsJson = False,
) -> None:
    """Choose the items of a pool that are worth labelling.

    A pool is a file of texts (.txt, .csv, .tsv, .jsonl, .parquet, .conll), a folder of .txt files,
    or a crowd. The first round needs no model: it picks items with attributes that are frequent in
    the pool and not covered yet. Later rounds pick items on which a tagger is uncertain. Random
    picks are marked (`is_control`): they are the unbiased sample to measure quality on.

    Examples:

      goldspan select pool.jsonl --budget 5000tokens -o batch.jsonl

      goldspan select pool.csv -n 100 --labelled gold.conll --model ner.goldspan
    """
    check_ending("-o", output, ".jsonl", ".csv", ".jsonl.gz", ".csv.gz")
    _check_usage_select(attributes, format, templates)
    inputs = [path for path in (source, labelled, errors, *(model or [])) if path]
    check_outputs(output, inputs=inputs, overwrite=overwrite, as_json=json)
    check_there(labelled, errors, *(model or []))
    cost = _cost(fixed, per_token, answers)
    from goldspan.selection import Features, Pool
    from goldspan.selection.files import read_errors, read_pool, selection_lines
    from goldspan.selection.schedule import read_selector

    rule = read_selector(by)
    if round_ is not None:
        rule = _in_round(rule, round_)
    kind = "attributes" if attributes else format
    with steps(4, quiet=json) as step:
        step(f"reading {source}")
        read = read_pool(source, kind, max_decompressed=max_decompressed, **pool)
        items = Pool.of(read)
        for note in read.import_report.notes:
            warn(f"goldspan: {source}: {note}")
        given: dict[str, Any] = {"budget": budget, "n": number, "costs": cost}
        if labelled:
            other = "attributes" if attributes else None
            known = read_pool(
                labelled, other, tokens=pool["tokens"], max_decompressed=max_decompressed
            )
            given["labelled"] = Pool.of(known)
        if errors:
            given["errors"] = read_errors(errors)
        if model:
            given["model"] = _models(model)
        step("finding attribute values")
        rules = key_values(column, "NAME=RULE")
        options: dict[str, Any] = {"numeric": numeric, "missing": missing, "discretisers": rules}
        if templates:
            options["templates"] = templates
        values = Features.fit(items, **options)
        step("choosing")
        found = rule.select(items, features=values, random_state=seed, **given)
        step("writing")
        if output:
            _write_select(found, output, selection_lines(found, read), raw_csv=raw_csv)
    facts = {
        "by": by, "items": len(found), "tokens": found.n_tokens, "cost": found.total_cost,
        "unit": found.unit, "rules": found.counts(), "stopped": found.stopped,
        "seed": found.seed, "output": output, **found.facts, "picks": found.to_arrow().to_pylist(),
    }  # fmt: skip
    print_result(facts, _lines_of(found, output), as_json=json, to_stderr=output == "-")


def _check_usage_select(attributes: bool, format_: str | None, templates: str | None) -> None:
    if attributes and format_ not in {None, "attributes"}:
        raise typer.BadParameter("--attributes says how POOL is read: leave out --format")
    if templates and (attributes or format_ == "attributes"):
        raise typer.BadParameter("--templates is for texts: a table has columns instead")


def _cost(fixed: str | None, per_token: str | None, answers: int) -> Cost | None:
    if fixed is None and per_token is None:
        if answers != 1:
            raise typer.BadParameter(
                "--answers multiplies --fixed or --per-token: give one of these too"
            )
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


def _write_select(found: Selection, output: str, lines: Any, *, raw_csv: bool) -> None:
    if output == "-":
        for line in lines:
            say(line.removesuffix("\n"))
    elif output.endswith((".jsonl", ".jsonl.gz")):
        write_text(output, lines)
    else:
        write_text(output, [csv_text(found.to_arrow(), raw=raw_csv)])


def _lines_of(found: Selection, output: str | None) -> Iterator[str]:
    rules = ", ".join(f"{count} {name}" for name, count in found.counts().items())
    tokens = f", {counted(found.n_tokens, 'token')}" if found.n_tokens else ""
    money = f", cost {found.total_cost / 1_000_000:.2f}" if found.unit == "micro" else ""
    yield f"{len(found)} of {found.pool.n_items:,} items{tokens}{money} ({rules or 'none'})"
    yield f"stopped: {_STOPPED[found.stopped]}"
    if "covered" in found.facts:
        covered, values = found.facts["covered"], found.facts["values"]
        yield f"covered: {covered} of {values} attribute values"
        if not values:
            yield 'no attribute value is in two items: try --by "coverage(weights=none)"'
    if found.facts.get("duplicates"):
        yield f"duplicates left out: {found.facts['duplicates']}"
    if output is None and len(found):
        lines = [["item", "gain", "cost", "rule", "why"]]
        for row in found.to_arrow().slice(0, _SHOWN).to_pylist():
            numbers = (f"{row['gain']:.3f}", f"{row['cost']:g}")
            lines.append([row["item"], *numbers, row["rule"], row["why"]])
        more = len(found) - _SHOWN
        yield table(lines, right=(1, 2)) + (f"\n… and {more} more" if more > 0 else "")
    if output and output != "-":
        yield f"written: {output}"


_STOPPED = {
    "budget": "nothing more fits into the budget",
    "saturated": "nothing more is new",
    "exhausted": "no item is left",
}


# --------------------------------------------------------------------------------------------------
# goldspan simulate


_DRAWN = "Drawn truth"


@reads_crowd(without=("workers",))
def simulate(
    reading: Reading,
    source: str | None = argument(
        "Items with gold, in any format that holds it; - for standard input.", "FILE", default=None
    ),
    worker: list[str] | None = option(
        'A worker: "flip(0.1)", "ana=acc", "flip(0.1) x3". Repeatable.',
        "--worker",
        "-w",
        metavar="WORKER",
    ),
    output: str | None = option(
        "Where to write; by default, or with -, to standard output.", "--output", "-o"
    ),
    overwrite: Overwrite = False,
    per_item: int | None = option("Workers per item; by default all.", min=1),
    workload: str = option(
        "How the answers are shared out: equal, zipf, or a weight per worker: 5,3,1.",
        default="equal",
        panel=MORE,
    ),
    seed: int = option("Seed of the random numbers.", default=0),
    legal: bool = flag("Make malformed answers well-formed.", "--legal", panel=MORE),
    times: bool = flag("Give every answer a time (for .csv and .parquet).", "--times", panel=MORE),
    tagger: str | None = option(
        "A trained CRF for crf_noise workers; without it one is trained.",
        metavar="FILE",
        panel=MORE,
    ),
    items: int | None = option(
        "Draw this many items with single labels instead of reading FILE.", min=1, panel=_DRAWN
    ),
    classes: str | None = option(
        "How many labels (2 by default), or their names: no,yes.",
        "--labels",
        metavar="N|NAMES",
        panel=_DRAWN,
    ),
    shares: str | None = option("Relative frequency of every label: 3,1.", panel=_DRAWN),
    to_format: str | None = option(
        "Format of the output, if the ending of its name does not show it.", panel=MORE
    ),
    threads: ThreadCount = None,
    runner: RunnerName = None,
    json: AsJson = False,
) -> None:
    """Let simulated workers answer items whose truth is known.

    An answer depends only on the seed, the worker's id and the item's id. Malformed tags stay as
    they are, unless --legal repairs them.

    Examples:

      goldspan simulate gold.conll -w "flip(0.1) x3" -w "flip(0.5)" -o crowd.tsv

      goldspan simulate --items 1000 --labels 4 -w "flip(0.3) x9" -o labels.csv
    """
    _check_usage_simulate(source, items, classes, shares)
    inputs = [source, reading.gold, tagger]
    check_outputs(output, inputs=inputs, overwrite=overwrite, as_json=json)
    check_there(tagger)
    from goldspan.simulation import read_team

    team = read_team(worker or [])
    if tagger and not any(map(_needs_tagger, team.values())):
        raise typer.BadParameter(
            "--tagger is for crf_noise workers, and there is none that uses it"
        )
    if items and any(reading.words()):
        raise typer.BadParameter(
            "--items draws the truth: leave out the options for reading a FILE"
        )
    with working(runner, threads) as worked_by, steps(3, quiet=json) as step:
        step(f"reading {source}" if source else "drawing the truth")
        if source:
            truth, n_left = _known(reading.read(source, step.part))
        else:
            truth, n_left = _drawn(items or 0, classes, shares, seed), 0
        step(f"workers ({len(team)}) answer {truth.items_counted}")
        from goldspan.simulation import simulate_crowd
        from goldspan.tagger import load_tagger

        trained: Any = load_tagger(tagger) if tagger else None
        crowd = simulate_crowd(
            truth,
            team,
            per_item=per_item,
            workload=_weights(workload),
            seed=seed,
            legal=legal,
            times=times,
            tagger=trained,
            runner=worked_by,
            progress=step.round,
        )
        step("writing")
        usual = "long" if crowd.is_classification else "wide"
        is_silent = json and output is None
        lost = [] if is_silent else write_crowd_to(crowd, output, to_format, usual)
    if n_left:
        warn(f"left out: {counted(n_left, 'item')} without all tags")
    for what in lost:
        warn(not_held(what))
    _show_simulated(crowd, team, output, seed, as_json=json)


def _show_simulated(
    crowd: Crowd, team: Mapping[str, SimulatedWorker], output: str | None, seed: int,
    *, as_json: bool,
) -> None:  # fmt: skip
    """Print how good the simulated workers are, and what was written."""
    from goldspan.simulation import measure_workers

    rates = measure_workers(crowd)
    whole = crowd.whole_items
    size = {"items": whole.n_items, "tokens": whole.n_tokens, "answers": len(whole.answers)}
    kinds = [{"kind": str(team[one.worker]), **one._asdict()} for one in rates]
    facts = {"output": output, "seed": seed, **size, "workers": kinds}
    to_stdout = output in {None, "-"}
    rows = [["worker", "kind", "answers", "accuracy", "F1"]]
    for one in rates:
        shown = ["-" if math.isnan(value) else f"{100 * value:.2f}" for value in one[3:]]
        rows.append([one.worker, str(team[one.worker]), str(one.n_answers), *shown])
    answers = counted(len(whole.answers), "answer")
    written = f"written: {output} ({crowd.items_counted}, {answers})"
    lines = [table(rows, right=(2, 3, 4)), *([] if to_stdout else [written])]
    print_result(facts, lines, as_json=as_json, to_stderr=to_stdout)


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
    from goldspan.simulation.base import has_unknown

    unknown = has_unknown(crowd)
    if unknown.all() and crowd.n_items:
        raise InputError("no item has tags that are all known: give a FILE with gold, or --gold")
    return (crowd.select_items(~unknown) if unknown.any() else crowd), int(unknown.sum())


def _drawn(items: int, labels: str | None, shares: str | None, seed: int) -> Crowd:
    from goldspan.simulation import draw_truth

    names = ("2" if labels is None else labels).split(",")
    number = int(names[0]) if len(names) == 1 and names[0].isdecimal() else None
    wanted = "must be numbers such as 3,1"
    weights = None if shares is None else numbers(shares, "--shares", wanted)
    chosen = names if number is None else number
    return draw_truth(items, chosen, shares=weights, seed=seed)


def _weights(workload: str) -> str | list[float]:
    from goldspan.simulation.crowd import WORKLOADS

    if workload in WORKLOADS:
        return workload
    return numbers(workload, "--workload", "must be equal, zipf or numbers such as 3,1")
