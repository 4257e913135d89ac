"""Answers: aggregate them to gold, score labels against the truth, measure agreement."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from goldspan.aggregation import get_aggregator
from goldspan.aggregation.registry import canonical
from goldspan.cli.options import (
    MORE,
    AsJson,
    FamilyTable,
    Input,
    LayerNames,
    NoText,
    Overwrite,
    Policy,
    RawCsv,
    Reading,
    RunnerName,
    ThreadCount,
    argument,
    flag,
    format_names,
    method_names,
    option,
    reads_crowd,
)
from goldspan.cli.output import (
    as_read,
    check_ending,
    check_files,
    check_outputs,
    check_part,
    check_there,
    key_values,
    not_held,
    numbers,
    print_result,
    read_value,
    steps,
    table,
    warn,
)
from goldspan.crowd.atomic import write_text
from goldspan.crowd.registry import FORMATS, formats, get_writer
from goldspan.errors import FaultsError, InputError, UnknownNameError
from goldspan.runners import FileCheckpoint, working
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus
    from goldspan.aggregation.partitions import PartitionedResult
    from goldspan.crowd import Crowd
    from goldspan.crowd.measures import Agreement
    from goldspan.crowd.unitizing import UnitAgreement
    from goldspan.protocols import Progress, Runner
    from goldspan.spans.scoring import Score
    from goldspan.tagger import CRF

# --------------------------------------------------------------------------------------------------
# goldspan aggregate


@reads_crowd()
def aggregate(
    reading: Reading,
    source: Input,
    method: str = option(
        "Method: mv-token (majority vote), ds (Dawid-Skene: learns each worker's errors), bsc-seq"
        " (for spans) or another of `goldspan methods`; auto weighs those that suit.",
        "--method",
        "-m",
        default="auto",
        autocompletion=method_names,
    ),
    output: str | None = option(
        "Where to write the labels: .conll, .jsonl, .parquet, .csv, .spacy or .npz; - for standard"
        " output.",
        "--output",
        "-o",
    ),
    to_format: str | None = option(
        "Format of the labels, if the ending of the file name does not show it.",
        autocompletion=format_names,
    ),
    split: str | None = option(
        "Write a dataset of train, dev and test parts with these shares, such as 80,10,10.",
        metavar="SHARES",
        panel=MORE,
    ),
    overwrite: Overwrite = False,
    report: str | None = option("Write a report with figures to this file, such as report.html."),
    methods: bool = flag(
        "Print two paragraphs for the methods section of a paper.", "--methods", panel=MORE
    ),
    workers_table: str | None = option(
        "Write a table of the workers: .csv, or .jsonl with their typical errors.", metavar="FILE"
    ),
    known: str | None = option(
        "Labels to accept as true: they appear unchanged in the result, and the method learns from"
        " them how often each annotator errs. Gold labels of --gold only score the result.",
        metavar="FILE",
    ),
    calibrate: str | None = option(
        "Known labels to calibrate confidences with; the labels do not change.", metavar="FILE"
    ),
    coverage: float | None = option(
        "With --calibrate: also write sets of alternatives that contain the truth with this"
        " probability, such as 0.9.",
        panel=MORE,
    ),
    threads: ThreadCount = None,
    runner: RunnerName = None,
    tagger: str | None = option(
        "Write the tagger that is trained along with the labels to this file, such as"
        " ner.goldspan.",
        metavar="FILE",
    ),
    checkpoint: str | None = option(
        "Save the state to this file after every round, and resume from it.",
        metavar="FILE",
        panel=MORE,
    ),
    ties: str | None = option(
        "Votes: which of several top labels wins: first, random, outside or inside.", panel=MORE
    ),
    raw: bool = flag("Votes: leave malformed tag sequences as they are.", "--raw", panel=MORE),
    seed: int | None = option("Seed of the random numbers.", panel=MORE),
    families: FamilyTable = None,
    param: list[str] | None = option(
        "Another parameter of the method; `goldspan methods METHOD` lists them. Repeatable.",
        metavar="NAME=VALUE",
        panel=MORE,
    ),
    layer: LayerNames = None,
    ordinal: list[str] | None = option(
        "A question whose labels are levels of a scale: its method is ordinal. Repeatable.",
        metavar="NAME",
        panel=MORE,
    ),
    no_text: NoText = False,
    policy: Policy = "conlleval",
    raw_csv: RawCsv = False,
    json: AsJson = False,
) -> None:
    """Combine several annotators' answers into one label per token or item, with a confidence.

    Without --method, the methods that suit the data are compared by how well they predict answers
    that were hidden from them, and the best are averaged. The output shows the methods with their
    weights, and what to check before you trust the labels.

    If FILE has gold labels, the result is scored against them; they are never used to aggregate.

    FILE may also be a folder that `goldspan convert --partitions` wrote, for data that do not fit
    into memory; -o then names a new folder.

    Examples:

      goldspan aggregate answers.tsv -o gold.conll --report report.html

      goldspan aggregate labels.csv --method ds -o gold.csv
    """
    inputs = [path for path in (source, reading.gold, known, calibrate) if path]
    check_outputs(
        output, report, workers_table, tagger, inputs=[*inputs, checkpoint], overwrite=overwrite,
        as_json=json,
    )  # fmt: skip
    check_outputs(checkpoint, inputs=inputs, overwrite=True)  # a run goes on from it
    keep = FileCheckpoint(checkpoint) if checkpoint else None
    from goldspan.crowd.formats.parquet import is_partitioned

    if is_partitioned(source):
        others = {
            "--gold": reading.gold, "--known": known, "--calibrate": calibrate, "--report": report,
            "--methods": methods, "--workers-table": workers_table, "--tagger": tagger,
            "--overwrite": overwrite,
            "--to-format": to_format, "--split": split, "--coverage": coverage is not None,
            "--no-text": no_text, "--policy": policy != "conlleval", "--raw-csv": raw_csv,
            "--layer": layer, "--ordinal": ordinal,
            **{word: True for word in reading.words() if word.startswith("--")},
        }  # fmt: skip
        _check_partitions(output, others)
        own = method_params(method, param, ties=ties, raw=raw, seed=seed, families=families)
        _partitions(source, str(output), method, own, working(runner, threads), keep, as_json=json)
        return
    if ordinal or _several(layer):
        _aggregate_layers(
            reading, source, (layer or ["all"], ordinal or ()), output, policy,
            {
                "--calibrate": calibrate, "--report": report, "--workers-table": workers_table,
                "--methods": methods, "--tagger": tagger, "--checkpoint": checkpoint,
                "--to-format": to_format, "--split": split, "--coverage": coverage is not None,
                "--no-text": no_text, "--raw-csv": raw_csv,
            },
            {
                "method": None if method == "auto" else canonical(method), "gold": known,
                **method_params(method, param, ties=ties, raw=raw, seed=seed, families=families),
            },
            working(runner, threads), as_json=json,
        )  # fmt: skip
        return
    check_files(report=report, workers_table=workers_table, checkpoint=checkpoint, tagger=tagger)
    _check_parts(report, known, calibrate, coverage)
    shares, to_format = _shares(split, output, to_format)
    _check_endings(output, workers_table, to_format)
    method = _method(method, tagger)
    params = method_params(method, param, ties=ties, raw=raw, seed=seed, families=families)
    from goldspan.aggregation import use_named_families

    aggregator = get_aggregator(method, **params)
    with working(runner, threads) as worked_by, steps(4 if calibrate else 3, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part, layer)
        form = _form(output, to_format, crowd)
        _check_form(output, form, crowd, coverage, trains=bool(tagger) and method == "auto")
        if "families" not in params:
            use_named_families(aggregator, crowd)
        step(f"aggregating with {method}")
        aggregator.fit(crowd, known, runner=worked_by, progress=step.round, checkpoint=keep)
        result = aggregator.result_
        if calibrate:
            from goldspan.aggregation.calibration import calibrate as calibrated

            step("calibrating")
            result = calibrated(result, calibrate, coverage=coverage)
        step("writing")
        scored = _score(crowd, result, policy)
        how = {"format": form, "text": not no_text, "raw_csv": raw_csv}
        how = {"format": form, "shares": shares, "seed": seed or 1} if shares else how
        lost = _write(result, output, report, scored, how)
        if workers_table:
            _write_workers(result, workers_table)
        if tagger:
            made = result.tagger if crowd.wholes is None else None  # of whole sentences
            (made or _train(result, worked_by, step.round)).save(tagger)
    for what in (*map(not_held, lost), *(f"goldspan: warning: {one}" for one in result.warnings)):
        warn(what)
    facts: dict[str, Any] = {
        "output": output, "report": report, "lost": lost, "result": result.summary(),
        "warnings": result.warnings, "import": crowd.import_report.to_dict(max_faults=20),
        "score": scored.to_dict() if scored else None,
        **({"methods": _quotable(result)} if methods else {}),
    }  # fmt: skip
    lines = [*_lines(crowd, result, scored, output, report), *facts.get("methods", ())]
    print_result(facts, lines, as_json=json, to_stderr=output == "-")
    _check_interrupted(result)


def _quotable(result: Consensus) -> list[str]:
    from goldspan.report import methods_text

    return [*methods_text(result)]


def _several(layer: list[str] | None) -> bool:
    """Whether several layers are asked for."""
    return bool(layer) and (len(layer or ()) > 1 or layer == ["all"])


def _check_one(others: dict[str, Any]) -> None:
    """Reject options that are for one layer."""
    for name, value in others.items():
        if value:
            raise typer.BadParameter(f"{name} is for one layer: name it with --layer NAME")


def _aggregate_layers(
    reading: Reading, source: str, names: tuple[Sequence[str], Sequence[str]], output: str | None,
    policy: str, others: dict[str, Any], how: dict[str, Any], working_at: Any, *, as_json: bool,
) -> None:  # fmt: skip
    """Aggregate several layers, write their labels, and say what became of each."""
    from goldspan.aggregation import aggregate as aggregated
    from goldspan.aggregation.consensus import format_of

    _check_one(others)
    if output and format_of(output) != "jsonl":
        raise InputError(f"{output}: labels of several layers are written as .jsonl")
    with working_at as runner, steps(2, quiet=as_json) as step:
        step(f"reading {source}")
        layers = reading.read_layers(source, *names)
        step("aggregating")
        results: Any = aggregated(layers, runner=runner, progress=step.round, **how)
    scores = {name: _score(layers[name], one, policy) for name, one in results.items()}
    facts, lines = {}, []
    for name, result in results.items():
        crowd, scored = layers[name], scores[name]
        warnings = [f"{name}: {one}" for one in result.warnings]
        for one in warnings:
            warn(f"goldspan: warning: {one}")
        lines += [f"layer {name}:", *_lines(crowd, result, scored, "-", None), ""]
        facts[name] = {
            "result": result.summary(), "warnings": warnings,
            "import": crowd.import_report.to_dict(max_faults=20),
            "score": scored.to_dict() if scored else None,
        }  # fmt: skip
    if output:
        results.write(output)
    lines.append(f"written: {output}" if output else "no labels written: pass -o FILE.jsonl")
    print_result({"output": output, "layers": facts}, lines, as_json=as_json)


def _check_interrupted(result: Consensus | PartitionedResult) -> None:
    """Say that there was more to do, and end the command as Ctrl-C does."""
    if result.stop_reason == "interrupted":
        done = counted(len(result.trace), "round")
        warn(f"goldspan: interrupted after {done}; the result was written")
        raise typer.Exit(130)


def _shares(
    split: str | None, output: str | None, to_format: str | None
) -> tuple[list[float] | None, str | None]:
    """Read the shares of train, dev and test; returns also the format."""
    if split is None:
        return None, to_format
    if output in {None, "-"}:
        raise typer.BadParameter("--split writes a folder: pass -o FOLDER")
    from goldspan.aggregation.splits import checked_shares

    name = Path(str(output)).name.lower().removesuffix(".gz")
    named = {ending for one in FORMATS.values() for ending in one.endings if ending}
    if ending := next(filter(name.endswith, sorted(named)), None):
        message = (
            f"--split writes a folder, and {output} is the name of a file: leave {ending} out, "
            "and say by --to-format what the files in the folder are"
        )
        raise typer.BadParameter(message)
    shares = numbers(split, "--split", "takes three numbers, such as 80,10,10")
    return checked_shares(shares).tolist(), to_format or "datasets"


def _method(name: str, tagger: str | None) -> str:
    """Return the name of the method as it is registered."""
    method = canonical(name)
    if tagger and not ("crf" in method or method.endswith("+encoder") or method == "auto"):
        raise typer.BadParameter("--tagger needs a method with a CRF, such as bsc-seq+crf, or auto")
    return method


def _check_partitions(output: str | None, others: dict[str, Any]) -> None:
    """Reject what cannot be done out of core, before any work is done."""
    if output in {None, "-"}:
        raise typer.BadParameter("the labels of partitions are a folder: name it with -o")
    from goldspan.aggregation.consensus import format_of

    if form := format_of(str(output)):
        raise typer.BadParameter(
            f"the labels of partitions are a folder of Parquet files, not {form}: name a folder"
        )
    for name, value in others.items():
        if value:
            raise typer.BadParameter(f"{name} is not for folders of partitions: leave it out")


def _partitions(
    source: str, output: str, method: str, params: dict[str, Any], working_at: Any,
    keep: FileCheckpoint | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Aggregate a folder of partitions, and say what became of it."""
    from dataclasses import asdict

    from goldspan.aggregation.partitions import aggregate_partitions

    with working_at as runner, steps(1, quiet=as_json) as step:
        step(f"aggregating with {method}")
        found = aggregate_partitions(
            source, output, canonical(method), runner=runner, progress=step.round, checkpoint=keep,
            **params,
        )  # fmt: skip
    size = f"{counted(found.n_items, 'item')} in {counted(found.n_partitions, 'partition')}"
    given = f"{counted(found.n_answers, 'answer')} of {counted(found.n_workers, 'worker')}"
    took = f"{_end(found)} after {counted(len(found.trace), 'round')}, {found.seconds:.1f} s"
    lines = [
        f"{found.method}: {size}, {given} ({took})",
        *found.notes,
        f"mean confidence {found.confidence:.3f}; items without answers: {found.n_open}",
        f"written: {output}",
    ]
    print_result({"input": source, "output": output, **asdict(found)}, lines, as_json=as_json)
    _check_interrupted(found)


def _check_parts(
    report: str | None, known: str | None, calibrate: str | None, coverage: float | None
) -> None:
    """Check what is needed beside the answers."""
    if report:
        check_ending("--report", report, ".html")
        check_part("report")
    check_there(known, calibrate)
    if coverage is not None and not calibrate:
        raise typer.BadParameter("--coverage needs known labels: pass them with --calibrate")
    if coverage is not None and not 0 < coverage < 1:
        raise typer.BadParameter(f"--coverage is a number between 0 and 1, not {coverage:g}")


def _form(output: str | None, to_format: str | None, crowd: Crowd) -> str:
    """Return the format in which the labels are written."""
    from goldspan.aggregation.consensus import format_of

    found = to_format or (output and format_of(output))
    found = found or ("csv" if crowd.is_classification else "conll")
    return "span-table" if found == "csv" and not crowd.tagset.rules.is_plain else found


def _check_form(
    output: str | None, form: str, crowd: Crowd, coverage: float | None, *, trains: bool
) -> None:
    """Reject what cannot hold the labels and sets, or learn from them, before they are computed."""
    from goldspan.aggregation.base import has_words

    if trains and (crowd.is_classification or not has_words(crowd)):
        raise InputError("--tagger: a tagger learns from tagged words, and there are none")
    if output and form == "csv" and not crowd.is_classification:
        message = f"{output}: csv is for single labels and spans; write .conll, .jsonl or .parquet"
        raise InputError(message)
    if coverage is None or output is None or form in {"jsonl", "parquet", "csv"}:
        return
    name = "CoNLL" if form == "conll" else form
    where = f"standard output shows {name}, which" if output == "-" else f"{output}: {name}"
    raise InputError(f"{where} has no place for the sets of --coverage: write -o gold.jsonl")


def _check_endings(output: str | None, workers_table: str | None, to_format: str | None) -> None:
    """Reject names of files whose ending says nothing, before any work is done."""
    from goldspan.aggregation.consensus import ENDINGS, WRITERS, format_of

    name = to_format or (format_of(output) if output else None)
    if output and output != "-" and name is None:
        endings = ", ".join(ENDINGS)
        message = f"{output}: the name must end in {endings} (text also .gz), or pass --to-format"
        raise InputError(message)
    if name is not None and name not in WRITERS:
        if name not in formats():
            known = dict.fromkeys([*WRITERS, *formats()])
            raise UnknownNameError("output format", name, known)
        module = get_writer(name)
        if hasattr(module, "check"):
            module.check()
    if workers_table and Path(workers_table).suffix not in {".csv", ".jsonl"}:
        raise InputError(f"{workers_table}: the name must end in .csv or .jsonl")


def _train(result: Consensus, runner: Runner, progress: Progress) -> CRF:
    """Train a CRF on the labels."""
    import numpy as np

    from goldspan.cli.models import text_of
    from goldspan.tagger import CRF

    crowd = result.as_gold().whole_items
    if result.crowd.wholes is not None:
        warn("where spans overlap, the tagger learns the outermost ones alone")
    crowd = crowd.select_items(np.diff(crowd.by_item.bounds) > 0)
    crf = CRF(encoding=crowd.tagset.encoding, vectors=result.params.get("vectors"))
    tags = list(crowd.tagged_by_id().values())
    return crf.fit(text_of(crowd), tags, runner=runner, progress=progress)


def _write_workers(result: Consensus, path: str) -> None:
    import json

    from goldspan._arrays import plain
    from goldspan.crowd.grid import sheet_text

    rows = result.workers.to_pylist()
    if path.endswith(".jsonl"):
        for row in rows:
            row["habits"] = [str(habit) for habit in result.habits(row["worker"])]
        write_text(path, [json.dumps(plain(row), ensure_ascii=False) + "\n" for row in rows])
        return
    write_text(path, [sheet_text(result.workers.column_names, rows)])


def _score(crowd: Crowd, result: Consensus, policy: str) -> Any:
    from goldspan.crowd.measures import score
    from goldspan.spans.corpus import check_policy

    check_policy(policy)
    if crowd.gold is None or not (crowd.gold >= 0).any():
        return None
    return score(crowd, result, policy=policy)


def _write(
    result: Consensus, output: str | None, report: str | None, scored: Any, how: dict[str, Any]
) -> list[str]:
    lost: list[str] = []
    if "shares" in how:
        from goldspan.aggregation.splits import write_splits

        lost = write_splits(result, str(output), **how)
    elif output == "-":
        import sys
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "gold"
            lost = result.write(path, **how)
            if path.is_dir():
                raise typer.BadParameter(f"{how['format']} is a folder: pass -o FOLDER")
            data = path.read_bytes()
            if how["format"] in {"parquet", "cleanlab", "docbin"}:
                sys.stdout.flush()
                sys.stdout.buffer.write(data)
            else:
                sys.stdout.write(data.decode())
    elif output:
        lost = result.write(output, **how)
    if report:
        from goldspan.crowd import agreement
        from goldspan.report import write_report

        write_report(result, report, agreement=agreement(result.crowd), score=scored)
    return lost


def _lines(
    crowd: Crowd, result: Consensus, scored: Any, output: str | None, report: str | None
) -> Iterator[str]:
    yield str(crowd.import_report)
    whole = crowd.whole_items
    spans = "" if crowd.tagset.rules.is_plain else f", {counted(len(result.spans), 'span')}"
    took = f"{result.seconds:.1f} s"
    if result.trace and not result.candidates:
        took = f"{_end(result)} after {counted(len(result.trace), 'round')}, {took}"
    notes = [] if result.candidates else result.notes
    yield (
        f"{result.method}: {crowd.items_counted}, {counted(whole.n_tokens, 'token')}, "
        f"{counted(len(whole.latest), 'answer')} of {counted(crowd.n_workers, 'worker')}{spans} "
        f"({'; '.join([*([took] if result.trace or result.candidates else []), *notes])})"
    )
    if result.candidates:
        yield "methods tried:"
        rows = [[f"{one.weight:.0%}", one.name] for one in result.candidates]
        head = ["weight", "method"]
        yield textwrap.indent(table([head, *rows], right=(0,)), "  ")
        yield from (textwrap.fill(note, 80, subsequent_indent="  ") for note in result.notes)
    if scored:
        yield "compared with the gold labels:"
        yield str(scored)
    yield from (f"written: {path}" for path in (output, report) if path and path != "-")
    if not output:
        sets, file = (" and no sets of alternatives", "gold.jsonl") if result.sets else ("", "FILE")
        yield f"no labels{sets} written: pass -o {file} to keep them"


def _end(result: Consensus | PartitionedResult) -> str:
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
        "Resamples of the items for a 95 % interval of F1, such as 1000; 0 for none.",
        default=0,
        min=0,
    ),
    seed: int = option("Seed of the resampling.", default=0, panel=MORE),
    wrong: bool = flag("List every wrong span.", "--wrong"),
    layer: LayerNames = None,
    json: AsJson = False,
) -> None:
    """Compare labels with the truth: precision, recall and F1 of spans, and accuracy.

    Items are matched by their ids, or by their order if the files share no id and have the same
    texts; the tokens may differ. A file without gold that has one annotator is what that one says.
    If the labels come from `goldspan aggregate` (.jsonl, .parquet, .csv), the calibration
    of their confidences is measured too.

    Examples:

      goldspan score gold.conll truth.conll

      goldspan score gold.jsonl answers.tsv --bootstrap 1000 --wrong
    """
    from goldspan.aggregation.plausibility import measure_confidence
    from goldspan.aggregation.written import read_confidences
    from goldspan.crowd.measures import aligned_sides, labels_of
    from goldspan.crowd.measures import score as compare

    if _several(layer):
        _check_one({"--wrong": wrong})
        sides = [reading.read_layers(path, layer or ()) for path in (truth, predicted)]
        scores: Any = compare(*sides, policy=policy, bootstrap=bootstrap, random_state=seed)
        lines = [line for name, one in scores.items() for line in (f"layer {name}:", str(one), "")]
        each = {name: one.to_dict() for name, one in scores.items()}
        facts = {"predicted": predicted, "truth": truth, "layers": each}
        print_result(facts, lines[:-1], as_json=json)
        return
    with steps(3, quiet=json) as step:
        step(f"reading {predicted}")
        labels = labels_of(reading.read(predicted, step.part, layer), predicted)
        step(f"reading {truth}")
        known = labels_of(reading.read(truth, step.part, layer), truth)
        step("comparing")
        are_sets = labels.wholes is not None or known.wholes is not None
        found, gold = (labels, known) if are_sets else aligned_sides(labels, known)
        result = compare(
            gold, found, policy=policy, bootstrap=bootstrap, random_state=seed, wrong=wrong
        )
        try:
            # there are no confidences of pieces, nor of sets
            is_other = are_sets or found.n_tokens != labels.n_tokens
            sure = None if predicted == "-" or is_other else read_confidences(predicted, labels)
        except FaultsError as error:
            warn(f"confidences are not measured: {error}")
            sure = None
        if sure:
            result = replace(result, confidence=measure_confidence(found, *sure, gold, None))
    facts = {"predicted": predicted, "truth": truth, **result.to_dict()}
    reports = labels.import_report, known.import_report
    facts["remarks"] = dict(zip((predicted, truth), (one.remarks for one in reports), strict=True))
    for line in [] if json else [line for one in reports for line in as_read(one)]:
        if not line.endswith(("as gold only", "are read as gold")):  # as is asked for
            warn(line)
    print_result(facts, _score_lines(result, gold), as_json=json)


def _score_lines(result: Score, gold: Crowd) -> Iterator[str]:
    yield str(result)
    if result.wrong:
        ids = gold.whole_items.item_ids.to_pylist()
        rows = [[ids[w.item], w.side, w.type, f"[{w.start}, {w.end})"] for w in result.wrong]
        where = "tokens" if result.jaccard is None else "place"
        yield table([["item", "side", "type", where], *rows])


# --------------------------------------------------------------------------------------------------
# goldspan agreement


@reads_crowd()
def agreement(
    reading: Reading,
    source: Input,
    plot: str | None = option("Draw box plots of the workers to a .svg, .png or .pdf file."),
    units: bool = flag(
        "Also compute gamma and alpha_u of spans, per document and pair of workers.", "--units"
    ),
    layer: LayerNames = None,
    overwrite: Overwrite = False,
    policy: Policy = "conlleval",
    json: AsJson = False,
) -> None:
    """Measure how well the annotators agree with each other and with the gold.

    The output has Krippendorff's alpha, Cohen's and Fleiss' kappa, the F1 of spans between workers,
    and a row for every worker.

    Examples:

      goldspan agreement answers.tsv

      goldspan agreement labels.csv --gold truth.csv --plot agreement.svg
    """
    check_outputs(plot, inputs=[source], overwrite=overwrite)
    if plot:
        check_part("picture")
    from goldspan.crowd import agreement as measure

    if _several(layer):
        _check_one({"--plot": plot, "--units": units})
        every: Any = measure(reading.read_layers(source, layer or ()), policy=policy)
        texts = {name: [*_agreement_lines(one, None), ""] for name, one in every.items()}
        lines = [line for name, text in texts.items() for line in (f"layer {name}:", *text)]
        each = {name: one.to_dict() for name, one in every.items()}
        print_result({"layers": each}, lines, as_json=json)
        return
    with steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part, layer)
        step("comparing the workers")
        found = measure(crowd, policy=policy)
        step("drawing")
        if plot:
            from goldspan.report import agreement_figure, save_figure

            save_figure(agreement_figure(crowd, found), plot)
    facts, lines = found.to_dict(), list(_agreement_lines(found, plot))
    facts["remarks"] = crowd.import_report.remarks
    if not json:
        for line in as_read(crowd.import_report):
            warn(line)
    if units:
        from goldspan.crowd.unitizing import unit_agreement

        spans = unit_agreement(crowd, policy=policy)
        facts["units"] = spans.to_dict()
        lines += ["", *_unit_lines(spans)]
    print_result(facts, lines, as_json=json)


def _unit_lines(found: UnitAgreement) -> Iterator[str]:
    """The measures of spans, the pairs and documents with the least gamma first."""
    import numpy as np

    yield str(found)
    for listed, what in ((found.pairs, "pairs of workers"), (found.documents, "documents")):
        rows = sorted(listed.to_pylist(), key=lambda row: np.nan_to_num(row["gamma"], nan=2))
        shown = rows[:_MOST]
        yield f"\n{what}, the least gamma first ({len(shown)} of {len(rows)}; all with --json)"
        yield _listing(listed.column_names, shown)


_MOST = 10
"""Pairs and documents that are printed."""
_HEADS = {"span_f1": "span F1", "f1_others": "F1 with others"}
"""Headings of columns that are not their names with spaces."""


def _agreement_lines(found: Agreement, plot: str | None) -> Iterator[str]:
    yield str(found)
    rows = sorted(found.workers.to_pylist(), key=lambda row: -row["answers"])
    head = [_HEADS.get(name, name.replace("_", " ")) for name in rows[0]]
    yield ""
    yield _listing(head, rows)
    if plot:
        yield f"written: {plot}"


def _listing(head: list[str], rows: list[dict[str, Any]]) -> str:
    cells = [
        [f"{100 * v:.2f}" if isinstance(v, float) else "-" if v is None else str(v) for v in row]
        for row in map(dict.values, rows)
    ]
    return table([head, *cells], right=tuple(range(1, len(head))))


# --------------------------------------------------------------------------------------------------
# Parameters of a method


_VOTES = "votes such as mv-token"
_KIN = "methods that know families, such as ds"


def method_params(
    method: str, param: list[str] | None, *, ties: str | None, raw: bool, seed: int | None,
    families: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Put together the parameters of a method."""
    from goldspan.params import parameters

    # Parameters that are words: "none" is one of them
    found = parameters(type(get_aggregator(method)))
    words = {one.name for one in found if isinstance(one.default, str)}
    params = {
        name: text if name in words and text.lower() == "none" else read_value(text)
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
        if name not in get_aggregator(method).parameter_names():
            raise InputError(
                f"{said} is for {meant}, not for {method}: leave it out, or choose another --method"
            )
        params[name] = value
    return params
