"""`goldspan convert`: another encoding, another format, or both."""

from __future__ import annotations

from typing import Annotated

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import Overwrite, check_outputs, emit_json, not_held, say, steps, warn

_TO = "Encoding of the output; the same by default. A format's name is understood as --to-format."


def convert(
    source: r.Input,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Where to write; - or nothing for stdout.")
    ] = None,
    overwrite: Overwrite = False,
    from_: Annotated[
        str | None, typer.Option("--from", help="Encoding of the input; guessed by default.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help=_TO)] = None,
    to_format: Annotated[
        str | None,
        typer.Option(
            help="Format of the output; by its ending by default.", autocompletion=r.format_names
        ),
    ] = None,
    no_text: r.NoText = False,
    repair: Annotated[
        str | None,
        typer.Option(
            help="Read malformed tags by a policy (conlleval, strict, boundaries), not refuse them."
        ),
    ] = None,
    format: r.Format = None,  # noqa: A002 - the word users know
    gold: r.Gold = None,
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
    raw_csv: r.RawCsv = False,
    json: r.AsJson = False,
) -> None:
    """Convert tags to another encoding, and crowds to another format.

    Malformed tags are refused, all of them listed, unless --repair says how to read them. What the
    output format cannot hold is found by reading it back, and said.

    Examples:

      goldspan convert x.conll --from IOB --to BIOES -o y.conll

      goldspan convert answers.tsv.gz -o answers.parquet

      goldspan convert answers.tsv --to IOBES --repair conlleval -o iobes.tsv

      goldspan convert answers.tsv --to-format label-studio -o tasks.json
    """
    format, from_ = _sorted_out(format, from_, "--format", "--from")  # noqa: A001 - as above
    to_format, to = _sorted_out(to_format, to, "--to-format", "--to")
    check_outputs(output, inputs=[source, gold], overwrite=overwrite)
    options = r.Reading(
        format, gold, from_, columns, workers, label, missing, altered, repeated, strict,
        offsets, cut, delimiter, text_encoding, tokens=tokens, overlapping=overlapping,
        strip=strip, rename_workers=rename_worker, unlabelled="keep",
        max_decompressed=max_decompressed,
    )  # fmt: skip
    from goldspan.crowd.convert import convert_crowd
    from goldspan.crowd.io import write_crowd, write_to_stdout

    with steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = options.read(source, step.part)
        step("converting")
        before = crowd.tagset.encoding
        if to or repair:
            crowd = convert_crowd(crowd, to or before, repair or "raise")
        step("writing")
        only_gold = not crowd.n_workers
        name = to_format or ("conll" if only_gold and output in {None, "-"} else None)
        if output in {None, "-"}:
            lost = write_to_stdout(crowd, name or "wide", text=not no_text, raw_csv=raw_csv)
        else:
            lost = write_crowd(crowd, str(output), format=name, text=not no_text, raw_csv=raw_csv)
    facts = {"input": source, "output": output, "from": before, "to": crowd.tagset.encoding}
    if json and output not in {None, "-"}:
        emit_json({**facts, "items": crowd.n_items, "answers": len(crowd.answers), "lost": lost})
        return
    for what in lost:
        warn(not_held(what))
    if output not in {None, "-"}:
        say(f"written: {output} ({before} to {crowd.tagset.encoding}, {crowd.n_items} items)")


def _sorted_out(
    format_: str | None, encoding: str | None, for_format: str, for_encoding: str
) -> tuple[str | None, str | None]:
    """Return a format and an encoding; the name of a format may stand in the encoding's option.

    Raises:
        typer.BadParameter: Two formats are given.
        UnknownNameError: It is neither an encoding nor a format.
    """
    from goldspan.crowd.registry import FORMATS
    from goldspan.errors import UnknownNameError
    from goldspan.spans.encoding import ENCODINGS, get_encoding

    if encoding is None:
        return format_, None
    if encoding.casefold() in FORMATS:
        if format_ is not None:
            raise typer.BadParameter(
                f"{for_encoding} {encoding} is a format, and {for_format} {format_} names another: "
                f"{for_encoding} takes an encoding, such as BIO"
            )
        return encoding.casefold(), None
    try:
        get_encoding(encoding)
    except UnknownNameError:
        hint = f"formats are named by {for_format}: {', '.join(FORMATS)}"
        raise UnknownNameError(f"encoding in {for_encoding}", encoding, ENCODINGS, hint) from None
    return format_, encoding
