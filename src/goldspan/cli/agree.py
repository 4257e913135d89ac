"""`goldspan agreement`: how well the workers agree."""

from __future__ import annotations

from typing import Annotated

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import Overwrite, check_outputs, check_part, emit_json, say, steps, table


def agreement(
    source: r.Input,
    plot: Annotated[
        str | None, typer.Option(help="Write the box plots: a .svg, .png or .pdf.")
    ] = None,
    overwrite: Overwrite = False,
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
    json: r.AsJson = False,
) -> None:
    """Measure how well the workers agree, with each other and with the gold.

    Prints Krippendorff's alpha, Cohen's and Fleiss' kappa, the span F1 between workers, and per
    worker the answers and the F1.

    Examples:

      goldspan agreement answers.tsv.gz

      goldspan agreement labels.csv --gold truth.csv --plot agreement.svg --json
    """
    check_outputs(plot, inputs=[source], overwrite=overwrite)
    if plot:
        check_part("picture")
    options = r.Reading(
        format, gold, encoding, columns, workers, label, missing, altered, repeated, strict,
        offsets, cut, delimiter, text_encoding, tokens=tokens, overlapping=overlapping,
        strip=strip, rename_workers=rename_worker,
        max_decompressed=max_decompressed,
    )  # fmt: skip
    from goldspan.crowd import agreement as measure

    with steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        step("comparing the workers")
        found = measure(crowd, policy=policy)
        step("drawing")
        if plot:
            from goldspan.report import agreement_figure, save_figure

            save_figure(agreement_figure(crowd, found), plot)
    if json:
        emit_json(found.to_dict())
        return
    say(str(found))
    rows = found.workers.to_pylist()
    rows.sort(key=lambda row: -row["answers"])
    names = list(rows[0])
    cells = [[_cell(row[name]) for name in names] for row in rows]
    head = [name.replace("_", " ") for name in names]
    say("")
    say(table([head, *cells], right=tuple(range(1, len(names)))))
    if plot:
        say(f"written: {plot}")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.2f}" if isinstance(value, float) else str(value)
