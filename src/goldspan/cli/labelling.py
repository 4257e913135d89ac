"""`goldspan label`: models and functions label a file, without a campaign."""

from __future__ import annotations

import json as json_text
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from goldspan.cli.init import Kind
from goldspan.cli.options import (
    MORE,
    AllowCode,
    AsJson,
    MaxDecompressed,
    Overwrite,
    argument,
    flag,
    option,
    reads_pool,
)
from goldspan.cli.output import (
    check_ending,
    check_files,
    check_outputs,
    check_part,
    check_there,
    key_values,
    listed,
    not_held,
    print_result,
    steps,
    table,
    warn,
    write_crowd_to,
)
from goldspan.crowd.atomic import write_text
from goldspan.errors import InputError
from goldspan.money import from_micro, to_micro
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.annotators import Annotator, Estimate
    from goldspan.annotators.labelling import LabelledBy
    from goldspan.crowd import Crowd
    from goldspan.protocols import PoolItem
    from goldspan.spans import Codec

_MODEL = "Language models"
_SHOWN = 5
CACHE = "goldspan-replies"
"""The folder of the replies of models, if no other is named."""


@reads_pool
def label(
    pool: dict[str, Any],
    source: str = argument(
        "Texts, a table, .jsonl, .conll, or a crowd, whose answers stay; - for standard input.",
        "FILE",
    ),
    worker: list[str] = option(
        "Who labels: llm, python:MODULE:FUNCTION, tagger:FILE, spacy:NAME, transformers:NAME,"
        " gliner:NAME, or a .toml file. Repeatable.",
        "--worker",
        "-w",
        default=...,
        metavar="WORKER",
    ),
    set_: list[str] | None = option(
        "A setting of the worker: model=small, prices.per_answer=0.01. Repeatable.",
        "--set",
        metavar="KEY=VALUE",
    ),
    labels: list[str] | None = option(
        "The labels; by default those of a crowd, or of --examples.", metavar="NAMES"
    ),
    kind: Kind = option(
        "spans: parts of a text are marked; single: an item gets one label.", default=Kind.SPANS
    ),
    encoding: str = option("Encoding of the tags of spans.", default="BIO", panel=MORE),
    instructions: str | None = option(
        "The guidelines for the worker: a file of text or Markdown.", metavar="FILE"
    ),
    limit: int | None = option("Label the first items only.", min=1),
    output: str | None = option(
        "Where to write the crowd; by default, or with -, to standard output.", "--output", "-o"
    ),
    overwrite: Overwrite = False,
    to_format: str | None = option(
        "Format of the output, if the ending of its name does not show it.", panel=MORE
    ),
    details: str | None = option(
        "Write all that is known of every answer, with probabilities and costs: .jsonl.",
        metavar="FILE",
        panel=MORE,
    ),
    allow_code: AllowCode = None,
    send_text: bool = flag(
        "Allow texts to be sent to the worker's endpoint; without it nothing is sent.",
        "--send-text",
        panel=_MODEL,
    ),
    dry_run: bool = flag("Estimate the cost and send nothing.", "--dry-run", panel=_MODEL),
    max_cost: str | None = option(
        "Refuse to begin if it can cost more.", metavar="AMOUNT", panel=_MODEL
    ),
    examples: str | None = option(
        "Items with known labels to show to the model; none of them is asked about.",
        metavar="FILE",
        panel=_MODEL,
    ),
    cache: str = option(
        "Folder with the cached replies of models, which are not paid again.",
        default=CACHE,
        metavar="FOLDER",
        panel=MORE,
    ),
    retry_missing: bool = flag(
        "Ask again about items whose replies were refusals, truncated or invalid.",
        "--retry-missing",
        panel=MORE,
    ),
    format: str | None = option(  # noqa: A002 - the word users know
        "Format of FILE, as for `goldspan select`; guessed by default.",
        "--format",
        "-f",
        panel="Reading",
    ),
    max_decompressed: MaxDecompressed = None,
    json: AsJson = False,
) -> None:
    """Let language models, functions or taggers label a file, without a campaign.

    The output has the new answers beside those that FILE has already, and every other command reads
    it. A reply that is a refusal, truncated or invalid counts as a missing answer. Replies are
    cached, so that a repeated run pays nothing twice. The key of an endpoint comes from an
    environment variable.

    Examples:

      goldspan label news.txt --labels PER,LOC -w tagger:ner.goldspan -o a.jsonl

      goldspan label news.txt --labels PER,LOC -w models.toml --dry-run
    """
    check_ending("--details", details, ".jsonl", ".jsonl.gz")
    check_files(details=details)
    files = [one for one in worker if one.endswith(".toml")]
    inputs = [source, instructions, examples, *files]
    check_outputs(output, details, inputs=inputs, overwrite=overwrite, as_json=json)
    check_there(instructions, examples, *files)
    from goldspan.annotators import AnnotationTask, open_annotator
    from goldspan.annotators.base import read_worker
    from goldspan.annotators.labelling import detail_rows, items_of, label_with, with_answers

    named = [*(allow_code or [])]
    entries = [read_worker(one) for one in _entries(worker, set_ or [], named)]
    if any(entry.kind == "llm" for entry in entries):
        check_part("model")
    names = listed(labels, "--labels")
    with steps(2 + len(entries), quiet=json) as step, ExitStack() as opened:
        step(f"reading {source}")
        known = None if examples is None else _known(examples)
        given = {**pool, "format": format, "max_decompressed": max_decompressed}
        crowd = _items(source, given, single=_is_single(kind, known))
        codec = _codec(crowd, names, known, kind, encoding)
        asks_models = (
            any(entry.kind == "llm" for entry in entries) and not dry_run
        )  # an estimate makes no folder
        task = AnnotationTask(
            codec,
            _text(instructions),
            _examples(known, codec),
            cache=Path(cache) if asks_models or Path(cache).is_dir() else None,
            send_text=send_text and not dry_run,
            allow_code=tuple(named),
        )
        shown = {item.tokens for item, _ in task.examples}
        items = [item for item in items_of(crowd) if item.tokens not in shown][:limit]
        models = [
            opened.enter_context(open_annotator(entry, task, load=not dry_run)) for entry in entries
        ]
        _check_ids(models, crowd)
        estimates = [
            one.estimate(_asked(one, items), retry_missing=retry_missing) for one in models
        ]
        _check_cost(max_cost, models, estimates)
        if task.examples and any(entry.kind == "llm" for entry in entries):
            _check_examples(models)
        if dry_run:
            _print_estimates(models, estimates, len(items), as_json=json)
            return
        found = []
        for model in models:
            step(f"{model.id} labels {counted(len(_asked(model, items)), 'item')}")
            if retry_missing and hasattr(model, "forget_missing"):
                model.forget_missing(_asked(model, items))
            found.append(label_with(model, items, step.part))
        step("writing")
        made = with_answers(crowd, codec, found)
        is_silent = json and output is None
        lost = [] if is_silent else write_crowd_to(made, output, to_format, "spans")
        if details:
            rows = (json_text.dumps(row, ensure_ascii=False) for row in detail_rows(found))
            write_text(details, (f"{row}\n" for row in rows))
    for what in lost:
        warn(not_held(what))
    left_out = crowd.n_items - len(items) if limit is None else 0
    facts = _facts(found, crowd, left_out) | {"output": output, "details": details}
    to_stdout = output in {None, "-"}
    print_result(facts, _lines(found, facts, output), as_json=json, to_stderr=to_stdout)


# What is asked, from the files and options.


def _entries(workers: Sequence[str], options: Sequence[str], allowed: list[str]) -> list[Any]:
    """Return the tables of the workers that are named on the command line, which allows code."""
    from goldspan.annotators.tagger import LIBRARIES

    found: list[dict[str, Any]] = []
    for one in workers:
        kind, _, rest = one.partition(":")
        if one.endswith(".toml"):
            found += _of_file(one)
        elif kind == "python":
            module = rest.partition(":")[0]
            file = Path(f"{module.replace('.', '/')}.py")
            allowed.append(str(file) if file.is_file() else module)
            found.append({"kind": "python", "call": rest})
        elif kind == "tagger":
            found.append({"kind": "tagger", "model": rest})
        elif kind in LIBRARIES and rest:
            allowed.append(rest)
            found.append({"kind": "tagger", "library": kind, "model": rest})
        else:
            found.append({"kind": kind} if not rest else {"kind": one})
    if options and len(found) != 1:
        raise typer.BadParameter("--set is for one --worker: put several into a .toml file")
    for key, value in key_values(list(options), "KEY=VALUE").items():
        _put(found[0], key.split("."), _value(value))
    for n, entry in enumerate(found):
        same = [other.get("id", other["kind"]) for other in found[:n] if "kind" in other]
        if "id" not in entry and entry["kind"] in same:
            entry["id"] = f"{entry['kind']}-{n + 1}"
    return found


def _of_file(path: str) -> list[dict[str, Any]]:
    """Read the tables [[workers]] of a file, or [[crowd.workers]] of a plan."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    inner = content.get("crowd")
    rows = content.get("workers", inner.get("workers") if isinstance(inner, Mapping) else None)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: it must hold tables [[workers]], each with a kind")
    called = [row for row in rows if row.get("kind") not in {"people", "files"}]
    return [{"kind": None} | row for row in called]


def _put(entry: dict[str, Any], path: list[str], value: Any) -> None:
    """Set a key, or a key within a table: prices.per_answer."""
    for name in path[:-1]:
        entry = entry.setdefault(name, {})
        if not isinstance(entry, dict):
            raise typer.BadParameter(f"--set {'.'.join(path)}: {name} is not a table")
    entry[path[-1]] = value


def _value(text: str) -> Any:
    """Read a value as TOML does; what is none is text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _items(source: str, given: dict[str, Any], *, single: bool) -> Crowd:
    """Read the items: a crowd with its answers, or texts, each of them one token if `single`."""
    from goldspan.crowd import read_crowd
    from goldspan.crowd.detection import is_annotated
    from goldspan.crowd.source import open_source
    from goldspan.selection.files import ATTRIBUTES, CROWD, read_pool
    from goldspan.spans import Codec

    file = open_source(source, max_decompressed=given["max_decompressed"])
    if given["format"] == CROWD or (given["format"] is None and is_annotated(file)):
        return read_crowd(file, unlabelled="keep")
    crowd = read_pool(file, **given)
    if crowd.import_report.format not in {"texts", ATTRIBUTES}:
        return read_crowd(file, unlabelled="keep", format=given["format"])
    for note in crowd.import_report.notes:
        warn(f"goldspan: {source}: {note}")
    if not single:
        return crowd
    words = crowd.item_ids if crowd.texts is None else crowd.texts
    return crowd.unanswered(Codec((), "PLAIN"), words)


def _known(path: str) -> Crowd:
    """Read the items with known labels."""
    from goldspan.crowd import read_crowd

    crowd = read_crowd(path)
    if crowd.gold is None:
        raise InputError(f"{path}: its labels are not known: --examples takes a file with gold")
    return crowd


def _is_single(kind: Kind, known: Crowd | None) -> bool:
    return kind == Kind.SINGLE or (known is not None and known.tagset.rules.is_plain)


def _codec(
    crowd: Crowd, names: list[str] | None, known: Crowd | None, kind: Kind, encoding: str
) -> Codec:
    """Return the tags of the task: those of the crowd, of the examples, and the named ones."""
    from goldspan.spans import Codec

    has_labels = len(crowd.answers) > 0 or crowd.gold is not None
    single = _is_single(kind, known) or (has_labels and crowd.tagset.rules.is_plain)
    wanted = "PLAIN" if single else crowd.tagset.encoding if has_labels else encoding
    found = set(names or ())
    for one in (crowd if has_labels else None, known):
        if one is not None:
            if one.tagset.rules.is_plain != single:
                raise InputError("single labels and spans cannot be in one task: see --kind")
            found |= {*(one.tagset.tags if single else one.tagset.types)}
    if not found:
        raise InputError("which labels are there? Name them: --labels PER,LOC")
    return Codec.from_types(found, wanted)


def _examples(known: Crowd | None, codec: Codec) -> tuple[tuple[PoolItem, tuple[str, ...]], ...]:
    """Return the items with known labels, those whose labels are all known."""
    from goldspan.annotators.labelling import items_of
    from goldspan.crowd.io import convert_crowd

    if known is None:
        return ()
    if not codec.rules.is_plain and known.tagset.encoding != codec.encoding:
        known = convert_crowd(known, codec.encoding)
    tags = known.tagset.decode(known.gold_tagged)
    pairs = zip(items_of(known), tags, strict=True)
    return tuple((item, tuple(map(str, row))) for item, row in pairs if None not in row)


def _text(path: str | None) -> str:
    try:
        return "" if path is None else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _asked(model: Annotator, items: Sequence[PoolItem]) -> Sequence[PoolItem]:
    return items if model.entry.limit is None else items[: model.entry.limit]


def _check_ids(models: Sequence[Annotator], crowd: Crowd) -> None:
    """Reject ids that are there, before anything is paid."""
    names = crowd.worker_ids.to_pylist()
    for model in models:
        if model.id in names:
            raise InputError(
                f"there is a worker {model.id!r} already: give this one another id (--set id=NAME)"
            )
        names.append(model.id)


def _check_examples(models: Sequence[Annotator]) -> None:
    """Warn of examples that no model is shown."""
    shown = [getattr(model.options, "examples", 0) for model in models]
    if not any(shown):
        warn("goldspan: no model is shown any of --examples: say how many with --set examples=5")


def _check_cost(
    cap: str | None, models: Sequence[Annotator], estimates: Sequence[Estimate]
) -> None:
    from goldspan.annotators.base import Tariff
    from goldspan.annotators.endpoint import is_local

    if cap is None:
        return
    for model in models:
        is_free = model.entry.kind != "llm" or is_local(model.options.base_url)
        if model.entry.tariff == Tariff() and not is_free:
            raise InputError(
                f"worker {model.id} has no prices, so --max-cost cannot hold: give it prices, such "
                "as --set prices.per_thousand_input=0.00015 --set prices.per_thousand_output=0.0006"
                ", or leave --max-cost out if it costs nothing; nothing was sent"
            )
    most, allowed = sum(one.most_micro for one in estimates), to_micro(cap, "--max-cost")
    if most > allowed:
        expected = from_micro(sum(one.expected_micro for one in estimates))
        raise InputError(
            f"it can cost {from_micro(most)}, which is more than --max-cost {from_micro(allowed)} "
            f"(about {expected} is expected): nothing was sent; take fewer items (--limit), or a "
            "smaller max_output"
        )


# What is shown.


def _print_estimates(
    models: Sequence[Annotator], estimates: Sequence[Estimate], n_items: int, *, as_json: bool
) -> None:
    workers = [
        {"worker": model.id, "kind": model.entry.kind, "family": model.family, **vars(one)}
        for model, one in zip(models, estimates, strict=True)
    ]
    rows = [["worker", "answers", "stored", "tokens in", "tokens out", "cost", "at most"]]
    for model, one in zip(models, estimates, strict=True):
        money = (from_micro(one.expected_micro), from_micro(one.most_micro))
        counts = (one.answers, one.cached, one.input_tokens, one.output_tokens)
        rows.append([model.id, *(f"{n:,}" for n in counts), *money])
    lines = [table(rows, right=(1, 2, 3, 4, 5, 6))]
    for model, one in zip(models, estimates, strict=True):
        if one.same_text:
            n = f"{one.same_text:,} of the {one.cached:,} that are stored"
            lines.append(f"{model.id}: {n} share the reply to an equal text, which is asked once")
    lines.append("nothing was sent")
    print_result({"items": n_items, "workers": workers}, lines, as_json=as_json)


def _facts(found: Sequence[LabelledBy], crowd: Crowd, left_out: int) -> dict[str, Any]:
    workers = []
    for one in found:
        counts = {
            "answers": len(one.answers) - len(one.missing),
            "missing": len(one.missing),
            "unplaced": len(one.unplaced),
            "stored_before": sum(answer.repeated for answer in one.answers),
            "paid_before_micro": sum(answer.cost for answer in one.stored),
            "cost_micro": one.cost,
            "usage": vars(one.usage),
        }
        about = {"worker": one.id, "kind": one.kind, "family": one.family, **counts}
        missing = [{"item": a.item, "why": a.missing} for a in one.missing]
        unplaced = [{"item": item, "what": what} for item, what in one.unplaced]
        workers.append(
            about | {"log": one.facts, "missing_items": missing, "unplaced_spans": unplaced}
        )
    return {"items": crowd.n_items, "examples_left_out": left_out, "workers": workers}


def _lines(
    found: Sequence[LabelledBy], facts: Mapping[str, Any], output: str | None
) -> Iterator[str]:
    rows = [["worker", "kind", "family", "answers", "missing", "unplaced", "cost"]]
    for one in found:
        counts = (len(one.answers) - len(one.missing), len(one.missing), len(one.unplaced))
        money = from_micro(one.cost)
        rows.append([one.id, one.kind, one.family or "-", *(f"{n:,}" for n in counts), money])
    yield table(rows, right=(3, 4, 5, 6))
    for one in found:
        if "sent" in one.facts:
            sent, retried = counted(one.facts["sent"], "call"), one.facts["retried"]
            paid = from_micro(sum(answer.cost for answer in one.stored))
            before = f"{len(one.stored):,} from stored replies (paid before: {paid})"
            same = sum(answer.repeated for answer in one.answers) - len(one.stored)
            more = f", {same:,} share the reply to an equal text" if same else ""
            yield f"{one.id}: {sent} sent, {retried:,} of them again; {before}{more}"
        missing = [f"item {answer.item}: {answer.missing}" for answer in one.missing]
        left_out = [f"item {item}: {words}" for item, words in one.unplaced]
        for what, every in (("no answer to", missing), ("left out of", left_out)):
            yield from (f"{one.id}: {what} {words}" for words in every[:_SHOWN])
            if len(every) > _SHOWN:
                yield f"{one.id}: and {len(every) - _SHOWN:,} more; --details FILE has all of them"
        if one.facts.get("drift"):
            seen = ", ".join(dict.fromkeys(m["model"] for m in one.facts["models"]))
            yield f"{one.id}: the model changed without notice: the endpoint replied as {seen}"
        if one.facts.get("unsettled"):
            n = counted(one.facts["unsettled"], "call")
            yield f"{one.id}: {n} had been cut off and may have been paid without a reply"
    if facts["examples_left_out"]:
        n = counted(facts["examples_left_out"], "item")
        yield f"not asked about: {n} of --examples"
    if output not in {None, "-"}:
        n_answers = sum(len(one.answers) - len(one.missing) for one in found)
        new = counted(n_answers, "new answer")
        yield f"written: {output} ({counted(facts['items'], 'item')}, {new})"
