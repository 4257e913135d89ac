"""Answers: aggregate them to gold, score labels against the truth, measure agreement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli.options import (
    AsJson,
    Input,
    NoText,
    Overwrite,
    Policy,
    RawCsv,
    Reading,
    ThreadCount,
    method_names,
    reads_crowd,
)
from goldspan.cli.output import (
    check_files,
    check_outputs,
    check_part,
    check_there,
    emit_json,
    key_values,
    not_held,
    say,
    steps,
    table,
    warn,
)

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus
    from goldspan.crowd import Crowd

# --------------------------------------------------------------------------------------------------
# goldspan aggregate


@reads_crowd()
def aggregate(
    reading: Reading,
    source: Input,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="One of the methods listed below.",
            autocompletion=method_names,
        ),
    ] = "mv-token",
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="gold.conll, .jsonl, .parquet or .csv (text also .gz); - for stdout.",
        ),
    ] = None,
    overwrite: Overwrite = False,
    report: Annotated[
        str | None, typer.Option(help="Write a report with pictures, report.html.")
    ] = None,
    workers_table: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write the table of workers: .csv, or .jsonl with their habits."
        ),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Known truth: it is kept and learned from; --gold is only scored."
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Known truth to calibrate confidences with; labels stay (not votes).",
        ),
    ] = None,
    threads: ThreadCount = None,
    tagger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write the tagger that methods with a CRF train, .goldspan."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep the state after every round, and resume from it."),
    ] = None,
    ties: Annotated[
        str | None, typer.Option(help="Votes: first, random, outside or inside.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Votes: do not make the result well-formed.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Another parameter of the method. Repeatable."),
    ] = None,
    no_text: NoText = False,
    policy: Policy = "conlleval",
    raw_csv: RawCsv = False,
    json: AsJson = False,
) -> None:
    """Aggregate the answers of a crowd to one label per token, with a confidence.

    If the crowd comes with gold, the result is scored against it; gold is never used to decide.

    Examples:

      goldspan aggregate answers.tsv.gz --method bsc-seq -o gold.conll --report report.html

      goldspan aggregate answers.tsv.gz --method mv-token --param ties=inside -o votes.conll

      goldspan aggregate labels.csv --columns item=question --gold truth.csv --json
    """
    from goldspan.aggregation.registry import canonical

    inputs = [path for path in (source, reading.gold, known, calibrate) if path]
    outputs = (output, report, workers_table, tagger)
    check_outputs(*outputs, inputs=[*inputs, checkpoint], overwrite=overwrite)
    check_outputs(checkpoint, inputs=inputs, overwrite=True)  # a run goes on from it
    if report:
        check_part("report")
    check_files(report=report, workers_table=workers_table, checkpoint=checkpoint, tagger=tagger)
    check_there(known, calibrate)
    if output == "-" and json:
        raise typer.BadParameter("-o - and --json both write to standard output: choose one")
    _check_endings(output, workers_table)
    method = canonical(method)
    if tagger and "crf" not in method:
        raise typer.BadParameter("--tagger needs a method with a CRF, such as bsc-seq+crf")
    params = method_params(method, param, ties=ties, raw=raw, seed=seed)
    from goldspan.aggregation import get_aggregator

    aggregator = get_aggregator(method, **params)
    from goldspan.runners import FileCheckpoint, Threads

    keep = FileCheckpoint(checkpoint) if checkpoint else None
    with steps(4 if calibrate else 3, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        _check_suits(output, crowd)
        step(f"aggregating with {method}")
        aggregator.fit(crowd, known, runner=Threads(threads), progress=step.round, checkpoint=keep)
        result = aggregator.result_
        if calibrate:
            from goldspan.aggregation.calibration import calibrate as calibrated

            step("calibrating")
            result = calibrated(result, calibrate)
        step("writing")
        scored = _score(crowd, result, policy)
        lost = _write(result, output, report, scored, text=not no_text, raw_csv=raw_csv)
        if workers_table:
            _write_workers(result, workers_table)
        if tagger and result.tagger:
            result.tagger.save(tagger)
    for what in lost:
        warn(not_held(what))
    _tell(crowd, result, scored, output, report, lost, as_json=json)
    if result.stop_reason == "interrupted":
        warn(
            f"goldspan: interrupted after {len(result.trace)} rounds; what is written is "
            "their result"
        )
        raise typer.Exit(130)


def _check_endings(output: str | None, workers_table: str | None) -> None:
    """Reject names of files whose ending says nothing, before any work is done."""
    from pathlib import Path

    from goldspan.aggregation.consensus import ENDINGS, format_of
    from goldspan.errors import InputError

    if output and output != "-" and format_of(output) is None:
        raise InputError(f"{output}: the name must end in {', '.join(ENDINGS)} (text also .gz)")
    if workers_table and Path(workers_table).suffix not in {".csv", ".jsonl"}:
        raise InputError(f"{workers_table}: the name must end in .csv or .jsonl")


def _check_suits(output: str | None, crowd: Crowd) -> None:
    """Reject an output that cannot hold the crowd's labels, before they are computed."""
    from goldspan.aggregation.consensus import format_of
    from goldspan.errors import InputError

    if output and format_of(output) == "csv" and not crowd.is_classification:
        raise InputError(f"{output}: csv is for single labels; write .conll, .jsonl or .parquet")


def _write_workers(result: Consensus, path: str) -> None:
    import json
    import math

    from goldspan.crowd.atomic import write_text
    from goldspan.crowd.cells import sheet_text

    rows = result.workers.to_pylist()
    if path.endswith(".jsonl"):
        for row in rows:
            row["habits"] = [str(habit) for habit in result.habits(row["worker"])]
            for name, value in row.items():
                if isinstance(value, float) and math.isnan(value):
                    row[name] = None
        write_text(path, [json.dumps(row, ensure_ascii=False) + "\n" for row in rows])
        return
    write_text(path, [sheet_text(result.workers.column_names, rows)])


def _score(crowd: Crowd, result: Consensus, policy: str) -> Any:
    from goldspan.spans import score
    from goldspan.spans.corpus import check_policy

    check_policy(policy)
    if crowd.gold is None or not (crowd.gold >= 0).any():
        return None
    return score(crowd, result, policy=policy)


def _write(
    result: Consensus,
    output: str | None,
    report: str | None,
    scored: Any,
    *,
    text: bool,
    raw_csv: bool,
) -> list[str]:
    lost: list[str] = []
    if output == "-":
        import sys
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "gold"
            lost = result.write(path, text=text, raw_csv=raw_csv)
            sys.stdout.write(path.read_text(encoding="utf-8"))
    elif output:
        lost = result.write(output, text=text, raw_csv=raw_csv)
    if report:
        from goldspan.crowd import agreement
        from goldspan.report import write_report

        write_report(result, report, agreement=agreement(result.crowd), score=scored)
    return lost


def _tell(
    crowd: Crowd,
    result: Consensus,
    scored: Any,
    output: str | None,
    report: str | None,
    lost: list[str],
    *,
    as_json: bool,
) -> None:
    for warning in result.warnings:
        warn(f"goldspan: warning: {warning}")
    if as_json:
        facts = {"output": output, "report": report, "lost": lost, "result": result.summary()}
        facts["warnings"] = result.warnings
        facts["import"] = crowd.import_report.to_dict(max_faults=20)
        facts["score"] = scored.to_dict() if scored else None
        emit_json(facts)
        return
    tell = warn if output == "-" else say
    tell(str(crowd.import_report))
    spans = "" if crowd.tagset.rules.is_plain else f", {len(result.span_array)} spans"
    notes = list(result.notes)
    if result.trace:
        notes.insert(0, f"{_end(result)} after {len(result.trace)} rounds, {result.seconds:.1f} s")
    tell(
        f"{result.method}: {crowd.n_items} items, {crowd.n_tokens} tokens, "
        f"{len(crowd.latest)} answers of {crowd.n_workers} workers{spans} "
        f"({'; '.join(notes)})"
    )
    if scored:
        tell("against the gold:")
        tell(str(scored))
    for path in (output, report):
        if path and path != "-":
            tell(f"written: {path}")
    if not output:
        tell("no labels written: pass -o gold.conll to keep them")


def _end(result: Consensus) -> str:
    """Return how the rounds ended."""
    if result.converged:
        return "converged"
    if result.stop_reason == "interrupted":
        return "interrupted"
    most = result.stop_reason in {"max_iter", "rounds"}
    return f"not converged: {'most rounds reached' if most else result.stop_reason}"


# --------------------------------------------------------------------------------------------------
# goldspan score


@reads_crowd()
def score(
    reading: Reading,
    predicted: Annotated[str, typer.Argument(help="The labels to score: CoNLL or a crowd's gold.")],
    truth: Annotated[str, typer.Argument(help="The truth, in any format with gold.")],
    policy: Policy = "conlleval",
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0, help="Resamples of items for a 95 % interval of F1, at least 100; 0 for none."
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    wrong: Annotated[bool, typer.Option("--wrong", help="List every wrong span.")] = False,
    json: AsJson = False,
) -> None:
    """Compare tags with the truth: precision, recall and F1 of spans, and token accuracy.

    Items are matched by their ids (by order where no id is shared and the tokens are the same).
    The policy for malformed tags and the encoding are printed above the numbers.

    Examples:

      goldspan score gold.conll truth.conll --policy conlleval --json

      goldspan score gold.conll answers.tsv.gz --bootstrap 1000 --wrong
    """
    from goldspan.crowd.measures import aligned_sides
    from goldspan.spans import score as compare
    from goldspan.spans.scoring import MIN_RESAMPLES

    if 0 < bootstrap < MIN_RESAMPLES:
        raise typer.BadParameter(
            f"--bootstrap must be 0 or at least {MIN_RESAMPLES}, not {bootstrap}: an interval of "
            "fewer resamples means nothing"
        )

    found, gold = aligned_sides(reading.read(predicted), reading.read(truth))
    result = compare(
        gold, found, policy=policy, bootstrap=bootstrap, random_state=seed, wrong=wrong
    )
    if json:
        emit_json({"predicted": predicted, "truth": truth, **result.to_dict()})
        return
    say(str(result))
    if wrong and result.wrong:
        ids = list(gold.tagged_by_id())
        rows = [[ids[w.item], w.side, w.type, f"[{w.start}, {w.end})"] for w in result.wrong]
        say(table([["item", "side", "type", "tokens"], *rows]))


# --------------------------------------------------------------------------------------------------
# goldspan agreement


@reads_crowd()
def agreement(
    reading: Reading,
    source: Input,
    plot: Annotated[
        str | None, typer.Option(help="Write the box plots: a .svg, .png or .pdf.")
    ] = None,
    overwrite: Overwrite = False,
    policy: Policy = "conlleval",
    json: AsJson = False,
) -> None:
    """Measure how well the annotators agree with each other and with the gold.

    Also known as inter-annotator agreement.

    Prints Krippendorff's alpha, Cohen's and Fleiss' kappa, the span F1 between workers, and per
    worker the answers and the F1.

    Examples:

      goldspan agreement answers.tsv.gz

      goldspan agreement labels.csv --gold truth.csv --plot agreement.svg --json
    """
    check_outputs(plot, inputs=[source], overwrite=overwrite)
    if plot:
        check_part("picture")
    from goldspan.crowd import agreement as measure

    with steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        step("comparing the workers")
        found = measure(crowd, policy=policy)
        step("drawing")
        if plot:
            from goldspan.report import agreement_figure, save_figure

            save_figure(agreement_figure(crowd, found), plot)
    if json:
        emit_json(found.to_dict())
        return
    say(str(found))
    rows = found.workers.to_pylist()
    rows.sort(key=lambda row: -row["answers"])
    names = list(rows[0])
    cells = [[_cell(row[name]) for name in names] for row in rows]
    head = [name.replace("_", " ") for name in names]
    say("")
    say(table([head, *cells], right=tuple(range(1, len(names)))))
    if plot:
        say(f"written: {plot}")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if isinstance(value, float) else str(value)


# --------------------------------------------------------------------------------------------------
# Parameters of a method


_WORDS = {"true": True, "false": False, "none": None}
_VOTES = "votes such as mv-token"


def method_params(
    method: str, param: list[str] | None, *, ties: str | None, raw: bool, seed: int | None
) -> dict[str, Any]:
    """Put together the parameters of a method.

    Raises:
        typer.BadParameter: A parameter is given twice, or does not look like NAME=VALUE.
        InputError: An option is for other methods.
        UnknownNameError: There is no such method.
    """
    params = {name: _value(text) for name, text in key_values(param, "NAME=VALUE").items()}
    own: list[tuple[str, str, Any, str]] = []
    own += [("--ties", "ties", ties, _VOTES)] if ties is not None else []
    own += [("--raw", "legal", False, _VOTES)] if raw else []
    own += [("--seed", "random_state", seed, "methods that draw")] if seed is not None else []
    for option, name, value, meant in own:
        if name in params:
            raise typer.BadParameter(f"{option} and --param {name}=… are the same: leave one out")
        _check_has(method, name, option, meant)
        params[name] = value
    return params


def _check_has(method: str, name: str, option: str, meant: str) -> None:
    from goldspan.aggregation import get_aggregator
    from goldspan.errors import InputError

    if name not in get_aggregator(method).parameter_names():
        raise InputError(f"{option} is for {meant}, not for {method}: leave it out")


def _value(text: str) -> Any:
    """Read a parameter: true, false, none, a number, or a string."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
