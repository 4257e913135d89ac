"""`goldspan inspect`: what a file is, what is wrong with it, and what to run next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import emit_json, say, steps
from goldspan.cli.wording import in_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from goldspan.crowd import Crowd
    from goldspan.crowd.source import Source
    from goldspan.selection.reading import PoolFile


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
    max_decompressed: r.MaxDecompressed = None,
    text_column: r.TextColumn = None,
    id_column: r.IdColumn = None,
    document_column: r.DocumentColumn = None,
    tokens: r.Tokens = None,
    json: r.AsJson = False,
) -> None:
    """Say what a file holds, answers or texts to label, and the command to run next.

    Of answers it prints the format, tags, counts and first faults; of texts to label the columns
    that were found, the items, their tokens, and what was left out.

    Examples:

      goldspan inspect answers.csv

      goldspan inspect texts.csv --text-column sentence

      goldspan inspect export.csv --columns item=question --columns worker=user
    """
    options = r.Reading(
        format, gold, encoding, columns, workers, label, missing, altered, repeated, strict,
        offsets, cut, delimiter, text_encoding, overlapping=overlapping, strip=strip,
        rename_workers=rename_worker, unlabelled="keep",
        max_decompressed=max_decompressed,
    )  # fmt: skip
    named = {"text": text_column, "id": id_column, "document": document_column}
    pool, opened = _as_pool(source, options, named, tokens)
    if pool is not None:
        _tell_pool(pool, source, named, tokens, show, as_json=json)
        return
    with steps(1, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(opened, step.part)
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


def _as_pool(
    source: str, options: r.Reading, named: dict[str, str | None], tokens: str | None
) -> tuple[PoolFile | None, Any]:
    """Read a file as a pool if it is one, and else open it, once, to be read as a crowd."""
    from goldspan.crowd.source import open_source
    from goldspan.selection.reading import (
        ATTRIBUTES,
        CONLL,
        CROWD,
        FORMATS,
        pool_format,
        read_pool,
    )

    with in_options(r.OPTIONS):
        opened = open_source(source, options.text_encoding, options.max_decompressed)
    own = [one for one in FORMATS if one not in {CROWD, CONLL, ATTRIBUTES}]
    is_about_crowds = options.gold or options.columns or options.workers or options.labels
    kind = options.format
    if kind is None and not is_about_crowds:
        kind = _guess(lambda: pool_format(opened, named["text"]), opened)
    if kind not in own:
        return None, opened
    read = read_pool(
        opened, kind, text=named["text"], id=named["id"], document=named["document"], tokens=tokens
    )
    return read, opened


def _guess(pool_format: Callable[[], str], opened: Source) -> str | None:
    """Return what a file is as a pool; None for a crowd.

    Raises:
        FormatError: It is neither.
    """
    from goldspan.crowd.detection import guess_format
    from goldspan.crowd.registry import get_format
    from goldspan.errors import FormatError

    try:
        name = guess_format(opened)
        is_crowd = name != "conll" and get_format(name).sniff(opened)
    except FormatError:
        is_crowd = False
    try:
        found = pool_format()
    except FormatError:
        if is_crowd:
            return None
        raise
    # A table with labels but without annotators is a pool, whatever reads it as a crowd.
    return None if is_crowd and found in {"jsonl", "json", "text"} else found


def _tell_pool(
    read: PoolFile, source: str, named: dict[str, str | None], tokens: str | None, show: int, *,
    as_json: bool,
) -> None:  # fmt: skip
    pool = read.pool
    facts: dict[str, object] = {"format": f"pool ({read.format})"}
    facts |= {f"{role}_column": name for role, name in read.columns.items()}
    if "id" not in read.columns and read.numbered:
        facts["ids"] = "the number of the line or row: add new items at the end only"
    facts |= {"items": pool.n_items, "tokens": int(pool.n_tokens.sum())}
    facts["cut"] = tokens or ("given" if "tokens" in read.columns else "fine")
    if read.format == "conll":
        facts["cut"] = tokens or "given"
    if pool.documents is not None:
        facts["documents"] = len(pool.documents.unique())
    names = list(dict.fromkeys(name for one in pool.attributes for name in one))
    if names:
        facts["attributes"] = names
    if pool.n_items:
        facts["first_item"] = f"{pool.item_ids[0].as_py()}: {str(pool.given[0])[:100]}"
    options = ["--text-column", str(named["text"])] if named["text"] else []
    words = ["goldspan", "init", source, "--labels", "LABEL,LABEL", *options]
    command = " ".join(shlex.quote(word) for word in words)
    if as_json:
        emit_json({**facts, "notes": list(read.notes)[:show], "next": command})
        return
    for name, value in facts.items():
        say(f"  {name.replace('_', ' ')}: {value}")
    for note in read.notes[:show]:
        say(f"  {note}")
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
    """Return the command that makes sense for this input, with the options that were needed."""
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
