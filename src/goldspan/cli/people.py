"""Annotators: how good they are, who answers what next, and what everybody is paid."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from goldspan.aggregation.registry import DEFAULT
from goldspan.cli.options import (
    MORE,
    AsJson,
    FamilyTable,
    Input,
    Overwrite,
    RawCsv,
    Reading,
    RunnerName,
    Seed,
    ThreadCount,
    method_names,
    option,
    reads_crowd,
)
from goldspan.cli.output import (
    check_ending,
    check_files,
    check_outputs,
    check_part,
    check_there,
    csv_text,
    listed,
    print_result,
    say,
    steps,
    table,
    warn,
)
from goldspan.crowd.atomic import write_text
from goldspan.errors import Fault, FormatError, InputError
from goldspan.money import from_micro, to_micro
from goldspan.report.wording import shorten
from goldspan.runners import working
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.aggregation import Consensus
    from goldspan.crowd import Crowd
    from goldspan.protocols import Runner
    from goldspan.workers import PayPlan
    from goldspan.workers.pay import Bill
    from goldspan.workers.redundancy import NextAnswers
    from goldspan.workers.review import Review
    from goldspan.workers.stopping import Rule
    from goldspan.workers.verdicts import Verdict

# --------------------------------------------------------------------------------------------------
# goldspan workers


_SHOWN_WORKERS = 40
_ALIKE = 3
"""More workers than this with the same numbers share a row."""
_NAME = 14
"""Characters of a worker's name that a line of 80 has room for."""
_TEAM = "Team"
_NO_GOLD = (
    "no known labels: workers are compared with the consensus, to which their own answers belong;\n"
    "a worker with the same errors as the others agrees with them too. --gold shows who is right"
)


@reads_crowd()
def workers(
    reading: Reading,
    source: Input,
    by: str = option(
        "Judge workers by gold, by the crowd's consensus (crowd), or by both; auto takes gold if"
        " there is enough of it.",
        default="auto",
    ),
    method: str | None = option(
        "Method that computes the consensus; by default auto.",
        "--method",
        "-m",
        autocompletion=method_names,
    ),
    measure: str = option(
        "What to measure: accuracy, token_accuracy or span_f1; auto takes what suits the labels.",
        default="auto",
    ),
    threshold: float | None = option(
        "Share of right answers above which a worker is kept, such as 0.8; by default halfway"
        " between the share that guessing gets right and 1: 0.75 for two labels."
    ),
    confidence: float = option(
        "Probability at which keep or drop is decided.", default=0.9, panel=MORE
    ),
    budget: str | None = option(
        "Budget per item: a number of workers, or an amount of money with --prices.", panel=_TEAM
    ),
    prices: str | None = option(
        "Money per answer: one amount, or a table with columns worker and price.",
        metavar="AMOUNT|FILE",
        panel=_TEAM,
    ),
    score: str = option(
        "Score by which a team is selected: posterior, unbiased, plugin or gain.",
        default="posterior",
        panel=MORE,
    ),
    families: FamilyTable = None,
    probe: str | None = option(
        "Answers of language models to the same items: who repeats their mistakes is flagged.",
        metavar="FILE",
        panel=MORE,
    ),
    plot: str | None = option("Draw the workers' intervals, in a .svg, .png or .pdf file."),
    output: str | None = option(
        "Write the table of workers to this file, such as workers.csv.", "--output", "-o"
    ),
    overwrite: Overwrite = False,
    seed: Seed = 0,
    threads: ThreadCount = None,
    runner: RunnerName = None,
    json: AsJson = False,
) -> None:
    """Show which annotators to keep, drop or test more, and select a team.

    The table has, for every worker, how often they are right (with a 95 % interval) and a verdict.
    Quality flags follow: too fast, always the same label, answers that hardly depend on the item,
    copying, drift. The team is selected for the best joint vote within --budget.

    Examples:

      goldspan workers answers.csv --gold truth.csv --budget 7

      goldspan workers answers.csv --threshold 0.8 -o workers.csv
    """
    check_outputs(output, plot, inputs=[source, reading.gold, probe], overwrite=overwrite)
    check_files(output=output, plot=plot)
    check_there(probe)
    check_ending("-o", output, ".csv", ".csv.gz")
    check_ending("--plot", plot, ".svg", ".png", ".pdf")
    if plot:
        check_part("picture")
    if by == "gold" and method is not None:
        raise typer.BadParameter(
            "--method is for judging by the crowd: leave it out, or use --by both"
        )
    from goldspan.crowd import read_crowd
    from goldspan.workers import review_workers

    priced = read_prices(prices)
    limit = _budget(budget, in_money=priced is not None)
    with working(runner, threads) as worked_by, steps(5, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        probes = None if probe is None else read_crowd(probe, encoding=_encoding(crowd))
        found = review_workers(
            crowd, source=by, method=method, measure=measure, budget=limit, prices=priced,
            score=score, threshold=threshold, sure=confidence, families=families or "auto",
            probes=probes,
            random_state=seed,
            runner=worked_by, progress=step.round, step=step,
        )  # fmt: skip
        _write_workers(found, output, plot)
    if not json:
        for note in found.notes:
            warn(note)
    written = [path for path in (output, plot) if path]
    lines = [*_review_lines(found), *(f"written: {path}" for path in written)]
    print_result({**found.to_dict(), "written": written}, lines, as_json=json)


def _encoding(crowd: Crowd) -> str | None:
    """Return the encoding of tags of spans; single labels have none that could be named."""
    return None if crowd.tagset.rules.is_plain else crowd.tagset.encoding


def _budget(text: str | None, *, in_money: bool) -> str | int | None:
    """Read the budget: text stays where it is money."""
    if text is None or in_money:
        return text
    if not text.isdecimal():
        raise typer.BadParameter(
            f"--budget is a whole number of workers per item, not {text}; money needs --prices"
        )
    return int(text)


def _write_workers(found: Review, output: str | None, plot: str | None) -> None:
    if output:
        from goldspan.crowd.grid import sheet_text

        found_rows = found.to_arrow()
        write_text(output, [sheet_text(found_rows.column_names, found_rows.to_pylist())])
    if plot:
        from goldspan.report import save_figure
        from goldspan.report.workers import verdicts_figure

        save_figure(verdicts_figure(found.verdicts, found.threshold), plot)


def _review_lines(found: Review) -> Iterator[str]:
    known = found.reliability
    consensus = f"the consensus of {found.method}"
    by = {"gold": "gold", "crowd": consensus, "both": f"gold and {consensus}"}[known.source]
    measure = known.measure.replace("_", " ").replace("f1", "F1")
    yield (
        f"{counted(len(known), 'worker')}, judged by {measure} against {by}; "
        f"to be kept: above {100 * found.threshold:g} %\n"
    )
    yield str(found.team)
    if found.contradiction:
        yield found.contradiction
    yield ""
    yield _verdicts(found)


def _verdicts(found: Review) -> str:
    """Lay out the workers, the best first, and then their quality flags."""
    kinds = ("keep", "look at", "test more", "drop")
    from goldspan.workers.verdicts import best_first

    order = best_first(found.verdicts)
    by_crowd = found.reliability.source == "crowd"
    is_f1 = found.reliability.measure == "span_f1"
    right = "F1 %" if is_f1 else "agrees %" if by_crowd else "right %"
    head = ["worker", "verdict", right, "95 % interval", "judged", "chance"]
    alike: dict[tuple[str, ...], list[str]] = {}
    for v in order:
        share, interval = f"{100 * v.mean:.1f}", f"{100 * v.low:.1f} … {100 * v.high:.1f}"
        row = v.verdict, share, interval, f"{v.total:.0f}", _reason(v)
        alike.setdefault(row, []).append(v.worker)
    rows = [
        [shorten(name, _NAME), *row]
        for row, names in alike.items()
        for name in ([f"{len(names)} alike"] if len(names) > _ALIKE else names)
    ]
    lines = [
        f"chance: the probability that the worker is above {100 * found.threshold:g} %",
        "N more: after N more answers with known labels a decision is as likely as not\n",
        table([head, *rows[:_SHOWN_WORKERS]], right=(2, 3, 4)),
    ]
    if len(rows) == 1 < len(order):
        judged = counted(round(order[0].total), "judged answer")
        lines.append(f"nothing tells them apart: the same is expected of all, from {judged} each")
    if len(rows) > _SHOWN_WORKERS:
        lines.append(f"… and {len(rows) - _SHOWN_WORKERS} more rows: -o workers.csv has everybody")
    counts = {kind: sum(v.verdict == kind for v in order) for kind in kinds}
    lines += [
        ", ".join(f"{kind} {count}" for kind, count in counts.items() if count),
        *([_NO_GOLD] if by_crowd else []),
    ]
    flags = [
        textwrap.fill(f"  {v.worker}  {flag}", 80, subsequent_indent="    ")
        for v in order
        for flag in v.flags
    ]
    if flags:
        lines += ["", "quality flags (a reason to look, not a proof):", *flags[:_SHOWN_WORKERS]]
    if len(flags) > _SHOWN_WORKERS:
        lines.append(f"  … and {len(flags) - _SHOWN_WORKERS} more")
    return "\n".join(lines)


def _reason(v: Verdict) -> str:
    """Return a verdict's reason in the room that a terminal leaves; `why` has the sentence."""
    p = ">99" if v.p_above > 0.995 else "<1" if v.p_above < 0.005 else f"{100 * v.p_above:.0f}"
    start = f"{p} %" if v.total else "not judged"
    if v.verdict == "look at":
        return f"{start}, see flag"
    if v.verdict == "test more":
        return f"{start}, {'>1000' if v.more is None else v.more} more"
    return start


# --------------------------------------------------------------------------------------------------
# goldspan next


_SHOWN_NEXT = 10


@reads_crowd()
def next_answers(
    reading: Reading,
    source: Input,
    confidence: float | None = option("Confidence at which an item is finished; by default 0.95."),
    rule: str | None = option(
        'Another stopping rule: "clear_majority(2)", "stable_average(0.5)", "fixed(5)".',
        panel=MORE,
    ),
    most: int | None = option("Maximum number of answers per item; by default 7.", "--max", min=1),
    fewest: int = option(
        "Fewest answers of an item that the rule may finish.",
        "--min",
        default=1,
        min=1,
        panel=MORE,
    ),
    method: str | None = option(
        "Method of aggregation; by default auto.",
        "--method",
        "-m",
        autocompletion=method_names,
    ),
    known: str | None = option(
        "Known labels to learn from. (--gold is only for comparison.)", metavar="FILE", panel=MORE
    ),
    calibrate: str | None = option(
        "Known labels to calibrate confidences with.", metavar="FILE", panel=MORE
    ),
    families: FamilyTable = None,
    prices: str | None = option(
        "Money per answer: one amount, or a table with columns worker and price.",
        metavar="AMOUNT|FILE",
    ),
    ask: list[str] | None = option(
        "Workers who can be asked, also new ones; by default all of FILE. Repeatable.",
        metavar="ID,ID,…",
    ),
    per_worker: int | None = option("Maximum number of answers to ask of one worker.", min=1),
    number: int | None = option(
        "Maximum number of items to ask about; by default all unfinished ones.", "-n", min=0
    ),
    output: str | None = option(
        "Write the list to a .csv file; - for standard output.", "--output", "-o"
    ),
    overwrite: Overwrite = False,
    seed: int = option("Seed of the order of items that are equal.", default=0, panel=MORE),
    threads: ThreadCount = None,
    runner: RunnerName = None,
    raw_csv: RawCsv = False,
    json: AsJson = False,
) -> None:
    """Show which items need another answer, whom to ask, and what it costs.

    Items for which another answer is expected to help most come first. For each, the worker is
    named who is expected to help most for the money, among those who have not answered it yet.

    Examples:

      goldspan next answers.csv -n 100 -o next.csv

      goldspan next answers.csv --max 9 --prices 0.05 --per-worker 20
    """
    inputs = [path for path in (source, reading.gold, known, calibrate) if path]
    check_outputs(output, inputs=inputs, overwrite=overwrite, as_json=json)
    check_there(known, calibrate)
    check_ending("-o", output, ".csv", ".csv.gz")
    from goldspan.workers import next_answers as choose_next

    stop = _rule(rule, confidence)
    limit = _most(stop, fewest, most)
    priced = read_prices(prices)
    with working(runner, threads) as worked_by, steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        step("aggregating")
        result = _aggregate(crowd, method, known, calibrate, families, worked_by, step.round)
        step("choosing")
        found = choose_next(
            crowd, result, rule=stop, max_answers=limit, min_answers=fewest, prices=priced,
            workers=listed(ask, "--ask"), per_worker_limit=per_worker, n=number,
            random_state=seed,
        )  # fmt: skip
        if output:
            _write_next(found, output, raw_csv=raw_csv)
    cost = None if found.cost is None else from_micro(found.cost)
    right = _finished_right(found, result)
    facts = {
        "method": result.method, "items": found.crowd.n_items, "status": found.counts(),
        "to_ask": len(found), "cost": cost, "finished_right": right, "output": output,
        "next": found.to_arrow().to_pylist(),
    }  # fmt: skip
    kin = result.families
    facts |= {} if kin is None else {"families": kin.names()}
    lines = [*_next_lines(found, cost, right, kin.note if kin else "")]
    if output and output != "-":
        lines.append(f"written: {output}")
    print_result(facts, lines, as_json=json, to_stderr=output == "-")


def _rule(rule: str | None, confidence: float | None) -> Rule:
    """Read the stopping rule: of --rule and --confidence only one can hold."""
    from goldspan.workers.redundancy import CONFIDENCE
    from goldspan.workers.stopping import get_rule

    if rule is not None and confidence is not None:
        raise typer.BadParameter(
            f'--confidence {confidence:g} is the rule "confident({confidence:g})": give it or '
            "--rule, not both"
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
    families: str | None, runner: Runner, progress: Any,
) -> Consensus:  # fmt: skip
    from goldspan.aggregation import aggregate, get_aggregator

    params: dict[str, Any] = {}
    if families is not None or "families" in get_aggregator(method or DEFAULT).parameter_names():
        params["families"] = families or "auto"
    result = aggregate(crowd, method, gold=known, runner=runner, progress=progress, **params)
    if calibrate:
        from goldspan.aggregation.calibration import calibrate as calibrated

        return calibrated(result, calibrate)
    return result


def _write_next(found: NextAnswers, output: str, *, raw_csv: bool) -> None:
    text = csv_text(found.to_arrow(), raw=raw_csv)
    if output == "-":
        say(text.rstrip("\n"))
    else:
        write_text(output, [text])


def _next_lines(
    found: NextAnswers, cost: str | None, right: float | None, kin: str
) -> Iterator[str]:
    finished, n_open = int(found.is_finished.sum()), found.counts()["open"]
    if kin:
        yield kin
    yield (
        f"{finished} of {counted(found.crowd.n_items, 'item')} {'is' if finished == 1 else 'are'} "
        f"finished{':' if finished else ''}"
    )
    rows = [[reason, str(count)] for reason, count in found.counts().items() if reason != "open"]
    if finished:
        yield table([row for row in rows if row[1] != "0"], right=(1,))
    if right is not None:
        yield f"{100 * right:.1f} % of the finished items with gold labels agree with them"
    yield f"{n_open} {'needs' if n_open == 1 else 'need'} another answer"
    if len(found):
        price = "" if cost is None else f", which {'costs' if len(found) == 1 else 'cost'} {cost}"
        yield f"{counted(len(found), 'answer')} to ask for{price} (largest average gain first):"
        lines = [["item", "answers", "confidence", "worker", "gain"]]
        for row in found.to_arrow().slice(0, _SHOWN_NEXT).to_pylist():
            numbers = (f"{row['confidence']:.3f}", row["worker"], f"{row['gain']:.3f}")
            lines.append([row["item"], str(row["answers"]), *numbers])
        more = len(found) - _SHOWN_NEXT
        yield table(lines, right=(1, 2, 4)) + (f"\n… and {more} more" if more > 0 else "")


def _finished_right(found: NextAnswers, result: Consensus) -> float | None:
    """Return the share of right items among the finished ones with gold, None without any."""
    import numpy as np

    from goldspan.workers.redundancy import right_items

    right, known = right_items(result)
    kept = found.is_finished & known
    return float(np.mean(right[kept])) if kept.any() else None


# --------------------------------------------------------------------------------------------------
# goldspan bill


_SHOWN_BILL = 20
_PAY = "Pay"


@reads_crowd()
def bill(
    reading: Reading,
    source: Input,
    per_answer: str | None = option("For every answer, such as 0.05.", panel=_PAY),
    per_token: str | None = option("For every labelled token.", panel=_PAY),
    per_minute_floor: str | None = option("Minimum pay per minute of work.", panel=_PAY),
    bonus: list[str] | None = option(
        "Bonus for an accuracy, as share of the pay or amount: 0.90:10% or 0.90:2.50. Repeatable.",
        metavar="RULE",
        panel=_PAY,
    ),
    fee: str | None = option("Fee of the platform, such as 20%.", panel=_PAY),
    idle_minutes: str | None = option("Most minutes that count for one answer.", panel=MORE),
    round_to: str | None = option(
        "Round every worker's pay up to a multiple of this, such as 0.01.", panel=MORE
    ),
    currency: str | None = option("Name of the currency, as it is printed.", panel=MORE),
    plan: str | None = option("A TOML file with these settings.", metavar="FILE", panel=_PAY),
    attempts: str = option(
        "Which repeated answers are paid: every or latest.", default="every", panel=MORE
    ),
    recorded: str = option(
        "How to treat costs that were recorded with the answers: compare, use or ignore.",
        default="compare",
        panel=MORE,
    ),
    output: str | None = option("Write a row per worker, such as bill.csv.", "--output", "-o"),
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Show what each annotator is paid, and the total cost, exact to the millionth.

    Options override the settings of --plan. Whether a worker has earned a bonus is measured with
    the gold labels: with 0.90:10%:20, 90 % right answers earn 10 % of the pay, if at least 20
    answers can be judged. If several bonuses are due, the largest is paid. The fee is a percentage
    of all pay.

    Examples:

      goldspan bill answers.csv --per-answer 0.05 --fee 20% -o bill.csv

      goldspan bill votes.csv --per-answer 0.1 --bonus 0.90:10% --gold gold.csv
    """
    check_outputs(output, inputs=[source, reading.gold, plan], overwrite=overwrite)
    check_files(output=output)
    given = {
        "per_answer": per_answer, "per_token": per_token, "per_minute_floor": per_minute_floor,
        "bonuses": bonus, "fee": fee, "idle_minutes": idle_minutes, "round_to": round_to,
        "currency": currency,
    }  # fmt: skip
    chosen = _plan(plan, {name: value for name, value in given.items() if value is not None})
    said = {"per_answer", "per_token", "per_minute_floor"} & {n for n, v in given.items() if v}
    if not chosen.pays and not said and recorded != "use":
        raise typer.BadParameter(
            "say what is paid for, such as --per-answer 0.05, or give --plan pay.toml"
        )
    from goldspan.workers import make_bill

    with steps(2, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        step("adding up")
        found = make_bill(crowd, chosen, attempts=attempts, recorded=recorded)
        if output:
            found.write(output)
    first, *notes = str(found).splitlines()
    paid = str(found.plan) if found.plan.pays or recorded != "use" else "costs as recorded"
    lines = [paid, _bill_table(found), first, *([f"written: {output}"] if output else [])]
    print_result({"output": output, **found.to_dict()}, lines, as_json=json)
    if not json:
        for note in notes:
            warn(note)


def _plan(path: str | None, given: dict[str, Any]) -> PayPlan:
    """Put the options before the plan of the file."""
    from dataclasses import replace

    from goldspan.workers import PayPlan
    from goldspan.workers.pay import read_plan

    from_file = read_plan(path) if path else PayPlan()
    return replace(from_file, **given)


def _bill_table(found: Bill) -> str:
    names = ["worker", "answers", "tokens", "minutes", "base", "top_up", "bonus", "total"]
    shown = sorted(found.rows(), key=lambda row: -float(row["total"]))[:_SHOWN_BILL]
    rows = [[str(row[name]) for name in names] for row in shown]
    head = [name.replace("top_up", "floor") for name in names]
    more = len(found.lines) - _SHOWN_BILL
    cut = f"\n… and {more} more: -o bill.csv has them all" if more > 0 else ""
    return table([head, *rows], right=tuple(range(1, 8))) + cut


# --------------------------------------------------------------------------------------------------
# The option --prices


_COLUMNS = {"worker", "price"}


def read_prices(text: str | None) -> dict[str, str] | str | None:
    """Read one amount, or a table of workers and prices, of which some may be unknown."""
    if text is None:
        return None
    if Path(text).is_file():
        return _read_table(text)
    if not any(sign.isdigit() for sign in text) or Path(text).suffix[1:].isalpha():
        raise InputError(
            f"--prices {text}: there is no such file; give one, or an amount such as 0.05"
        )
    to_micro(text, parameter="prices")
    return text


def _read_table(path: str) -> dict[str, str]:
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError([Fault(f"it is not UTF-8: {error.reason}", path)]) from None
    rows = csv.reader(lines)
    head = [name.strip() for name in next(rows, [])]
    if not set(head) >= _COLUMNS:
        seen = ", ".join(head) or "nothing"
        message = f"a table of prices has columns worker and price with a comma between, not {seen}"
        raise FormatError([Fault(message, path, 1, kind="header")])
    found: dict[str, tuple[int, str]] = {}
    faults: list[Fault] = []
    for row in rows:
        if not any(map(str.strip, row)):
            continue
        cells = dict(zip(head, row, strict=False))
        worker, price = (cells.get(name, "").strip() for name in ("worker", "price"))
        message = _fault(head, row, price, found.get(worker))
        if message:
            faults.append(Fault(message, path, rows.line_num, worker=worker, kind="price"))
        found.setdefault(worker, (rows.line_num, price))
    if faults:
        raise FormatError(faults)
    return {worker: price for worker, (_, price) in found.items()}


def _fault(head: list[str], row: list[str], price: str, former: tuple[int, str] | None) -> str:
    """Return what is wrong with a row, "" if nothing is."""
    if len(row) != len(head):
        return f"{len(row)} cells for {len(head)} columns"
    if former is not None:
        return f"the worker has a price already, {former[1] or 'none'} in line {former[0]}"
    try:
        to_micro(price, "a price")
    except InputError as error:
        return str(error)
    return ""
