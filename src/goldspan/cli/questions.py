"""Questions with known answers: the qualification test, and gold questions among the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli.options import AsJson, Input, Overwrite, RawCsv, Reading, reads_crowd
from goldspan.cli.output import (
    check_files,
    check_outputs,
    emit_json,
    not_held,
    plural,
    say,
    steps,
    table,
    warn,
)

if TYPE_CHECKING:
    from goldspan.workers.gold_questions import GoldQuestions, LeakReport
    from goldspan.workers.qualification import QualificationPlan

# --------------------------------------------------------------------------------------------------
# goldspan qualification


_BAR = 30


def qualification(
    w_bad: Annotated[
        float,
        typer.Option(
            "--bad", help="How often a bad worker is right: a guesser 1 / number of labels."
        ),
    ],
    w_good: Annotated[float, typer.Option("--good", help="How often a good worker is right.")],
    alpha: Annotated[float, typer.Option(help="Largest chance that a bad worker passes.")] = 0.05,
    beta: Annotated[float, typer.Option(help="Largest chance that a good worker fails.")] = 0.1,
    price: Annotated[
        str | None, typer.Option(help="What one answered question costs, such as 0.05.")
    ] = None,
    candidates: Annotated[int, typer.Option(min=0, help="Workers who take the test.")] = 1,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="The pool is Beta(A, B): say how good those are who pass."
        ),
    ] = None,
    most: Annotated[
        int, typer.Option("--max", min=1, help="Questions that a test may have.")
    ] = 1000,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="List when the test that stops early stops.")
    ] = False,
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw the share that passes, in characters.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Compute how many questions tell good workers from bad ones, and the pass mark.

    Sums over all outcomes, no approximation. Asked one by one, most tests are much shorter.

    Examples:

      goldspan qualification --bad .6 --good .8

      goldspan qualification --bad .25 --good .8 --price 0.05 --candidates 100

      goldspan qualification --bad .6 --good .8 --sequential --prior 4,2 --json
    """
    from goldspan import workers

    plan = workers.plan_qualification(w_bad, w_good, alpha, beta, most=most)
    passed = None if prior is None else plan.after_passing(_pair(prior))
    costs = None if price is None else _costs(plan, price, candidates)
    if json:
        after = None if passed is None else vars(passed)
        emit_json({**plan.to_dict(), "cost": costs, "after_passing": after})
        return
    say(str(plan))
    if costs:
        say(
            f"cost for {plural(candidates, 'candidate')} at {price}: {costs['fixed']}; "
            f"asked one by one {costs['sequential_bad']} if all are bad, "
            f"{costs['sequential_good']} if all are good"
        )
    if passed:
        say(str(passed))
    say("")
    say(_curve(plan, plot=plot))
    if sequential:
        say("")
        say(_limits(plan))


def _pair(text: str) -> tuple[float, float]:
    try:
        a, b = (float(word) for word in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"--prior must be two numbers such as 4,2, not {text}") from None
    return a, b


def _costs(plan: QualificationPlan, price: str, candidates: int) -> dict[str, str]:
    """Return the costs as text, those of the sequential test on average, to the cent."""
    from goldspan.money import from_micro

    whole = plan.cost(price, candidates)
    shares = plan.sequential.expected([plan.w_bad, plan.w_good]) / plan.n
    bad, good = (from_micro(round(whole * share, -4)) for share in shares.tolist())
    return {"fixed": from_micro(whole), "sequential_bad": bad, "sequential_good": good}


def _curve(plan: QualificationPlan, *, plot: bool) -> str:
    """Lay out the operating characteristic."""
    rows = [["right", "passes", "one by one", "questions"] + [""] * plot]
    for row in plan.curve().to_pylist():
        shown = [f"{100 * row['w']:g} %", f"{100 * row['passes']:.1f} %"]
        shown.append(f"{100 * row['sequential_passes']:.1f} %")
        shown.append(f"{row['sequential_questions']:.1f}")
        rows.append(shown + ["#" * round(_BAR * row["passes"])] * plot)
    return table(rows, right=(0, 1, 2, 3))


def _limits(plan: QualificationPlan) -> str:
    """Lay out when the sequential test stops."""
    rows = [["asked", "pass with", "fail with"]]
    limits: list[dict[str, Any]] = plan.sequential.table().to_pylist()
    for row in limits:
        top, bottom = row["pass_at"], row["fail_at"]
        high = "-" if top is None else f"{top} or more"
        low = "-" if bottom is None else f"{bottom} or fewer"
        rows.append([str(row["asked"]), high, low])
    return table(rows, right=(0,))


# --------------------------------------------------------------------------------------------------
# goldspan gold-questions


@reads_crowd()
def gold_questions(
    reading: Reading,
    source: Input,
    n: Annotated[
        int | None,
        typer.Option(
            "-n", min=1, help="How many questions to choose; 20 by default.", show_default=False
        ),
    ] = None,
    hard: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of hard ones; 0.3 by default.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the choice; 0 by default.", show_default=False)
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Write the questions with their gold.")
    ] = None,
    overwrite: Overwrite = False,
    check: Annotated[
        bool, typer.Option("--check", help="Choose none: see whether those with gold have leaked.")
    ] = False,
    max_shown: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --check: answers after which a question is retired; 100 by default.",
            show_default=False,
        ),
    ] = None,
    raw_csv: RawCsv = False,
    json: AsJson = False,
) -> None:
    """Choose gold questions among the items with known labels, or check those in use.

    They are spread over labels, or types of spans and items without any, and over documents.

    Examples:

      goldspan gold-questions answers.csv --gold truth.csv -n 20 -o control.csv

      goldspan gold-questions answers.csv --gold control.csv --check
    """
    choosing = {"-n": n, "--hard": hard, "--seed": seed, "-o": output}
    _check_usage({"--max-shown": max_shown}, choosing, check=check)
    check_outputs(output, inputs=[source, reading.gold], overwrite=overwrite)
    check_files(output=output)
    from goldspan.workers import check_leaks, choose_gold_questions

    with steps(2, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        step("checking" if check else "choosing")
        found: GoldQuestions | LeakReport
        if check:
            found = check_leaks(crowd, **_given(most_shown=max_shown))
        else:
            found = choose_gold_questions(
                crowd, 20 if n is None else n, **_given(hard=hard, random_state=seed)
            )
            for what in found.write(output, raw_csv=raw_csv) if output else []:
                warn(not_held(what))
    if json:
        emit_json({"output": output, **found.to_dict()})
        return
    say(str(found))
    if not check:
        rows = [[row["item"], row["reason"]] for row in found.to_arrow().to_pylist()]
        say(table(rows))
        say(f"written: {output}" if output else "nothing written: pass -o control.csv to keep them")


def _check_usage(checking: dict[str, Any], choosing: dict[str, Any], *, check: bool) -> None:
    """Reject options that belong to the other task."""
    given = [name for name, value in (choosing if check else checking).items() if value is not None]
    if given and check:
        raise typer.BadParameter(f"--check chooses no questions: leave out {', '.join(given)}")
    if given:
        raise typer.BadParameter(f"{', '.join(given)} is for --check: add --check, or leave it out")


def _given(**options: Any) -> dict[str, Any]:
    """Leave the library's defaults where an option was not given."""
    return {name: value for name, value in options.items() if value is not None}
