"""How good labels are: which items a person checks, and the certificate."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from goldspan.cli.commands import Commands
from goldspan.cli.options import AsJson, Overwrite, Reading, argument, flag, option, reads_crowd
from goldspan.cli.output import (
    check_ending,
    check_files,
    check_outputs,
    check_part,
    check_there,
    print_result,
    steps,
)
from goldspan.errors import InputError
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.auditing import AuditPlan

audit = Commands()
_LABELS = "The labels: what `goldspan aggregate` wrote, in any format, or a file with gold."
_PLAN = "The plan of the draw; by default beside the labels, such as gold.audit.json."


@audit.callback()
def root() -> None:
    """Find out how good labels are: check some of them, and get a certificate.

    `draw` chooses the items at random and `report` says how right all labels are, with an interval.
    """


@audit.command(short_help="Draw the items that a person checks, and write them without labels.")
@reads_crowd()
def draw(
    reading: Reading,
    source: str = argument(_LABELS, "LABELS"),
    n: int = option("How many items to check in all: 20 give a first idea.", "-n", default=100),
    output: str = option(
        "Where to write them: .jsonl, .csv (single labels) or .json (Label Studio).",
        "--output",
        "-o",
        default=...,
    ),
    to_format: str | None = option(
        "Format, if the ending does not show it: label-studio, doccano or prodigy."
    ),
    plan: str | None = option(_PLAN.replace("The plan", "Where to write the plan"), metavar="FILE"),
    seed: int = option("Seed of the draw.", default=0, min=0),
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Draw the items that a person checks, and write them without labels.

    Uncertain items are drawn more often, by chances that the plan records; FILE.jsonl and the plan
    are all that `goldspan audit report` needs. With the same seed and a larger -n, the list goes
    on: the new file has only the items that were not drawn before.

    Examples:

      goldspan audit draw gold.jsonl -n 100 -o to-check.jsonl

      goldspan audit draw gold.jsonl -n 200 -o tasks.json --to-format label-studio
    """
    where = plan or _beside(source)
    check_outputs(output, inputs=[source], overwrite=overwrite)
    check_outputs(where, inputs=[source, output], overwrite=True)  # a longer list goes on from it
    check_files(output=output, plan=where)
    check_there(source)
    from goldspan.auditing import AuditPlan, draw_audit

    before = AuditPlan.load(where) if Path(where).exists() and not overwrite else None
    with steps(1, quiet=json) as step:
        step(f"reading {source}")
        drawn = draw_audit(source, n, random_state=seed, **reading.options())
        first = 0 if before is None else _first(drawn, before, where, source)
        drawn.write(output, to_format, first=first)
        drawn.save(where)
    n_new, n_all = len(drawn.items) - first, len(drawn.weights)
    facts = {"output": output, "plan": where, "items": n_new, "drawn": len(drawn.items)}
    same = ", the same as before: a larger -n goes on from them" if before and not first else ""
    lines = [
        f"{counted(n_new, 'item')} to check"
        + (f", after the {first} of before" if first else f" of {n_all:,}{same}"),
        f"written: {output}",
        f"written: {where}, which the certificate needs",
        f"next: label {output} without a look at the labels, in this order, then",
        f"  goldspan audit report {source}{' CHECKED-BEFORE' if first else ''} CHECKED"
        + (f" --plan {plan}" if plan else ""),
    ]
    print_result(facts | {"first": first, "seed": seed}, lines, as_json=json)


def _beside(labels: str) -> str:
    """Return the name of the plan of labels."""
    name = Path(labels).name.removesuffix(".gz")
    if labels == "-":
        raise InputError(
            "labels from standard input have no place for the plan: name it with --plan"
        )
    return str(Path(labels).with_name(f"{Path(name).stem}.audit.json"))


def _first(drawn: AuditPlan, before: AuditPlan, where: str, labels: str) -> int:
    """Return how many items of a list were drawn before; the longer list must go on from it."""
    n, more = len(before.items), len(drawn.items)
    if drawn.labels != before.labels:
        why = f"{labels} has changed since the draw; `report` still takes the plan"
    elif drawn.seed != before.seed:
        why = f"it is another draw, of seed {before.seed}"
    elif drawn.items[:n] != before.items[:more]:
        why = f"it is a draw by other confidences than {labels} has"
    elif more < n:
        why = f"-n counts its {n} items too (for {more} more pass -n {n + more})"
    else:
        return n if more > n else 0
    raise InputError(
        f"{where} exists already, and {why}: name another --plan, or replace it with --overwrite"
    )


@audit.command(short_help="Say how good labels are, from the checked items.")
@reads_crowd()
def report(
    reading: Reading,
    source: str = argument(_LABELS, "LABELS"),
    checked: list[str] = argument(
        "The drawn items, labelled: one or more files, parts or of several checkers.", "CHECKED"
    ),
    plan: str | None = option(_PLAN, metavar="FILE"),
    html: str | None = option("Write a page with a picture, such as certificate.html."),
    level: float = option("Level of the intervals.", default=0.95),
    anytime: bool = flag(
        "Intervals that hold whenever you look, for who checks until the result is good enough.",
        "--anytime",
    ),
    width: float | None = option("Also say how many checks an interval of this width takes."),
    answers: str | None = option(
        "The crowd's answers, for labels that the checked items helped to make (aggregate --known "
        "CHECKED): each checked item is judged by labels that were made without it.",
        metavar="FILE",
    ),
    method: str = option("With --answers: the method that made the labels.", default="auto"),
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Say how good labels are, from the checked items, with intervals.

    Items that were checked by several people must agree; those that differ are shown. Drawn items
    that nobody checked, although later ones were, count as wrong for the lower ends and as right
    for the upper ends.

    Examples:

      goldspan audit report gold.jsonl checked.jsonl --html certificate.html

      goldspan audit report gold.csv checked.csv --width 0.04

      goldspan audit report better.jsonl checked.jsonl --answers crowd.tsv
    """
    where = plan or _beside(source)
    check_outputs(html, inputs=[source, *checked, where], overwrite=overwrite)
    check_files(html=html)
    check_ending("--html", html, ".html")
    if html:
        check_part("report")
    check_there(source, *checked, *([answers] if answers else []))
    if not Path(where).exists():
        raise InputError(
            f"{where}: there is no such plan: name that of the draw with --plan, or begin with "
            f"goldspan audit draw {source}"
        )
    from goldspan.aggregation import aggregate
    from goldspan.auditing import AuditPlan
    from goldspan.auditing import audit as certify

    with steps(2, quiet=json) as step:
        step(f"reading {', '.join(checked)}")
        crowd = None if answers is None else reading.read(answers)
        refit = None if crowd is None else (lambda known: aggregate(crowd, method, gold=known))
        found = certify(
            source, checked, AuditPlan.load(where), level=level, anytime=anytime, refit=refit,
            **reading.options(),
        )  # fmt: skip
        needed = None if width is None else found.needed(width)
        if html:
            from goldspan.report.certificate import write_certificate

            step("drawing")
            write_certificate(found, html, source=source)
    lines = [textwrap.fill(line, 80, subsequent_indent="  ") for line in str(found).splitlines()]
    if width is not None:
        lines.append(f"an interval {100 * width:g} points wide takes about {needed} checked items")
    lines += [f"written: {html}"] if html else []
    print_result({**found.to_dict(), "needed": needed, "html": html}, lines, as_json=json)
