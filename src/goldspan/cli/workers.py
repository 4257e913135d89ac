"""`goldspan workers`: whom to keep, drop or test more, the best team, and what accuracy it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import (
    Overwrite,
    check_outputs,
    check_part,
    emit_json,
    say,
    steps,
    table,
    warn,
)
from goldspan.cli.prices import read_prices

if TYPE_CHECKING:
    from goldspan.workers import Review, Verdict

_SHOWN = 40
_NAME = 14
"""Characters of a worker's name that a line of 80 has room for."""
_TEAM = "Team"
_NO_GOLD = (
    "no known labels: workers are compared with what the crowd says together, their own answers\n"
    "among it; who errs as the others do agrees with them too. --gold tells who is right"
)


def workers(
    source: r.Input,
    by: Annotated[
        str, typer.Option(help="What judges: gold, crowd, both, or auto: gold if there is enough.")
    ] = "auto",
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="How the crowd judges; by default ds, for tags bsc-seq.",
            autocompletion=r.method_names,
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="accuracy, token_accuracy or span_f1; by default what suits.")
    ] = "auto",
    threshold: Annotated[
        float | None,
        typer.Option(
            help="How often workers shall be right; by default halfway from chance to always.",
            show_default=False,
        ),
    ] = None,
    sure: Annotated[float, typer.Option(help="Probability that settles keep and drop.")] = 0.9,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Workers per item, or with --prices money per item.", rich_help_panel=_TEAM
        ),
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT|FILE",
            help="Money per answer: one amount, or a table with columns worker and price.",
            rich_help_panel=_TEAM,
        ),
    ] = None,
    score: Annotated[
        str,
        typer.Option(help="posterior, unbiased (the paper's) or plugin.", rich_help_panel=_TEAM),
    ] = "posterior",
    target: Annotated[
        float | None,
        typer.Option(help="Accuracy to reach: what it costs.", rich_help_panel=_TEAM),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(help="Draw intervals and cost curve: a .svg, .png or .pdf."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the table of workers, workers.csv.")
    ] = None,
    overwrite: Overwrite = False,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
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
    json: r.AsJson = False,
) -> None:
    """Say whom to keep, drop or test more and why, and which team to hire.

    Prints the best team within the budget and what its vote is worth: of single labels a model's
    forecast, of tagged text measured on held-out gold. Then how often every worker is right, with a
    95 % interval, signs of careless work (constant answers, answers at base rate, copies, haste,
    drift), and the cost curve.

    Examples:

      goldspan workers answers.csv --gold truth.csv --budget 7

      goldspan workers answers.csv --method ds --threshold 0.8 -o workers.csv

      goldspan workers answers.csv --gold truth.csv --prices prices.csv --budget 0.50 --target 0.95

      goldspan workers tags.tsv.gz --by crowd --plot workers.svg --json
    """
    check_outputs(output, plot, inputs=[source, gold], overwrite=overwrite)
    r.check_files(output=output, plot=plot)
    _check_usage(output, plot, target)
    if plot:
        check_part("picture")
    if by == "gold" and method is not None:
        raise typer.BadParameter("--method: by gold alone no method judges; --by both uses it")
    options = r.Reading(
        format=format, gold=gold, encoding=encoding, columns=columns, workers=workers,
        labels=label, missing=missing, delimiter=delimiter, text_encoding=text_encoding,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    from goldspan.runners import Threads
    from goldspan.workers import review_workers

    priced = read_prices(prices)
    limit = _budget(budget, in_money=priced is not None)
    with steps(6, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        found = review_workers(
            crowd, source=by, method=method, measure=measure, budget=limit, prices=priced,
            score=score, threshold=threshold, sure=sure, random_state=seed,
            runner=Threads(threads), progress=step.round, step=step,
        )  # fmt: skip
        _write(found, output, plot, target)
    _tell(found, target, [path for path in (output, plot) if path], as_json=json)


def _check_usage(output: str | None, plot: str | None, target: float | None) -> None:
    if output and not output.endswith((".csv", ".csv.gz")):
        raise typer.BadParameter("-o: the name must end in .csv or .csv.gz")
    if plot and not plot.lower().endswith((".svg", ".png", ".pdf")):
        raise typer.BadParameter("--plot: the name must end in .svg, .png or .pdf")
    if target is not None and not 0 < target <= 1:
        raise typer.BadParameter(f"--target is an accuracy between 0 and 1, not {target:g}")


def _budget(text: str | None, *, in_money: bool) -> str | int | None:
    """Read the budget: text stays where it is money."""
    if text is None or in_money:
        return text
    if not text.isdecimal():
        raise typer.BadParameter(
            f"--budget is a whole number of workers per item, not {text}; money needs --prices"
        )
    return int(text)


def _write(found: Review, output: str | None, plot: str | None, target: float | None) -> None:
    if output:
        from goldspan.crowd.atomic import write_text
        from goldspan.crowd.cells import sheet_text

        found_rows = found.to_arrow()
        write_text(output, [sheet_text(found_rows.column_names, found_rows.to_pylist())])
    if plot:
        from goldspan.report import save_figure
        from goldspan.report.workers import cost_curve, selection_figure

        figure = selection_figure(found.verdicts, found.threshold, cost_curve(found, target))
        save_figure(figure, plot)


def _tell(found: Review, target: float | None, written: list[str], *, as_json: bool) -> None:
    reach = None
    if target is not None and found.forecast is not None:
        reach = found.forecast.cost_to(target)
    if as_json:
        facts: dict[str, Any] = {"target": target, "reach": reach._asdict() if reach else None}
        emit_json({**found.to_dict(), **facts, "written": written})
        return
    known = found.reliability
    by = {"gold": "gold", "crowd": found.method, "both": f"gold and {found.method}"}[known.source]
    say(
        f"{known.measure.replace('_', ' ')} of {_workers(len(known))} by {by}; "
        f"keep above {100 * found.threshold:g} %\n"
    )
    say(_answer(found))
    if reach:
        size = "" if reach.size is None else _workers(reach.size)
        say(f"for {100 * (target or 0):g} %: {size or reach.reason}")
    say("")
    say(_verdicts(found))
    if found.forecast is not None:
        say("")
        say(str(found.forecast))
    for note in found.notes:
        warn(note)
    for path in written:
        say(f"written: {path}")


def _workers(n: int) -> str:
    return f"{n} worker{'' if n == 1 else 's'}"


def _answer(found: Review) -> str:
    """Say whom to hire, and what the vote is expected to be worth."""
    lines, expected = [str(found.team)], found.team_forecast
    if expected is not None:
        mean, low, high = (
            f"{100 * float(values[0]):.1f}"
            for values in (expected.accuracy, expected.low, expected.high)
        )
        what, label = "Expected accuracy of its vote", expected.label
        if not expected.model_based:
            what = f"Vote of {_workers(int(expected.sizes[0]))} chosen so"
        lines += [f"{what}: {mean} % ({low} … {high})", f"  {label}"]
    if found.contradiction:
        lines.append(found.contradiction)
    return "\n".join(lines)


def _verdicts(found: Review) -> str:
    """Lay out the workers, the best first, and then their signs."""
    from goldspan.report.wording import shorten

    kinds = ("keep", "look at", "test more", "drop")
    from goldspan.workers.verdicts import best_first

    order = best_first(found.verdicts)
    by_crowd = found.reliability.source == "crowd"
    right = "agrees %" if by_crowd else "right %"
    rows = [["worker", "verdict", right, "95 % interval", "judged", "why"]]
    for v in order[:_SHOWN]:
        share, interval = f"{100 * v.mean:.1f}", f"{100 * v.low:.1f} … {100 * v.high:.1f}"
        name = shorten(v.worker, _NAME)
        rows.append([name, v.verdict, share, interval, f"{v.total:.0f}", _reason(v)])
    lines = [table(rows, right=(2, 3, 4))]
    if len(order) > _SHOWN:
        lines.append(f"… and {len(order) - _SHOWN} more: -o workers.csv has them all")
    counts = {kind: sum(v.verdict == kind for v in order) for kind in kinds}
    lines += [
        ", ".join(f"{kind} {count}" for kind, count in counts.items() if count),
        f"P: probability of more than {100 * found.threshold:g} %; more: questions to settle it",
        *([_NO_GOLD] if by_crowd else []),
    ]
    signs = [f"  {v.worker}  {sign}" for v in order for sign in v.signs]
    if signs:
        lines += ["", "signs of careless work:", *signs[:_SHOWN]]
    if len(signs) > _SHOWN:
        lines.append(f"  … and {len(signs) - _SHOWN} more")
    return "\n".join(lines)


def _reason(v: Verdict) -> str:
    """Return a verdict's reason in the room that a terminal leaves; `why` has the sentence."""
    p = ">0.99" if v.p_above > 0.995 else "<0.01" if v.p_above < 0.005 else f"{v.p_above:.2f}"
    start = f"P {p}" if v.total else "unjudged"
    if v.verdict == "look at":
        return f"{start} but {v.signs[0].kind}"
    if v.verdict == "test more":
        return f"{start}, {'>1000' if v.more is None else v.more} more"
    return start
