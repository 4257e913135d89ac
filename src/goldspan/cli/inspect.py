"""`goldspan inspect`: what a file is, what is wrong with it, and what to run next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import emit_json, say, steps

if TYPE_CHECKING:
    from goldspan.crowd import Crowd


def inspect(
    source: r.Input,
    show: Annotated[int, typer.Option(min=0, help="Faults to print.")] = 10,
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
    overlapping: r.Overlapping = "longest",
    strip: r.Strip = False,
    rename_worker: r.RenameWorkers = None,
    delimiter: r.Delimiter = None,
    text_encoding: r.TextEncoding = None,
    json: r.AsJson = False,
) -> None:
    """Say what a file holds: format, tags, counts, first faults, and the command to run next.

    Examples:

      goldspan inspect answers.csv

      goldspan inspect export.csv --columns item=question --columns worker=user
    """
    options = r.Reading(
        format, gold, encoding, columns, workers, label, missing, altered, repeated, strict,
        offsets, cut, delimiter, text_encoding, overlapping=overlapping, strip=strip,
        rename_workers=rename_worker, unlabelled="keep",
    )  # fmt: skip
    with steps(1, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
    facts = _facts(crowd)
    command = _next_command(crowd, source, options)
    report = crowd.import_report
    if json:
        emit_json({**facts, "import": report.to_dict(max_faults=show), "next": command})
        return
    say(str(report))
    for name, value in facts.items():
        say(f"  {name.replace('_', ' ')}: {value}")
    for fault in report.faults[:show]:
        say(f"  {fault}")
    if len(report.faults) > show:
        say(f"  … and {len(report.faults) - show} more faults (--show {len(report.faults)})")
    say(f"next: {command}")


def _facts(crowd: Crowd) -> dict[str, object]:
    import numpy as np

    facts: dict[str, object] = {
        "format": crowd.import_report.format,
        "encoding": crowd.tagset.encoding,
        "types": list(crowd.tagset.types),
        "items": crowd.n_items,
        "tokens": crowd.n_tokens,
        "workers": crowd.n_workers,
        "answers": len(crowd.answers),
        "labels": int(np.count_nonzero(crowd.answers.codes >= 0)),
    }
    if crowd.groups is not None:
        facts["groups"] = len(crowd.groups.unique())
    if crowd.gold is not None:
        facts["gold_tokens"] = int(np.count_nonzero(crowd.gold >= 0))
    if crowd.attributes is not None:
        facts["attributes"] = crowd.attributes.column_names
    if len(crowd.latest):
        facts["answers_per_item"] = round(len(crowd.latest) / crowd.n_items, 2)
    first = crowd.item_ids[0].as_py()
    facts["first_item"] = f"{first}: {' '.join(crowd.tokens[0].as_py()[:12])}"
    return facts


def _next_command(crowd: Crowd, source: str, options: r.Reading) -> str:
    """Give the command that makes sense for this input, with the options that were needed."""
    words = ["goldspan", "aggregate" if crowd.n_workers else "check", source]
    if options.format:
        words += ["--format", options.format]
    repeated = {
        "--columns": options.columns,
        "--label": options.labels,
        "--workers": options.workers,
        "--rename-worker": options.rename_workers,
    }
    for name, values in repeated.items():
        for value in values or []:
            words += [name, value]
    usual = r.Reading()
    for name in ("gold", "encoding", "offsets", "cut", "overlapping"):
        single = getattr(options, name)
        if single and single != getattr(usual, name):
            words += [f"--{name}", single]
    if options.strip:
        words.append("--strip")
    if crowd.n_workers:
        single_labels = crowd.is_classification
        words += ["--method", "ds" if single_labels else "bsc-seq"]
        words += ["-o", "gold.csv" if single_labels else "gold.conll"]
    return " ".join(shlex.quote(word) for word in words)
