"""`goldspan aggregate`: from answers to gold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import (
    Overwrite,
    check_outputs,
    check_part,
    emit_json,
    not_held,
    say,
    steps,
    warn,
)
from goldspan.cli.parameters import method_params

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus
    from goldspan.crowd import Crowd


def aggregate(
    source: r.Input,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="One of the methods listed below.",
            autocompletion=r.method_names,
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
            metavar="FILE", help="Known truth: it stands, and is learned from; --gold is scored."
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Known truth to make confidences honest with; labels stay (not votes).",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; by default all cores.", show_default=False)
    ] = None,
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
    no_text: r.NoText = False,
    policy: r.Policy = "conlleval",
    format: r.Format = None,  # noqa: A002 - the word users know
    gold: r.Gold = None,
    encoding: r.EncodingName = None,
    columns: r.Columns = None,
    workers: r.Workers = None,
    label: r.Labels = None,
    missing: r.Missing = None,
    altered: r.Altered = "missing",
    repeated: r.Repeated = "last",
    strict: r.Strict = False,
    offsets: r.Offsets = "codepoint",
    cut: r.Cut = "split",
    tokens: r.TokenRule = "fine",
    overlapping: r.Overlapping = "longest",
    strip: r.Strip = False,
    rename_worker: r.RenameWorkers = None,
    delimiter: r.Delimiter = None,
    text_encoding: r.TextEncoding = None,
    max_decompressed: r.MaxDecompressed = None,
    raw_csv: r.RawCsv = False,
    json: r.AsJson = False,
) -> None:
    """Aggregate the answers of a crowd to one label per token, with a confidence.

    If the crowd comes with gold, the result is scored against it; gold is never used to decide.

    Examples:

      goldspan aggregate answers.tsv.gz --method bsc-seq -o gold.conll --report report.html

      goldspan aggregate answers.tsv.gz --method mv-token --param ties=inside -o votes.conll

      goldspan aggregate labels.csv --columns item=question --gold truth.csv --json
    """
    from goldspan.aggregation.registry import canonical

    inputs = [path for path in (source, gold, known, calibrate) if path]
    outputs = (output, report, workers_table, tagger)
    check_outputs(*outputs, inputs=[*inputs, checkpoint], overwrite=overwrite)
    check_outputs(checkpoint, inputs=inputs, overwrite=True)  # a run goes on from it
    if report:
        check_part("report")
    r.check_files(report=report, workers_table=workers_table, checkpoint=checkpoint, tagger=tagger)
    r.check_there(known, calibrate)
    if output == "-" and json:
        raise typer.BadParameter("-o - and --json both write to standard output: choose one")
    _check_endings(output, workers_table)
    method = canonical(method)
    if tagger and "crf" not in method:
        raise typer.BadParameter("--tagger needs a method with a CRF, such as bsc-seq+crf")
    options = r.Reading(
        format, gold, encoding, columns, workers, label, missing, altered, repeated, strict,
        offsets, cut, delimiter, text_encoding, tokens=tokens, overlapping=overlapping,
        strip=strip, rename_workers=rename_worker,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    params = method_params(method, param, ties=ties, raw=raw, seed=seed)
    from goldspan.aggregation import get_aggregator

    aggregator = get_aggregator(method, **params)
    from goldspan.runners import FileCheckpoint, Threads

    keep = FileCheckpoint(checkpoint) if checkpoint else None
    with steps(4 if calibrate else 3, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        _check_suits(output, crowd)
        step(f"aggregating with {method}")
        aggregator.fit(crowd, known, runner=Threads(threads), progress=step.round, checkpoint=keep)
        result = aggregator.result_
        if calibrate:
            from goldspan.aggregation.calibration import calibrate as honest

            step("calibrating")
            result = honest(result, calibrate)
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
    if as_json:
        facts = {"output": output, "report": report, "lost": lost, "result": result.summary()}
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
