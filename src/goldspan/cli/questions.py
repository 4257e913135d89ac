"""Questions with known answers: the qualification test, and gold questions among the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from goldspan.cli.options import (
    AsJson,
    Input,
    Overwrite,
    RawCsv,
    Reading,
    flag,
    option,
    reads_crowd,
)
from goldspan.cli.output import (
    check_files,
    check_outputs,
    not_held,
    print_result,
    steps,
    table,
    warn,
)
from goldspan.money import from_micro
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.workers.gold_questions import GoldQuestions, LeakReport
    from goldspan.workers.qualification import QualificationPlan

# --------------------------------------------------------------------------------------------------
# goldspan qualification


def qualification(
    w_bad: float = option(
        "How often a bad worker is right; somebody who guesses: 1 / number of labels.",
        "--bad",
        default=...,
    ),
    w_good: float = option("How often a good worker is right.", "--good", default=...),
    alpha: float = option("Largest chance that a bad worker passes.", default=0.05),
    beta: float = option("Largest chance that a good worker fails.", default=0.1),
    price: str | None = option("What one answered question costs, such as 0.05."),
    candidates: int = option("Workers who take the test.", default=1, min=0),
    prior: str | None = option(
        "Print how good those are who pass if all candidates' accuracies are Beta(A, B).",
        metavar="A,B",
    ),
    most: int = option("Most questions that a test may have.", "--max", default=1000, min=1),
    sequential: bool = flag(
        "List when a test that is asked question by question stops.", "--sequential"
    ),
    json: AsJson = False,
) -> None:
    """Compute how many questions tell good workers from bad ones, and the pass mark.

    The result is exact: it sums over all outcomes. A test that is asked question by question, and
    stops when the result is clear, is usually much shorter.

    Examples:

      goldspan qualification --bad .6 --good .8

      goldspan qualification --bad .25 --good .8 --price 0.05 --candidates 100
    """
    from goldspan import workers

    plan = workers.plan_qualification(w_bad, w_good, alpha, beta, most=most)
    passed = None if prior is None else plan.after_passing(_pair(prior))
    costs = None if price is None else _costs(plan, price, candidates)
    after = None if passed is None else vars(passed)
    lines = [str(plan)]
    if costs:
        lines.append(
            f"cost for {counted(candidates, 'candidate')} at {price}: {costs['fixed']}; "
            f"asked one by one {costs['sequential_bad']} if all are bad, "
            f"{costs['sequential_good']} if all are good"
        )
    lines += [str(passed)] if passed else []
    lines += ["", _curve(plan)]
    lines += ["", _limits(plan)] if sequential else []
    print_result({**plan.to_dict(), "cost": costs, "after_passing": after}, lines, as_json=json)


def _pair(text: str) -> tuple[float, float]:
    try:
        a, b = (float(word) for word in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"--prior must be two numbers such as 4,2, not {text}") from None
    return a, b


def _costs(plan: QualificationPlan, price: str, candidates: int) -> dict[str, str]:
    """Return the costs as text, those of the sequential test on average, to the cent."""
    whole = plan.cost(price, candidates)
    shares = plan.sequential.expected([plan.w_bad, plan.w_good]) / plan.n
    bad, good = (from_micro(round(whole * share, -4)) for share in shares.tolist())
    return {"fixed": from_micro(whole), "sequential_bad": bad, "sequential_good": good}


def _curve(plan: QualificationPlan) -> str:
    """Lay out the operating characteristic."""
    rows = [["right", "passes", "one by one", "questions"]]
    for row in plan.curve().to_pylist():
        shown = [f"{100 * row['w']:g} %", f"{100 * row['passes']:.1f} %"]
        shown.append(f"{100 * row['sequential_passes']:.1f} %")
        shown.append(f"{row['sequential_questions']:.1f}")
        rows.append(shown)
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
    n: int | None = option("How many questions to choose; by default 20.", "-n", min=1),
    hard: float | None = option("Share of hard ones; by default 0.3.", min=0, max=1),
    by: str | None = option(
        "With information: items to have checked, which teach most of what the crowd confuses."
    ),
    seed: int | None = option("Seed of the choice; by default 0."),
    output: str | None = option("Write the questions with their gold.", "--output", "-o"),
    overwrite: Overwrite = False,
    check: bool = flag(
        "Choose none, but check whether the answers to those with gold have leaked.", "--check"
    ),
    max_shown: int | None = option(
        "With --check: retire a question after this many answers; by default 100.", min=1
    ),
    raw_csv: RawCsv = False,
    json: AsJson = False,
) -> None:
    """Choose gold questions among the items with known labels, or check those in use.

    The questions are spread over documents, and over labels (or over the types of spans, and items
    without spans).

    Examples:

      goldspan gold-questions answers.csv --gold truth.csv -n 20 -o control.csv

      goldspan gold-questions answers.csv -n 100 --by information -o to-check.csv

      goldspan gold-questions answers.csv --gold control.csv --check
    """
    choosing = {"-n": n, "--hard": hard, "--by": by, "--seed": seed, "-o": output}
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
            options = _given(hard=hard, by=by, random_state=seed)
            found = choose_gold_questions(crowd, 20 if n is None else n, **options)
            for what in found.write(output, raw_csv=raw_csv) if output else []:
                warn(not_held(what))
    lines = [str(found)]
    if not check:
        lines.append(table([[row["item"], row["reason"]] for row in found.to_arrow().to_pylist()]))
        none = "nothing written: pass -o control.csv to keep them"
        lines.append(f"written: {output}" if output else none)
    print_result({"output": output, **found.to_dict()}, lines, as_json=json)


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
