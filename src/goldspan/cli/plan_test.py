"""`goldspan plan-test`: how long a qualification test must be, before anybody is paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import emit_json, say, table
from goldspan.cli.wording import in_options, plural

if TYPE_CHECKING:
    from goldspan.workers import QualificationPlan

_BAR = 30
_OPTIONS = {
    "w_bad": "--bad",
    "w_good": "--good",
    "`most`": "--most",
    "alpha": "--alpha",
    "beta": "--beta",
}
"""What messages call arguments, and the options."""


def plan_test(
    bad: Annotated[
        float, typer.Option(help="How often a bad worker is right: a guesser 1 / number of labels.")
    ],
    good: Annotated[float, typer.Option(help="How often a good worker is right.")],
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
    most: Annotated[int, typer.Option(min=1, help="Questions that a test may have.")] = 1000,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="List when the test that stops early stops.")
    ] = False,
    plot: Annotated[bool, typer.Option("--plot", help="Draw who passes, with letters.")] = False,
    json: r.AsJson = False,
) -> None:
    """Say how many questions tell good workers from bad ones, and how many right answers pass.

    Sums over all outcomes, no approximation. Asked one by one, most tests are much shorter.

    Examples:

      goldspan plan-test --bad .6 --good .8

      goldspan plan-test --bad .25 --good .8 --price 0.05 --candidates 100

      goldspan plan-test --bad .6 --good .8 --sequential --prior 4,2 --json
    """
    from goldspan import workers

    with in_options(_OPTIONS):
        plan = workers.plan_qualification(bad, good, alpha, beta, most=most)
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
