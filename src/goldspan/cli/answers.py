"""Answers: aggregate them to gold, score labels against the truth, measure agreement."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from goldspan.cli.options import (
    AsJson,
    FamilyTable,
    Input,
    NoText,
    Overwrite,
    Policy,
    RawCsv,
    Reading,
    ThreadCount,
    argument,
    flag,
    method_names,
    option,
    reads_crowd,
)
from goldspan.cli.output import (
    check_files,
    check_outputs,
    check_part,
    check_there,
    key_values,
    not_held,
    print_result,
    steps,
    table,
    warn,
)

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus
    from goldspan.crowd import Crowd
    from goldspan.crowd.measures import Agreement
    from goldspan.protocols import Progress
    from goldspan.spans.scoring import Score
    from goldspan.tagger import CRF

# --------------------------------------------------------------------------------------------------
# goldspan aggregate


@reads_crowd()
def aggregate(
    reading: Reading,
    source: Input,
    method: str = option(
        "One of the methods listed below; auto tries many, and averages those that predict hidden"
        " answers best.",
        "--method",
        "-m",
        default="auto",
        autocompletion=method_names,
    ),
    output: str | None = option(
        "Where to write the gold: .conll, .jsonl, .parquet or .csv (text also .gz); - for"
        " standard output.",
        "--output",
        "-o",
    ),
    overwrite: Overwrite = False,
    report: str | None = option("Write a report with figures to this file, such as report.html."),
    workers_table: str | None = option(
        "Write the table of workers: .csv, or .jsonl, which adds their typical errors.",
        metavar="FILE",
    ),
    known: str | None = option(
        "Known labels: they are kept, and learned from. (--gold is only for scoring.)",
        metavar="FILE",
    ),
    calibrate: str | None = option(
        "Known labels to calibrate confidences with; the labels do not change.",
        metavar="FILE",
    ),
    coverage: float | None = option(
        "With --calibrate: also a set of alternatives for every written span, which holds the truth"
        " with this probability, such as 0.9; they are written to .jsonl."
    ),
    threads: ThreadCount = None,
    tagger: str | None = option(
        "Write the tagger that a method with a CRF trains, such as ner.goldspan; with auto a CRF"
        " is trained on the labels.",
        metavar="FILE",
    ),
    checkpoint: str | None = option(
        "Save the state to this file after every round, and resume from it: methods that iterate,"
        " such as bsc-seq.",
        metavar="FILE",
    ),
    ties: str | None = option(
        "Votes: which of several top labels wins: first, random, outside or inside."
    ),
    raw: bool = flag("Votes: leave malformed tag sequences in the result as they are.", "--raw"),
    seed: int | None = option("Seed of the random numbers."),
    families: FamilyTable = None,
    param: list[str] | None = option(
        "Another parameter of the method, see `goldspan methods`. Repeatable.", metavar="NAME=VALUE"
    ),
    no_text: NoText = False,
    policy: Policy = "conlleval",
    raw_csv: RawCsv = False,
    json: AsJson = False,
) -> None:
    """Aggregate the answers of a crowd to one label per token, with a confidence.

    Without --method the methods that suit the crowd are tried on answers that were hidden from
    them; those that predict them best are averaged. It is printed what was tried, what was chosen
    and how sure that is, and what should be looked at before the labels are trusted.

    If the crowd comes with gold, the result is scored against it; the gold is never used
    to aggregate.

    Examples:

      goldspan aggregate answers.tsv.gz -o gold.conll --report report.html

      goldspan aggregate answers.tsv.gz --method bsc-seq+crf -o gold.conll --tagger ner.goldspan

      goldspan aggregate answers.tsv.gz --method mv-token --param ties=inside -o votes.conll

      goldspan aggregate labels.csv --columns item=question --gold truth.csv --json

      goldspan aggregate answers.tsv.gz -m ds --calibrate known.conll --coverage 0.9 -o gold.jsonl
    """
    from goldspan.aggregation.registry import canonical

    inputs = [path for path in (source, reading.gold, known, calibrate) if path]
    outputs = (output, report, workers_table, tagger)
    check_outputs(*outputs, inputs=[*inputs, checkpoint], overwrite=overwrite, as_json=json)
    check_outputs(checkpoint, inputs=inputs, overwrite=True)  # a run goes on from it
    if report:
        check_part("report")
    check_files(report=report, workers_table=workers_table, checkpoint=checkpoint, tagger=tagger)
    check_there(known, calibrate)
    _check_coverage(coverage, calibrate)
    _check_endings(output, workers_table)
    method = canonical(method)
    if tagger and "crf" not in method and method != "auto":
        raise typer.BadParameter("--tagger needs a method with a CRF, such as bsc-seq+crf, or auto")
    params = method_params(method, param, ties=ties, raw=raw, seed=seed, families=families)
    from goldspan.aggregation import get_aggregator

    aggregator = get_aggregator(method, **params)
    from goldspan.runners import FileCheckpoint, Threads

    keep = FileCheckpoint(checkpoint) if checkpoint else None
    with steps(4 if calibrate else 3, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        _check_suits(output, crowd, trains=bool(tagger) and method == "auto")
        _check_sets(output, crowd, coverage)
        step(f"aggregating with {method}")
        aggregator.fit(crowd, known, runner=Threads(threads), progress=step.round, checkpoint=keep)
        result = aggregator.result_
        if calibrate:
            from goldspan.aggregation.calibration import calibrate as calibrated

            step("calibrating")
            result = calibrated(result, calibrate, coverage=coverage)
        step("writing")
        scored = _score(crowd, result, policy)
        lost = _write(result, output, report, scored, text=not no_text, raw_csv=raw_csv)
        if workers_table:
            _write_workers(result, workers_table)
        if tagger:
            (result.tagger or _train(result, threads, step.round)).save(tagger)
    for what in lost:
        warn(not_held(what))
    for warning in result.warnings:
        warn(f"goldspan: warning: {warning}")
    facts = {"output": output, "report": report, "lost": lost, **_facts(crowd, result, scored)}
    lines = _lines(crowd, result, scored, output, report)
    print_result(facts, lines, as_json=json, to_stderr=output == "-")
    if result.stop_reason == "interrupted":
        warn(f"goldspan: interrupted after {len(result.trace)} rounds; their result was written")
        raise typer.Exit(130)


def _check_coverage(coverage: float | None, calibrate: str | None) -> None:
    """Reject a coverage without known labels, or that is none."""
    if coverage is None:
        return
    if not calibrate:
        raise typer.BadParameter("--coverage needs known labels: pass them with --calibrate")
    if not 0 < coverage < 1:
        raise typer.BadParameter(f"--coverage is a number between 0 and 1, not {coverage:g}")


def _check_sets(output: str | None, crowd: Crowd, coverage: float | None) -> None:
    """Reject a file that has no place for the sets of alternatives, before any work is done."""
    from goldspan.aggregation.consensus import format_of
    from goldspan.errors import InputError

    if coverage is None or output is None:
        return
    form = format_of(output) or ("csv" if crowd.is_classification else "conll")
    if form == "conll":
        where = "standard output shows CoNLL, which" if output == "-" else f"{output}: CoNLL"
        raise InputError(f"{where} has no place for the sets of --coverage: write -o gold.jsonl")


def _check_endings(output: str | None, workers_table: str | None) -> None:
    """Reject names of files whose ending says nothing, before any work is done."""
    from pathlib import Path

    from goldspan.aggregation.consensus import ENDINGS, format_of
    from goldspan.errors import InputError

    if output and output != "-" and format_of(output) is None:
        raise InputError(f"{output}: the name must end in {', '.join(ENDINGS)} (text also .gz)")
    if workers_table and Path(workers_table).suffix not in {".csv", ".jsonl"}:
        raise InputError(f"{workers_table}: the name must end in .csv or .jsonl")


def _check_suits(output: str | None, crowd: Crowd, *, trains: bool) -> None:
    """Reject what cannot hold the crowd's labels or learn from them, before they are computed."""
    from goldspan.aggregation.consensus import format_of
    from goldspan.aggregation.legal import has_words
    from goldspan.errors import InputError

    if output and format_of(output) == "csv" and not crowd.is_classification:
        raise InputError(f"{output}: csv is for single labels; write .conll, .jsonl or .parquet")
    if trains and (crowd.is_classification or not has_words(crowd)):
        raise InputError("--tagger: a tagger learns from tagged words, and there are none")


def _train(result: Consensus, threads: int | None, progress: Progress) -> CRF:
    """Train a CRF on the labels."""
    import numpy as np

    from goldspan.runners import Threads
    from goldspan.tagger import CRF, Text

    crowd = result.as_gold().select_items(np.diff(result.crowd.by_item.bounds) > 0)
    documents = None if crowd.groups is None else [str(name) for name in crowd.groups.to_pylist()]
    text = Text.of(crowd.tokens_list, documents)
    crf = CRF(encoding=crowd.tagset.encoding)
    tags = list(crowd.tagged_by_id().values())
    return crf.fit(text, tags, runner=Threads(threads), progress=progress)


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


def _facts(crowd: Crowd, result: Consensus, scored: Any) -> dict[str, Any]:
    return {
        "result": result.summary(),
        "warnings": result.warnings,
        "import": crowd.import_report.to_dict(max_faults=20),
        "score": scored.to_dict() if scored else None,
    }


def _lines(
    crowd: Crowd, result: Consensus, scored: Any, output: str | None, report: str | None
) -> Iterator[str]:
    yield str(crowd.import_report)
    spans = "" if crowd.tagset.rules.is_plain else f", {len(result.span_array)} spans"
    took = f"{result.seconds:.1f} s"
    if result.trace and not result.candidates:
        took = f"{_end(result)} after {len(result.trace)} rounds, {took}"
    notes = [] if result.candidates else result.notes
    yield (
        f"{result.method}: {crowd.n_items} items, {crowd.n_tokens} tokens, "
        f"{len(crowd.latest)} answers of {crowd.n_workers} workers{spans} "
        f"({'; '.join([*([took] if result.trace or result.candidates else []), *notes])})"
    )
    if result.candidates:
        yield "methods that were tried (loss: mean -ln probability of a hidden label):"
        rows = [
            [
                f"{one.weight:.0%}",
                one.name,
                f"{-one.score:.4f}" if one.is_judged else "-",
                f"{one.temperature:.1f}" if one.is_judged else "-",
            ]
            for one in result.candidates
        ]
        head = ["weight", "method", "loss", "temperature"]
        yield textwrap.indent(table([head, *rows], right=(0, 2, 3)), "  ")
        yield from result.notes
    if scored:
        yield "against the gold:"
        yield str(scored)
    yield from (f"written: {path}" for path in (output, report) if path and path != "-")
    if not output:
        if result.sets:
            yield "no labels and no sets of alternatives written: pass -o gold.jsonl to keep them"
        else:
            yield "no labels written: pass -o gold.conll to keep them"


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
    predicted: str = argument("The labels to score: a CoNLL file, or the gold of a crowd."),
    truth: str = argument("The truth, in any format with gold."),
    policy: Policy = "conlleval",
    bootstrap: int = option(
        "Resamples of the items for a 95 % interval of F1: at least 100, or 0 for none.",
        default=0,
        min=0,
    ),
    seed: int = option("Seed of the resampling.", default=0),
    wrong: bool = flag("List every wrong span.", "--wrong"),
    json: AsJson = False,
) -> None:
    """Compare tags with the truth: precision, recall and F1 of spans, and token accuracy.

    Items are matched by their ids, or by their order if no id is shared and the tokens are the
    same. The policy for malformed tags and the encoding are printed above the numbers.

    Of labels that `goldspan aggregate` wrote as .jsonl, .parquet or .csv, which hold confidences,
    it is measured how far these can be believed, too. Damaged ones are listed, and not measured.

    Examples:

      goldspan score gold.conll truth.conll --policy conlleval --json

      goldspan score gold.conll answers.tsv.gz --bootstrap 1000 --wrong
    """
    from goldspan.aggregation.confidence import measure_confidence
    from goldspan.aggregation.written import read_confidences
    from goldspan.crowd.measures import aligned_sides
    from goldspan.errors import FaultsError
    from goldspan.spans import score as compare
    from goldspan.spans.scoring import MIN_RESAMPLES

    if 0 < bootstrap < MIN_RESAMPLES:
        raise typer.BadParameter(
            f"--bootstrap must be 0 or at least {MIN_RESAMPLES}, not {bootstrap}: an interval of "
            "fewer resamples means nothing"
        )

    with steps(3, quiet=json) as step:
        step(f"reading {predicted}")
        labels = reading.read(predicted, step.part)
        step(f"reading {truth}")
        found, gold = aligned_sides(labels, reading.read(truth, step.part))
        step("comparing")
        result = compare(
            gold, found, policy=policy, bootstrap=bootstrap, random_state=seed, wrong=wrong
        )
        try:
            sure = None if predicted == "-" else read_confidences(predicted, labels)
        except FaultsError as error:
            warn(f"confidences are not measured: {error}")
            sure = None
        if sure:
            result = replace(result, confidence=measure_confidence(found, *sure, gold, None))
    facts = {"predicted": predicted, "truth": truth, **result.to_dict()}
    print_result(facts, _score_lines(result, gold), as_json=json)


def _score_lines(result: Score, gold: Crowd) -> Iterator[str]:
    yield str(result)
    if result.wrong:
        ids = list(gold.tagged_by_id())
        rows = [[ids[w.item], w.side, w.type, f"[{w.start}, {w.end})"] for w in result.wrong]
        yield table([["item", "side", "type", "tokens"], *rows])


# --------------------------------------------------------------------------------------------------
# goldspan agreement


@reads_crowd()
def agreement(
    reading: Reading,
    source: Input,
    plot: str | None = option("Draw box plots of the workers to a .svg, .png or .pdf file."),
    overwrite: Overwrite = False,
    policy: Policy = "conlleval",
    json: AsJson = False,
) -> None:
    """Measure how well the annotators agree with each other and with the gold.

    Also known as inter-annotator agreement.

    Prints Krippendorff's alpha, Cohen's and Fleiss' kappa, the span F1 between workers, and the
    answers and the F1 of every worker.

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
    print_result(found.to_dict(), _agreement_lines(found, plot), as_json=json)


def _agreement_lines(found: Agreement, plot: str | None) -> Iterator[str]:
    yield str(found)
    rows = sorted(found.workers.to_pylist(), key=lambda row: -row["answers"])
    head = [name.replace("_", " ") for name in rows[0]]
    yield ""
    cells = [list(map(_cell, row.values())) for row in rows]
    yield table([head, *cells], right=tuple(range(1, len(head))))
    if plot:
        yield f"written: {plot}"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if isinstance(value, float) else str(value)


# --------------------------------------------------------------------------------------------------
# Parameters of a method


_WORDS = {"true": True, "false": False, "none": None}
_VOTES = "votes such as mv-token"
_KIN = "methods that know families, such as ds"


def method_params(
    method: str, param: list[str] | None, *, ties: str | None, raw: bool, seed: int | None,
    families: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Put together the parameters of a method.

    Raises:
        typer.BadParameter: A parameter is given twice, or does not look like NAME=VALUE.
        InputError: An option is for other methods.
        UnknownNameError: There is no such method.
    """
    words = _parameters_of_words(method)
    params = {
        name: text if name in words and text.lower() == "none" else _value(text)
        for name, text in key_values(param, "NAME=VALUE").items()
    }
    own: list[tuple[str, str, Any, str]] = []
    own += [("--ties", "ties", ties, _VOTES)] if ties is not None else []
    own += [("--raw", "legal", False, _VOTES)] if raw else []
    own += [("--seed", "random_state", seed, "methods that draw")] if seed is not None else []
    own += [("--families", "families", families, _KIN)] if families is not None else []
    for said, name, value, meant in own:
        if name in params:
            raise typer.BadParameter(f"{said} and --param {name}=… are the same: leave one out")
        _check_has(method, name, said, meant)
        params[name] = value
    return params


def _parameters_of_words(method: str) -> set[str]:
    """Name the parameters that are words: "none" is one of them."""
    from goldspan.aggregation import get_aggregator
    from goldspan.params import parameters

    found = parameters(type(get_aggregator(method)))
    return {one.name for one in found if isinstance(one.default, str)}


def _check_has(method: str, name: str, option: str, meant: str) -> None:
    from goldspan.aggregation import get_aggregator
    from goldspan.errors import InputError

    if name not in get_aggregator(method).parameter_names():
        raise InputError(
            f"{option} is for {meant}, not for {method}: leave it out, or choose another --method"
        )


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
