"""Files: what they hold, other encodings and formats, faults."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import typer

from goldspan.cli.options import (
    MORE,
    AsJson,
    Input,
    NoText,
    Overwrite,
    RawCsv,
    Reading,
    argument,
    flag,
    format_names,
    option,
    reads_crowd,
    reads_pool,
)
from goldspan.cli.output import (
    as_read,
    check_outputs,
    check_part,
    not_held,
    print_result,
    steps,
    table,
    warn,
    write_crowd_to,
)
from goldspan.crowd.registry import FORMATS
from goldspan.errors import FaultsError, FormatError, UnknownNameError
from goldspan.spans.encoding import ENCODINGS, get_encoding
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goldspan.crowd import Crowd
    from goldspan.crowd.formats.span_exports import SoftLabels
    from goldspan.crowd.source import Source

# --------------------------------------------------------------------------------------------------
# goldspan inspect


@reads_crowd(without=("tokens",), unlabelled="keep")
@reads_pool
def inspect(
    reading: Reading,
    pool: dict[str, Any],
    source: Input,
    show: int = option("How many faults to print.", default=10, min=0),
    json: AsJson = False,
) -> None:
    """Show what a file contains, its faults, and the next command to run.

    For answers it shows the format, the tags, counts and the first faults; for texts to label, the
    columns that were found, the items, their tokens, and what was left out.

    Examples:

      goldspan inspect answers.csv

      goldspan inspect export.csv --columns item=question --columns worker=user
    """
    texts, opened = _as_pool(source, reading, pool)
    if texts is None:
        with steps(1, quiet=json) as step:
            step(f"reading {source}")
            crowd = reading.read(opened, step.part)
        # The command that makes sense for this input, with the options that were needed
        words = ["goldspan", "aggregate" if crowd.n_workers else "check", source, *reading.words()]
        if crowd.n_workers:
            flat = "csv" if crowd.is_classification else "conll"
            words += ["-o", f"gold.{flat if crowd.wholes is None else 'jsonl'}"]
        found, command = _facts(crowd), shlex.join(words)
        report = crowd.import_report
        notes: Sequence[object] = report.faults
        said: dict[str, Any] = {"import": report.to_dict(max_faults=show)}
        head = [str(report)]
    else:
        found, command = _facts_of_pool(texts, pool), _init_command(source, pool)
        notes, head = texts.import_report.notes, []
        said = {"notes": list(notes)[:show]}
    lines = [*head, *(f"  {name.replace('_', ' ')}: {_listed(v)}" for name, v in found.items())]
    lines += [f"  {note}" for note in notes[:show]]
    if len(notes) > show:
        lines.append(f"  … and {len(notes) - show} more (--show {len(notes)})")
    facts = {**found, **said, "next": command}
    print_result(facts, [*lines, f"next: {command}"], as_json=json)


def _listed(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _as_pool(source: str, reading: Reading, named: dict[str, Any]) -> tuple[Crowd | None, Any]:
    """Read a file as texts if it holds them, and else open it, once, to be read as answers."""
    from goldspan.crowd.formats.parquet import is_partitioned
    from goldspan.crowd.formats.texts import KINDS
    from goldspan.crowd.source import open_source
    from goldspan.selection.files import read_pool

    given = reading.given
    opened = open_source(source, given["text_encoding"], given["max_decompressed"])
    kind = given["format"]
    if kind is None:
        is_about_crowds = any(given[name] for name in ("gold", "columns", "workers", "labels"))
        if is_about_crowds or is_partitioned(source) or not _are_texts(opened, named["text"]):
            return None, opened
    elif kind == "folder" or kind not in {*KINDS, "texts"}:
        return None, opened
    return read_pool(opened, kind, **named), opened


def _are_texts(opened: Source, text: str | None) -> bool:
    """Tell texts from answers and gold; of what is neither raise what is wrong with the texts."""
    from goldspan.crowd.detection import is_annotated, recognise
    from goldspan.crowd.options import ReadOptions

    options, answers = ReadOptions(columns={"text": text} if text else {}), ""
    try:
        answers = recognise(opened, options)[0]
    except FormatError as error:
        if error.faults[0].kind == "lists" and text is None:
            raise
    try:
        wanted = text is not None or not is_annotated(opened)
        return recognise(opened, options, texts=wanted)[0] == "texts"
    except FormatError:
        if answers:
            return answers == "texts"
        raise


def _facts_of_pool(crowd: Crowd, named: dict[str, Any]) -> dict[str, object]:
    from goldspan.crowd.formats.texts import is_numbered

    columns = crowd.import_report.columns
    facts: dict[str, object] = {"format": "texts"}
    roles = {"text": "text", "token": "tokens", "item": "id", "doc": "document"}
    facts |= {f"{role}_column": columns[one] for one, role in roles.items() if one in columns}
    if is_numbered(crowd):
        facts["ids"] = "the number of the line or row: add new items at the end only"
    facts |= {"items": crowd.n_items, "tokens": crowd.n_tokens}
    facts["cut"] = named["tokens"] or ("given" if "token" in columns else "fine")
    if crowd.groups is not None:
        facts["documents"] = len(crowd.groups.unique())
    names = [] if crowd.attributes is None else crowd.attributes.column_names
    if names:
        facts["attributes"] = names
    if crowd.texts is not None:
        facts["first_item"] = f"{crowd.item_ids[0].as_py()}: {crowd.texts[0].as_py()[:100]}"
    return facts


def _init_command(source: str, named: dict[str, Any]) -> str:
    """Return the command that makes a plan to label a pool."""
    options = ["--text-column", str(named["text"])] if named["text"] else []
    return shlex.join(["goldspan", "init", source, "--labels", "LABEL,LABEL", *options])


def _facts(crowd: Crowd) -> dict[str, object]:
    import numpy as np

    from goldspan.crowd.formats.span_exports import labels_asked
    from goldspan.crowd.model import item_texts

    whole = crowd.whole_items
    facts: dict[str, object] = {
        "format": crowd.import_report.format,
        "encoding": crowd.tagset.encoding,
        "types": labels_asked(crowd) if crowd.is_classification else list(crowd.tagset.types),
        "items": whole.n_items,
        **({} if crowd.wholes is None else {"parts": crowd.n_items}),
        "tokens": whole.n_tokens,
        "workers": crowd.n_workers,
        "answers": len(whole.answers),
        "labels": int(np.count_nonzero(whole.answers.codes >= 0)),
    }
    if crowd.groups is not None:
        facts["groups"] = len(crowd.groups.unique())
    if crowd.gold is not None:
        facts["gold_tokens"] = int(np.count_nonzero(whole.gold_tagged.codes >= 0))
    if crowd.attributes is not None:
        facts["attributes"] = crowd.attributes.column_names
    if len(whole.latest):
        facts["answers_per_item"] = round(len(whole.latest) / whole.n_items, 2)
    text = next(item_texts(whole.select_items(np.array([0]))))
    end = text.bounds[:12][-1][1] if text.bounds else 0
    facts["first_item"] = f"{whole.item_ids[0].as_py()}: {' '.join(text.value[:end].split())}"
    return facts


# --------------------------------------------------------------------------------------------------
# goldspan convert

_HUB = {"panel": "Hugging Face Hub"}


@reads_crowd(without=("encoding",), unlabelled="keep")
def convert(
    reading: Reading,
    source: Input,
    hub: str | None = argument(
        "hf://datasets/OWNER/NAME, a data set on the Hugging Face Hub, to make of it.",
        "[HUB]",
        None,
    ),
    output: str | None = option(
        "Where to write; by default, or with -, to standard output.", "--output", "-o"
    ),
    overwrite: Overwrite = False,
    from_: str | None = option("Encoding of the input; guessed by default.", "--from"),
    to: str | None = option(
        "Encoding of the output, or its format; by default as the input.", "--to"
    ),
    to_format: str | None = option(
        "Format of the output, if the ending of its name does not show it.",
        autocompletion=format_names,
    ),
    no_text: NoText = False,
    repair: str | None = option(
        "Repair malformed tags by a policy instead of rejecting them: conlleval, strict or"
        " boundaries."
    ),
    raw_csv: RawCsv = False,
    predicted: bool = flag(
        "Write the labels as predictions, which nobody confirmed (label-studio, prodigy, doccano,"
        " brat).",
        "--predicted",
    ),
    partitions: int | None = option(
        "Write a folder of this number of Parquet files, for `goldspan aggregate FOLDER`.",
        min=1,
        max=99_999,
        panel=MORE,
    ),
    send: bool = flag("Upload it; without this only say what would be.", "--send", **_HUB),
    public: bool = flag("Let everybody see it; by default it is private.", "--public", **_HUB),
    card: str | None = option(
        "Markdown that ends its card: method, certificate, licence.", metavar="FILE", **_HUB
    ),
    json: AsJson = False,
) -> None:
    """Convert tags to another encoding, and crowds to another format.

    The output is read back, and what its format cannot hold is reported. Confidences that
    `goldspan aggregate` or `goldspan tag` wrote are kept where the format has a place for them.

    Examples:

      goldspan convert answers.tsv -o answers.parquet

      goldspan convert x.conll --from IOB --to IOBES -o y.conll

      goldspan convert answers.tsv --gold gold.jsonl hf://datasets/you/names
    """
    if partitions and output in {None, "-"}:
        raise typer.BadParameter("--partitions writes a folder: name it with -o")
    if partitions and to_format not in {None, "parquet"}:
        raise typer.BadParameter(
            f"--partitions are Parquet files: leave out --to-format {to_format}"
        )
    given, from_ = _sorted_out(reading.given["format"], from_, "--format", "--from")
    reading = reading.but(format=given, encoding=from_)
    to_format, to = _sorted_out(to_format, to, "--to-format", "--to")
    if hub is not None:
        if not hub.startswith("hf://") or output or to_format or to or repair or partitions:
            raise typer.BadParameter(f"{hub}: files are named with -o; hf://… takes no such option")
        _to_hub(reading, source, hub, card, json, public=public, send=send)
        return
    if send or public or card:
        raise typer.BadParameter(
            "--send, --public and --card are for hf://datasets/OWNER/NAME, named without -o"
        )
    check_outputs(output, inputs=[source, reading.gold], overwrite=overwrite)
    from goldspan.crowd.io import convert_crowd

    with steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        step("converting")
        before = crowd.tagset.encoding
        soft = _confidences(source, crowd, rewritten=bool(to or repair))
        if to or repair:
            crowd = convert_crowd(crowd, to or before, repair or "raise")
        step("writing")
        only_gold = not crowd.n_workers
        name = to_format or ("conll" if only_gold and output in {None, "-"} else None)
        how: dict[str, Any] = {"text": not no_text, "raw_csv": raw_csv, "soft": soft}
        how["predicted"] = _least_sure(crowd, soft) if predicted else None
        if partitions:
            from goldspan.crowd.formats.parquet import write_partitions

            partitions, lost = write_partitions(crowd, str(output), partitions), []
        else:
            lost = write_crowd_to(crowd, output, name, "wide", **how)
    is_file = output not in {None, "-"}
    as_json = json and is_file
    if not as_json:
        for line in [*as_read(crowd.import_report), *map(not_held, lost)]:
            warn(line)
    whole = crowd.whole_items
    size = {"items": whole.n_items, "answers": len(whole.answers), "lost": lost}
    after = crowd.tagset.encoding
    facts = {"input": source, "output": output, "from": before, "to": after, **size}
    facts |= {"partitions": partitions} if partitions else {}
    facts["remarks"] = crowd.import_report.remarks
    parts = f" in {counted(partitions, 'partition')}" if partitions else ""
    written = f"written: {output} ({before} to {after}, {crowd.items_counted}{parts})"
    print_result(facts, [written] if is_file else [], as_json=as_json)


def _to_hub(
    reading: Reading, source: str, address: str, card: str | None, json: bool, **how: bool
) -> None:
    """Make a data set on the Hub, or say what it would be."""
    check_part("hub")
    from goldspan.aggregation.hub import push
    from goldspan.crowd import read_crowd
    from goldspan.crowd.source import open_source

    about = open_source(card).text.value if card else ""
    with steps(2, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        by = reading.gold
        gold = read_crowd(by, encoding=crowd.tagset.encoding) if by else None
        soft = _confidences(by or source, gold or crowd, rewritten=False)
        step("sending" if how["send"] else "writing")
        made = push(crowd, address, gold=gold, soft=soft, about=about, **how)
    if not json:
        for line in [*as_read(crowd.import_report), *map(not_held, made["lost"])]:
            warn(line)
    seen, ids = "public" if how["public"] else "private", made["workers"]
    size = f"{crowd.items_counted}, {counted(len(crowd.whole_items.answers), 'answer')}"
    lines = [f"{address} ({seen}): {size}"]
    lines += [f"  {n:>9,} bytes  {name}" for name, n in made["files"].items()]
    lines += [f"  ids of annotators: {', '.join(ids)}"[:100]] if ids else []
    lines += [
        f"sent: {made['sent']}" if made["sent"] else f"not sent to {made['endpoint']}: --send"
    ]
    print_result(made, lines, as_json=json)


def _confidences(source: str, crowd: Crowd, *, rewritten: bool) -> SoftLabels | None:
    """Return the confidences of labels that an aggregation or a tagger wrote, None of others."""
    from goldspan.aggregation.written import read_confidences
    from goldspan.crowd.formats.span_exports import SoftLabels
    from goldspan.spans import find_spans

    if source == "-" or crowd.n_workers or crowd.gold is None:
        return None
    try:
        found = read_confidences(source, crowd)
    except FaultsError as error:
        warn(f"goldspan: warning: {error}")
        return None
    if found is None or len(found.span_confidence) != len(
        find_spans(crowd.gold_tagged, crowd.tagset)
    ):
        return None
    return SoftLabels(None if rewritten else found.token_probs, found.span_confidence)


def _least_sure(crowd: Crowd, soft: SoftLabels | None) -> dict[str, float]:
    """Return the confidence of every item: that of its least sure span; NaN where none is known."""
    every = [[] for _ in range(crowd.n_items)] if soft is None else soft.by_item(crowd)
    rows = zip(crowd.item_ids.to_pylist(), every, strict=True)
    return {item: min(sure, default=float("nan")) for item, sure in rows}


def _sorted_out(
    format_: str | None, encoding: str | None, for_format: str, for_encoding: str
) -> tuple[str | None, str | None]:
    """Return format and encoding; the encoding's option may name a format too."""
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


# --------------------------------------------------------------------------------------------------
# goldspan check


@reads_crowd(unknown="outside", unlabelled="keep")
def check(
    reading: Reading,
    source: Input,
    show: int = option("How many faults to print.", default=20, min=0),
    json: AsJson = False,
) -> None:
    """Check whether tags are well-formed: those of a CoNLL file, or of a crowd and its gold.

    The command prints the faults with their places, and exits with code 1 if there is one.

    Examples:

      goldspan check gold.conll --encoding BIO
    """
    from goldspan.crowd.io import all_faults

    with steps(2, quiet=json) as step:
        step(f"reading {source}")
        crowd = reading.read(source, step.part)
        step("checking")
        faults = all_faults(crowd)
    kinds = Counter((fault.worker, fault.kind) for fault in faults)
    columns = [{"column": who, "kind": kind, "count": n} for (who, kind), n in kinds.items()]
    first = [str(fault) for fault in faults[:show]]
    encoding = crowd.tagset.encoding
    facts = {"file": source, "encoding": encoding, "faults": len(faults)}
    lines = list(first)
    if len(faults) > show:
        lines.append(f"… and {len(faults) - show} more (--show {len(faults)})")
    if faults:
        rows = [[who, kind, str(n)] for (who, kind), n in kinds.most_common()]
        lines.append(table([["column", "fault", "count"], *rows], right=(2,)))
    size = f"{crowd.items_counted}, {counted(crowd.whole_items.n_tokens, 'token')}"
    lines.append(f"{source}: {encoding}, {size}, {counted(len(faults), 'fault')}")
    print_result({**facts, "by_column": columns, "first": first}, lines, as_json=json)
    if faults:
        raise typer.Exit(1)
