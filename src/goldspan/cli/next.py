"""`goldspan next`: which items need another answer, whom to ask, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import (
    Overwrite,
    check_outputs,
    csv_text,
    emit_json,
    listed,
    say,
    steps,
    table,
    warn,
)
from goldspan.cli.prices import read_prices
from goldspan.cli.wording import plural

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus
    from goldspan.crowd import Crowd
    from goldspan.workers.redundancy import NextAnswers
    from goldspan.workers.stopping import Rule

_SHOWN = 10


def next(  # noqa: A001 - the command's name
    source: r.Input,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Posterior at which an item is finished; 0.95 by default.", show_default=False
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(help='Another rule: "clear_majority(2)", "stable_average(0.5)", "fixed(5)".'),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--max",
            min=1,
            help="Most answers of an item; 7 by default, of fixed(n) n.",
            show_default=False,
        ),
    ] = None,
    fewest: Annotated[
        int, typer.Option("--min", min=1, help="The rule finishes no item with fewer answers.")
    ] = 1,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="How to aggregate; by default ds, for tagged tokens bsc-seq.",
            autocompletion=r.method_names,
        ),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Known truth to learn from; --gold is only compared."),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Known truth to make confidences honest with."),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT|FILE",
            help="Money per answer: one amount, or a table with columns worker and price.",
        ),
    ] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID,ID,…",
            help="Who can be asked, newcomers too; by default all workers of FILE. Repeatable.",
        ),
    ] = None,
    per_worker: Annotated[
        int | None, typer.Option(min=1, help="Most answers to ask of one worker.")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("-n", min=0, help="Most items to ask about; all open ones by default."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write the list, .csv; - for stdout."),
    ] = None,
    overwrite: Overwrite = False,
    seed: Annotated[int, typer.Option(help="Seed of the order among equals.")] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; by default all cores.", show_default=False)
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
    """Say which items need another answer, whom to ask, and what it costs.

    Items come in the order of what another answer is expected to tell; each takes the worker who
    is expected to tell most for the money, of those who have not answered it.

    Examples:

      goldspan next answers.csv -n 100 -o next.csv

      goldspan next answers.csv --confidence 0.99 --max 9 --prices 0.05 --per-worker 20

      goldspan next answers.csv --prices prices.csv --ask ann,bob --json

      goldspan next ratings.csv --rule "stable_average(0.5)"
    """
    inputs = [path for path in (source, gold, known, calibrate) if path]
    check_outputs(output, inputs=inputs, overwrite=overwrite)
    r.check_there(known, calibrate)
    if output == "-" and json:
        raise typer.BadParameter("-o - and --json both write to standard output: choose one")
    if output and output != "-" and not output.endswith((".csv", ".csv.gz")):
        raise typer.BadParameter("-o: the name must end in .csv or .csv.gz")
    options = r.Reading(
        format=format, gold=gold, encoding=encoding, columns=columns, workers=workers,
        labels=label, missing=missing, delimiter=delimiter, text_encoding=text_encoding,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    from goldspan.workers import next_answers

    stop = _rule(rule, confidence)
    limit = _most(stop, fewest, most)
    priced = read_prices(prices)
    with steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        step("aggregating")
        result = _aggregate(crowd, method, known, calibrate, threads, step.round)
        step("choosing")
        found = next_answers(
            crowd, result, rule=stop, max_answers=limit, min_answers=fewest, prices=priced,
            workers=listed(ask, "--ask"), per_worker_limit=per_worker, n=number,
            random_state=seed,
        )  # fmt: skip
        if output:
            _write(found, output, raw_csv=raw_csv)
    _tell(found, result, output, as_json=json)


def _rule(rule: str | None, confidence: float | None) -> Rule:
    """Read the stopping rule: of --rule and --confidence only one can hold."""
    from goldspan.workers.redundancy import CONFIDENCE
    from goldspan.workers.stopping import get_rule

    if rule is not None and confidence is not None:
        raise typer.BadParameter(
            f'--confidence {confidence:g} is the rule "confident({confidence:g})": leave it or '
            "--rule out"
        )
    if rule is None:
        rule = f"confident({CONFIDENCE if confidence is None else confidence})"
    return get_rule(rule)


def _most(rule: Rule, fewest: int, most: int | None) -> int:
    """Return the most answers per item: what the rule needs and --min asks for must be allowed."""
    from goldspan.workers.redundancy import MAX_ANSWERS
    from goldspan.workers.stopping import Fixed

    needed = rule.k if isinstance(rule, Fixed) else 1
    limit = max(MAX_ANSWERS, needed) if most is None else most
    if needed > limit:
        raise typer.BadParameter(
            f"--rule fixed({needed}) needs {needed} answers of an item, and --max {limit} ends at "
            f"{limit}: raise --max, or leave it out"
        )
    if fewest > limit:
        raise typer.BadParameter(f"--min {fewest} is more than --max {limit}: raise --max too")
    return limit


def _aggregate(
    crowd: Crowd, method: str | None, known: str | None, calibrate: str | None,
    threads: int | None, progress: Any,
) -> Consensus:  # fmt: skip
    from goldspan.aggregation import aggregate
    from goldspan.runners import Threads

    name = method or ("ds" if crowd.is_classification else "bsc-seq")
    result = aggregate(crowd, name, gold=known, runner=Threads(threads), progress=progress)
    if calibrate:
        from goldspan.aggregation.calibration import calibrate as honest

        return honest(result, calibrate)
    return result


def _write(found: NextAnswers, output: str, *, raw_csv: bool) -> None:
    from goldspan.crowd.atomic import write_text

    text = csv_text(found.to_arrow(), raw=raw_csv)
    if output == "-":
        say(text.rstrip("\n"))
    else:
        write_text(output, [text])


def _tell(found: NextAnswers, result: Consensus, output: str | None, *, as_json: bool) -> None:
    from goldspan.money import from_micro

    cost = None if found.cost is None else from_micro(found.cost)
    right = _finished_right(found, result)
    if as_json:
        facts = {"method": result.method, "items": found.crowd.n_items, "status": found.counts()}
        facts |= {"to_ask": len(found), "cost": cost, "finished_right": right, "output": output}
        emit_json({**facts, "next": found.to_arrow().to_pylist()})
        return
    tell = warn if output == "-" else say
    finished, n_open = int(found.is_finished.sum()), found.counts()["open"]
    tell(
        f"{finished} of {plural(found.crowd.n_items, 'item')} {'is' if finished == 1 else 'are'} "
        f"finished{':' if finished else ''}"
    )
    rows = [[reason, str(count)] for reason, count in found.counts().items() if reason != "open"]
    if finished:
        tell(table([row for row in rows if row[1] != "0"], right=(1,)))
    if right is not None:
        tell(f"of the finished ones with gold, {100 * right:.1f} % are right")
    tell(f"{n_open} {'needs' if n_open == 1 else 'need'} another answer")
    if len(found):
        price = "" if cost is None else f", which {'costs' if len(found) == 1 else 'cost'} {cost}"
        tell(f"{plural(len(found), 'answer')} to ask for{price}:")
        tell(_list(found))
    if output and output != "-":
        tell(f"written: {output}")


def _list(found: NextAnswers) -> str:
    lines = [["item", "answers", "confidence", "worker", "gain"]]
    for row in found.to_arrow().slice(0, _SHOWN).to_pylist():
        numbers = (f"{row['confidence']:.3f}", row["worker"], f"{row['gain']:.3f}")
        lines.append([row["item"], str(row["answers"]), *numbers])
    more = len(found) - _SHOWN
    return table(lines, right=(1, 2, 4)) + (f"\n… and {more} more" if more > 0 else "")


def _finished_right(found: NextAnswers, result: Consensus) -> float | None:
    """Return the share of right items among the finished ones with gold, None without any."""
    import numpy as np

    from goldspan.workers.redundancy import right_items

    right, known = right_items(result)
    kept = found.is_finished & known
    return float(np.mean(right[kept])) if kept.any() else None
