"""Taggers: train them, label text with them, look into them."""

from __future__ import annotations

import gzip
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

import typer

from goldspan.cli.commands import Commands, Group
from goldspan.cli.options import (
    MORE,
    AsJson,
    Input,
    MaxDecompressed,
    Overwrite,
    Reading,
    RunnerName,
    ThreadCount,
    argument,
    flag,
    group,
    method_names,
    option,
    reads_crowd,
)
from goldspan.cli.output import (
    check_files,
    check_outputs,
    key_values,
    not_held,
    print_result,
    read_value,
    say,
    steps,
    table,
    warn,
)
from goldspan.crowd.atomic import write_text
from goldspan.errors import Fault, FormatError, InputError, UnknownNameError
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.tagger import SoftTags
    from goldspan.tagger.base import FeatureTagger, Tagger
    from goldspan.tagger.features import Text
    from goldspan.tagger.kernels import Floats
    from goldspan.tagger.streams import Item, Labelled

# --------------------------------------------------------------------------------------------------
# goldspan train


class _Train(Group):
    """Trains a CRF where no other command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            if found := {"--model", "--encoder", "--to-spacy", "--to-gliner"} & set(args):
                ctx.fail(f"{min(found)}: see `train hmm`, `train encoder` and `train project`")
            args = ["crf", *args]
        return super().parse_args(ctx, args)


train = Commands(cls=_Train)


@train.callback()
def train_root() -> None:
    """Train a tagger on labelled items.

    `goldspan train FILE -o OUTPUT` trains a CRF; `goldspan train crf --help` lists its options.

    Examples:

      goldspan train gold.conll -o ner.goldspan
    """


@dataclass(frozen=True)
class _Job:
    """What every tagger is trained with."""

    source: Input
    output: str = option(
        "Where to write the tagger, such as ner.goldspan.", "--output", "-o", default=...
    )
    overwrite: Overwrite = False
    validation: str | None = option("Labelled items to score the tagger on.", metavar="FILE")
    soft: bool = flag("Allow tag sequences that the encoding forbids.", "--soft", panel=MORE)
    threads: ThreadCount = None
    runner: RunnerName = None
    json: AsJson = False


def _features(
    templates: str | None = option(
        "Features: default, rodrigues, hmm, or a TOML file with a list `templates`."
    ),
    min_count: int = option(
        "Leave out features that occur less often than this.", default=1, min=1, panel=MORE
    ),
) -> dict[str, Any]:
    return _given(templates=templates, min_count=min_count)


def _given(**params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


_trains = group("job", _Job)
_has_features = group("features", _features)


@train.command(short_help="Train a CRF, which most texts suit.")
@reads_crowd()
@_trains
@_has_features
def crf(
    reading: Reading,
    job: _Job,
    features: dict[str, Any],
    max_iter: int | None = option("Most steps of training; by default 200.", min=1),
    c2: float | None = option("Penalty of the squared weights; by default 0.5."),
    start: str | None = option("A trained CRF to start from.", metavar="FILE", panel=MORE),
    vectors: str | None = option(
        "Add the vectors of this pre-trained encoder, which is not fine-tuned, to the features.",
        metavar="NAME_OR_FOLDER",
        panel=MORE,
    ),
) -> None:
    """Train a CRF on items whose tags are known, and write it to one file.

    FILE may have any format that holds gold. Of items that are tagged in part, the known tags
    count. With --validation, training stops when the score no longer rises. The result does not
    depend on the number of threads. Ctrl-C ends training, and the tagger as trained so far is
    written.

    Examples:

      goldspan train crf gold.conll -o ner.goldspan --validation dev.conll
    """
    if vectors:
        from goldspan.tagger.network import check_installed

        check_installed(purpose="--vectors")
    params = features | _given(max_iter=max_iter, c2=c2, vectors=vectors)
    _train(reading, job, "crf", params, start=start)


@train.command(short_help="Train a hidden Markov model, in one pass if all tags are known.")
@reads_crowd()
@_trains
@_has_features
def hmm(
    reading: Reading,
    job: _Job,
    features: dict[str, Any],
    max_iter: int | None = option("Most rounds of training; by default 50.", min=1),
) -> None:
    """Train a hidden Markov model on items whose tags are known, and write it to one file.

    It is trained in one pass if all tags are known, and is less accurate than a CRF.

    Examples:

      goldspan train hmm gold.conll -o small.goldspan
    """
    _train(reading, job, "hmm", features | _given(max_iter=max_iter))


@train.command(short_help="Fine-tune a pre-trained encoder.")
@reads_crowd()
@_trains
def encoder(
    reading: Reading,
    job: _Job,
    model: str = option(
        "The encoder: a name of Hugging Face, or a folder with a model.",
        "--model",
        "-m",
        default=...,
        metavar="NAME_OR_FOLDER",
    ),
    method: str | None = option(
        "Learn the labels of this method of `goldspan aggregate`, not the gold of FILE.",
        autocompletion=method_names,
    ),
    param: list[str] | None = option(
        "Another parameter, such as epochs=4. Repeatable.", metavar="NAME=VALUE"
    ),
    checkpoint: str | None = option(
        "Save the state to this file after every epoch, and resume from it.", metavar="FILE"
    ),
) -> None:
    """Fine-tune a pre-trained encoder to tag, and write it to a folder.

    With --method it learns from the answers of a crowd, with their uncertainty. Ctrl-C ends
    training, and the tagger as trained so far is written.

    Examples:

      goldspan train encoder gold.conll -o ner -m bert-base-cased

      goldspan train encoder answers.tsv -o ner -m bert-base-cased --method ds
    """
    from goldspan.tagger.encoder import check_installed

    params: dict[str, Any] = {"model": model}
    for name, text in key_values(param, "NAME=VALUE").items():
        if name in {"model", "encoding", "hard"}:
            raise typer.BadParameter(f"--param {name} cannot be set here")
        params[name] = read_value(text)
    check_installed()
    _train(reading, job, "encoder", params, method=method, checkpoint=checkpoint)


def _train(
    reading: Reading,
    job: _Job,
    model: str,
    params: dict[str, Any],
    *,
    start: str | None = None,
    method: str | None = None,
    checkpoint: str | None = None,
) -> None:
    from goldspan.runners import FileCheckpoint, working
    from goldspan.tagger import load_tagger, tagger_kinds
    from goldspan.tagger.encoder import FILE

    base = params.get("model")
    inputs = [job.source, job.validation, start, base if base and Path(base).exists() else None]
    is_replaced = model == "encoder" and job.overwrite and (Path(job.output) / FILE).is_file()
    check_outputs(None if is_replaced else job.output, inputs=inputs, overwrite=job.overwrite)
    check_outputs(checkpoint, inputs=inputs, overwrite=True)  # a run goes on from it
    check_files(output=job.output, checkpoint=checkpoint)
    with working(job.runner, job.threads) as worked_by, steps(3, quiet=job.json) as step:
        step(f"reading {job.source}")
        crowd = _of_texts(reading.read(job.source, step.part), job.source)
        data = _aggregated(crowd, method) if method else _labelled_items(crowd)
        if not job.soft and data.soft is None:
            _check_possible(data, crowd.tagset.encoding)
        params |= {"hard": not job.soft, "encoding": crowd.tagset.encoding}
        tagger = tagger_kinds()[model]().set_params(**params)
        held_out = _held_out(reading.read(job.validation)) if job.validation else None
        step(f"fine-tuning {base}" if base else f"training a {model}")
        around: dict[str, Any] = {"runner": worked_by, "progress": step.round}
        around |= {"start": load_tagger(start) if start else None, "validation": held_out}
        around |= {"checkpoint": FileCheckpoint(checkpoint)} if checkpoint else {}
        if job.threads and (base or params.get("vectors")):
            import torch

            torch.set_num_threads(job.threads)
        interrupted = False
        try:
            tagger.fit(data.text, data.tags if data.soft is None else data.soft, **around)
        except KeyboardInterrupt:
            if not tagger.is_fitted:
                raise
            interrupted = True
        step("writing")
        tagger.save(job.output)
    facts = _facts_train(tagger, data, held_out)
    unused = {
        "items without any tag were left out": data.n_left_out,
        "items are tagged in part: what is known of them counts": data.n_in_part,
        "tags were made well-formed (--soft trains on them as they are)": tagger.n_repaired_,
    }
    for what, n in unused.items():
        if n and not job.json:
            warn(f"{n} {what}")
    size = f"{_size(Path(job.output)) / 1e6:.1f} MB"
    lines = [f"  {name.replace('_', ' ')}: {value}" for name, value in facts.items()]
    found = {"input": job.source, "output": job.output, "items_left_out": data.n_left_out}
    found |= {"items_in_part": data.n_in_part, "tags_made_well_formed": tagger.n_repaired_, **facts}
    print_result(found, [*lines, f"written: {job.output} ({size})"], as_json=job.json)
    if interrupted:
        unit = "epoch" if "epochs" in facts else "step"
        done = counted(facts[f"{unit}s"], unit)
        warn(f"goldspan: interrupted after {done}; their result was written")
        raise typer.Exit(130)


@train.command(short_help="Write data and settings with which spaCy or GLiNER train.")
@reads_crowd()
def project(
    reading: Reading,
    source: Input,
    output: str = option("The folder to write.", "--output", "-o", default=..., metavar="FOLDER"),
    library: Literal["spacy", "gliner"] = option("What trains on it.", "--for", default=...),
    method: str | None = option(
        "Write the labels of this method of `goldspan aggregate`, not the gold of FILE.",
        autocompletion=method_names,
    ),
    validation: str | None = option(
        "Labelled items to validate on; by default a part of FILE.", metavar="FILE"
    ),
    language: str = option("spaCy: language of the texts, such as de; xx is any.", default="en"),
    json: AsJson = False,
) -> None:
    """Write a folder with which another library trains; its README.md has the commands.

    Examples:

      goldspan train project answers.tsv -o ner-project --for spacy --method ds
    """
    check_outputs(output, inputs=[source, validation], overwrite=None)
    check_files(output=output)
    import goldspan
    from goldspan.aggregation.splits import FILES, write_project

    with steps(3 if method else 2, quiet=json) as step:
        step(f"reading {source}")
        crowd = _of_texts(reading.read(source, step.part), source)
        dev = reading.read(validation) if validation else None
        if method:
            step(f"aggregating with {method}")
            crowd = goldspan.aggregate(crowd, method=method, progress=step.round).as_gold()
        step("writing")
        counts = write_project(crowd, output, library, dev=dev, language=language)
    names = dict(zip(("train", "dev"), FILES[library], strict=True))
    if not json and counts["left_out"]:
        warn(f"left out: {counted(counts['left_out'], 'item')} without a label for every token")
    lines = [f"  {name}: {counted(counts[part], 'item')}" for part, name in names.items()]
    hint = f"written: {output} ({Path(output) / 'README.md'} explains how to train on it)"
    print_result({"input": source, "output": output, **counts}, [*lines, hint], as_json=json)


def _of_texts(crowd: Crowd, source: str) -> Crowd:
    """Return a crowd, but reject single labels of items that have names and no text."""
    from goldspan.aggregation.base import has_words

    if not has_words(crowd):
        raise InputError(
            f"{source}: a tagger learns from texts, and these items have only names: add a column "
            "with the texts"
        )
    if crowd.wholes is not None:
        warn(f"{source}: where spans overlap, the tagger learns the outermost ones alone")
    return crowd.whole_items


@dataclass(frozen=True, eq=False)
class _Data:
    """Items to learn from; None means that a tag is not known."""

    ids: list[str]
    text: Text
    tags: list[list[str | None]]
    n_in_part: int
    n_left_out: int
    soft: SoftTags | None = None


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def text_of(crowd: Crowd) -> Text:
    """Return the words of a crowd with its groups, which are documents."""
    from goldspan.tagger import Text

    documents = None if crowd.groups is None else list(map(str, crowd.groups.to_pylist()))
    return Text.of(crowd.tokens_list, documents)


def _aggregated(crowd: Crowd, method: str) -> _Data:
    """Aggregate the answers; return the probabilities of the tags where somebody answered."""
    import numpy as np

    import goldspan
    from goldspan.tagger import SoftTags

    result = goldspan.aggregate(crowd, method=method)
    has_answers = np.diff(result.crowd.by_item.bounds) > 0
    if not has_answers.any():
        raise InputError("no item has an answer: leave out --method to learn from gold")
    tokens = np.repeat(has_answers, np.diff(crowd.offsets))
    kept = result.as_gold().select_items(has_answers)
    return _Data(
        kept.item_ids.to_pylist(),
        text_of(kept),
        kept.tagset.decode(kept.gold_tagged),
        0,
        int((~has_answers).sum()),
        SoftTags(kept.tagset, result.token_probs[tokens]),
    )


def _labelled_items(crowd: Crowd) -> _Data:
    """Return words and tags of the items of which some tag is known."""
    import numpy as np

    from goldspan._arrays import count_in_rows

    unknown = count_in_rows(crowd.gold_tagged.codes < 0, crowd.offsets)
    useless = (unknown > 0) & (unknown == np.diff(crowd.offsets))
    if useless.all():
        raise InputError("no item has a known tag: give a FILE with gold, or --gold")
    kept = crowd.select_items(~useless) if useless.any() else crowd
    return _Data(
        kept.item_ids.to_pylist(),
        text_of(kept),
        kept.tagset.decode(kept.gold_tagged),
        int(((unknown > 0) & ~useless).sum()),
        int(useless.sum()),
    )


def _check_possible(data: _Data, encoding: str) -> None:
    """Reject tags that no well-formed sequence has; those of whole items are made well-formed."""
    if not data.n_in_part:
        return
    import numpy as np

    from goldspan.chains.decoding import first_without_path
    from goldspan.spans import Codec
    from goldspan.tagger.crf import Masks
    from goldspan.tagger.targets import allowed_tags, named_tags

    codec = Codec.from_tags(set(named_tags(data.tags)), encoding)
    masks = Masks.of(codec, hard=True)
    in_part = np.array([None in tags for tags in data.tags], np.float64)
    allowed = allowed_tags(data.tags, codec)
    chain = (masks.start, masks.step, masks.end)
    item = first_without_path(data.text.offsets, in_part, allowed, *chain)
    if item >= 0:
        raise InputError(
            f"item {data.ids[item]}: no well-formed sequence has the tags that are known of it: "
            "correct them, or pass --soft to allow any sequence"
        )


def _held_out(crowd: Crowd) -> tuple[Text, list[list[str | None]]]:
    """Return words and tags of the items whose tags are all known."""
    import numpy as np

    data = _labelled_items(crowd.whole_items)
    whole = np.array([None not in item for item in data.tags])
    if not whole.any():
        raise InputError("there is no item to validate on: all tags of such an item must be known")
    items = np.flatnonzero(whole)
    return data.text.select(items), [data.tags[n] for n in items]


def _facts_train(tagger: Tagger, data: _Data, held_out: tuple[Any, Any] | None) -> dict[str, Any]:
    from goldspan.tagger import Encoder
    from goldspan.tagger.base import FeatureTagger

    facts: dict[str, Any] = {
        "model": tagger.name,
        "tags": list(tagger.codec_.tags),
        "items": len(data.tags),
        "tokens": data.text.n_tokens,
    }
    seen = vars(tagger)
    if isinstance(tagger, Encoder):
        facts |= {"encoder": tagger.model, "device": tagger.network_.device}
        facts |= {"epochs": len(tagger.trace_), "stopped_by": tagger.stop_reason_}
        facts |= {"loss": tagger.trace_[-1], "temperature": round(tagger.temperature_, 3)}
        if tagger.scores_:
            facts["held_out"] = round(100 * max(tagger.scores_), 2)
        seen = {"trace_": ()}
    elif isinstance(tagger, FeatureTagger):
        facts["features"] = tagger.features_.n_features
    if seen["trace_"]:
        n_steps = len(seen["trace_"]) - (tagger.name == "crf")  # which has its start there too
        facts |= {"steps": n_steps, "stopped_by": seen["stop_reason_"]}
        facts["objective"] = seen["trace_"][-1]
    if held_out is not None:
        name = "accuracy" if tagger.codec_.rules.is_plain else "f1"
        facts[f"validation_{name}"] = round(100 * tagger.score(*held_out), 2)
    return facts


# --------------------------------------------------------------------------------------------------
# goldspan tag


_ENDINGS = {".jsonl": "jsonl", ".conll": "conll", ".conll03": "conll", ".tsv": "conll"}
_ENDINGS |= {".bio": "conll", ".iob": "conll", ".spacy": "docbin"}
_IN_MEMORY = ("docbin", "datasets")
"""Formats of the output that take all items at once."""
_WHOLE = {
    ".csv", ".parquet", ".json", ".xlsx", ".xls", ".ods", ".pdf", ".doc", ".docx", ".odt", ".rtf",
}  # fmt: skip


def tag(
    tagger: str = argument("A file or folder of `goldspan train`.", "TAGGER"),
    source: str = argument("Text, CoNLL or .jsonl (also .gz), or - for standard input.", "FILE"),
    output: str | None = option(
        "Where to write (also .gz); by default standard output.", "--output", "-o"
    ),
    overwrite: Overwrite = False,
    format: str | None = option(  # noqa: A002 - the word users know
        "Format of the input: text, conll or jsonl; by default its ending decides.",
        "--format",
        "-f",
    ),
    to_format: str | None = option(
        "Format of the output: conll, jsonl, docbin (.spacy) or datasets (a folder, or .parquet);"
        " by default its ending decides."
    ),
    tokens: str | None = option(
        "How texts are split: fine, space, words or characters; by default as in training."
    ),
    vectors: str | None = option(
        "Where the encoder is that the tagger was trained with (train crf --vectors), if it has"
        " moved.",
        metavar="NAME_OR_FOLDER",
    ),
    max_decompressed: MaxDecompressed = None,
    json: AsJson = False,
) -> None:
    """Tag a file of any size; only a few thousand tokens are in memory at a time.

    In plain text a line is an item, and a blank line ends a document. CoNLL has a token in the
    first column; JSON lines have `tokens` or `text`, and their other fields are kept. Tables with a
    column of texts (.csv, .parquet) are read as a whole. The output has the probability of every
    tag (CoNLL) or span (JSON lines); spaCy's DocBin and datasets of Hugging Face, which are made in
    memory, have both.

    Examples:

      goldspan tag ner.goldspan text.txt

      goldspan tag ner.goldspan news.jsonl -o news.spacy

      goldspan tag ner.goldspan news.jsonl.gz -o tagged.jsonl.gz

      cat text.txt | goldspan tag ner.goldspan - --to-format jsonl
    """
    check_outputs(output, inputs=[source, tagger], overwrite=overwrite)
    if json and output in {None, "-"}:
        raise typer.BadParameter("--json describes what was written: name a file, -o tagged.jsonl")
    from goldspan.spans.text import RULES
    from goldspan.tagger import load_tagger
    from goldspan.tagger.streams import READERS, conll_lines, json_lines, label, read_items

    writers = {"conll": conll_lines, "jsonl": json_lines}
    if output not in {None, "-"} and not to_format and _by_ending(output) is None:
        raise InputError(
            f"{output}: the name must end in {', '.join(_ENDINGS)} (also .gz), or pass --to-format"
        )
    given = format or _by_ending(source) or "text"
    if given not in READERS:
        raise UnknownNameError("format of texts", given, READERS)
    wanted = to_format or _by_ending(output) or ("jsonl" if given == "jsonl" else "conll")
    _check_output(wanted, [*writers, *_IN_MEMORY], output)
    model = load_tagger(tagger, vectors=vectors)
    if tokens is not None and tokens not in RULES:
        raise UnknownNameError("rule for tokens", tokens, RULES)
    counts, to_stdout = Counter(items=0, tokens=0, spans=0), output in {None, "-"}
    shown = steps(1, quiet=json or (to_stdout and sys.stdout.isatty()))
    with shown as step, _opened(source) as (file, position):
        step(f"tagging {source}")
        is_free = given == "jsonl" or format == "text"
        checked = file if is_free else cast("TextIO", _NoTable(file, source))
        rule = tokens or model.tokens_
        is_whole = format is None and _ending(source) in _WHOLE  # as a pool is read
        whole = _of_pool(source, rule, max_decompressed) if is_whole else None
        found = label(model, whole or read_items(checked, given, source, rule))
        passing = _counting(found, counts, lambda: step.part(*position()))
        if to_stdout:
            for chunk in writers[wanted](passing):
                say(chunk.removesuffix("\n"))
            return
        if wanted in _IN_MEMORY:
            _write_crowd(passing, str(output), wanted, model)
        else:
            write_text(str(output), writers[wanted](passing))
    size = ", ".join(counted(n, name.removesuffix("s")) for name, n in counts.items())
    facts = {"input": source, "output": output, **counts}
    print_result(facts, [f"written: {output} ({size})"], as_json=json)


def _check_output(name: str, known: list[str], output: str | None) -> None:
    """Reject an output format that there is not, or that cannot be written, before any work."""
    if name not in known:
        raise UnknownNameError("output format", name, known)
    if name in _IN_MEMORY and output in {None, "-"}:
        raise typer.BadParameter(f"{name} needs the name of a file or folder: pass -o")
    if name == "docbin":
        from goldspan.crowd.formats.docbin import check

        check()


def _write_crowd(labelled: Iterator[Labelled], path: str, name: str, model: Tagger) -> None:
    """Write tagged items as a crowd's gold, with the confidence of every span."""
    import numpy as np

    from goldspan.crowd import CrowdBuilder, write_crowd
    from goldspan.crowd.formats.span_exports import SoftLabels
    from goldspan.crowd.options import ReadOptions

    builder = CrowdBuilder(ReadOptions(encoding=model.codec_.encoding))
    sure: list[float] = []
    for one in labelled:
        item, starts = one.item, [start for start, _ in one.item.bounds]
        place: dict[str, Any] = {"text": item.text, "token_start": starts} if starts else {}
        facts = {k: v for k, v in item.fields.items() if isinstance(v, str | int | float)}
        group = str(facts.pop("doc")) if "doc" in facts else None
        builder.add_item(
            item.name, item.words, gold=one.tags, group=group, attributes=facts, **place
        )
        sure += [p for *_, p in one.spans]
    soft = SoftLabels(None, np.array(sure, np.float32), method=model.name)
    for lost in write_crowd(builder.build(), path, format=name, soft=soft):
        warn(not_held(lost))


def _of_pool(source: str, rule: str, max_decompressed: str | None) -> Iterator[Item] | None:
    """Read the texts of a table or of JSON; None if it is something else, to be read by lines."""
    from goldspan.crowd.detection import recognise
    from goldspan.crowd.formats import texts
    from goldspan.crowd.options import ReadOptions
    from goldspan.crowd.source import open_source

    file, options = open_source(source, max_decompressed=max_decompressed), ReadOptions(tokens=rule)
    if recognise(file, options, texts=True)[0] != "texts":
        return None
    return _items(texts.read(file, options))


def _items(crowd: Crowd) -> Iterator[Item]:
    from goldspan.crowd.formats.span_exports import attribute_rows
    from goldspan.crowd.model import item_texts
    from goldspan.tagger.streams import Item

    names, rows = crowd.item_ids.to_pylist(), attribute_rows(crowd)
    for n, text in enumerate(item_texts(crowd)):
        facts = {key: value for key, value in rows[n].items() if value is not None}
        yield Item(crowd.tokens_list[n], names[n], n, text.value, text.bounds, facts)


class _NoTable:
    """A text that must not begin with the header of a table: such columns hold no words."""

    def __init__(self, file: TextIO, name: str) -> None:
        self._file, self._name, self._line, self._is_seen = file, name, 1, False

    def readline(self, most: int = -1) -> str:
        """Return the next line."""
        line = self._file.readline(most)
        if not self._is_seen and line.strip() and not line.startswith("# "):
            self._is_seen = True
            _check_header(line, self._name, self._line)
        self._line += 1
        return line


def _check_header(line: str, name: str, number: int) -> None:
    """Reject the header of a wide or a long table, unless its first column holds the words."""
    from goldspan.crowd.formats import long, wide
    from goldspan.crowd.formats.wide import TOKEN
    from goldspan.crowd.grid import header_names
    from goldspan.crowd.source import Source

    is_table = "\t" in line or _ending(name) == ".csv"
    header = Source(name, line.encode())
    names = header_names(header)
    if is_table and names[0].lower() not in TOKEN and (wide.sniff(header) or long.sniff(header)):
        message = (
            f"this is the header of a table of answers ({', '.join(names[:6])}), not of a text: "
            "`goldspan convert FILE -o words.conll` writes one with the words in the first column "
            "(without gold `goldspan aggregate FILE -o words.conll`)"
        )
        raise FormatError([Fault(message, name, number, kind="format")])


def _counting(
    labelled: Iterator[Labelled], counts: Counter[str], passed: Callable[[], None]
) -> Iterator[Labelled]:
    """Count what passes."""
    for one in labelled:
        passed()
        counts.update(items=1, tokens=len(one.tags), spans=len(one.spans))
        yield one


def _ending(name: str) -> str:
    return Path(name.removesuffix(".gz")).suffix.lower()


def _by_ending(name: str | None) -> str | None:
    return None if name is None else _ENDINGS.get(_ending(name))


@contextmanager
def _opened(source: str) -> Iterator[tuple[TextIO, Callable[[], tuple[int, int]]]]:
    """Open UTF-8 text; yield it with a function for (bytes read, of how many; 0 if unknown)."""
    if source == "-":
        yield io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig"), lambda: (0, 0)
        return
    with ExitStack() as also:
        try:
            raw = also.enter_context(Path(source).open("rb"))
        except OSError as error:
            raise InputError(f"cannot read {source}: {error.strerror or error}") from None
        size = Path(source).stat().st_size
        plain = also.enter_context(gzip.open(raw)) if source.endswith(".gz") else raw
        file = also.enter_context(io.TextIOWrapper(plain, encoding="utf-8-sig"))
        yield file, lambda: (raw.tell(), size) if raw.seekable() else (0, 0)


# --------------------------------------------------------------------------------------------------
# goldspan tagger inspect


tagger = Commands()


@tagger.callback()
def _root() -> None:
    """Inspect a trained tagger, or export it."""


@tagger.command(short_help="Write an encoder for ONNX Runtime.")
def export(
    source: str = argument("A folder of `goldspan train encoder`.", "TAGGER"),
    output: str = option("The folder to write.", "--output", "-o", default=...),
    json: AsJson = False,
) -> None:
    """Write an encoder as a folder that tags without torch, by ONNX Runtime.

    `goldspan tag` takes the folder as any other tagger; it needs the extra onnx.

    Examples:

      goldspan tagger export ner -o ner-onnx
    """
    from goldspan.tagger import Encoder, load_tagger

    check_outputs(output, inputs=[source], overwrite=None)
    model = load_tagger(source)
    if not isinstance(model, Encoder):
        raise InputError(f"{source} is of the model {model.name}: only encoders are exported")
    model.export(output)
    size = _size(Path(output))
    found = {"input": source, "output": output, "bytes": size}
    print_result(found, [f"written: {output} ({size / 1e6:.1f} MB)"], as_json=json)


@tagger.command(short_help="Show what a tagger is: tags, parameters, largest weights.")
def inspect(
    source: str = argument("A file of `goldspan train`.", "TAGGER"),
    top: int = option("How many features to show per tag.", default=8, min=0),
    label: list[str] | None = option("Show this tag only. Repeatable."),
    json: AsJson = False,
) -> None:
    """Show what a tagger is: its tags, parameters, largest weights per tag, and steps.

    A weight says how much a feature speaks for a tag; an HMM's are logarithms of probabilities,
    less their mean over the tags.

    Examples:

      goldspan tagger inspect ner.goldspan

      goldspan tagger inspect ner.goldspan --label B-PER --top 30 --json
    """
    from goldspan.tagger import load_tagger
    from goldspan.tagger.base import FeatureTagger

    if Path(source).is_dir():
        raise InputError(f"{source} is a folder: an encoder has no weights of features to show")
    model = load_tagger(source)
    assert isinstance(model, FeatureTagger)
    tags = model.codec_.tags
    for name in label or []:
        if name not in tags:
            raise UnknownNameError("tag", name, tags)
    facts = _facts_tagger(model)
    largest = {name: _largest(model, tags.index(name), top) for name in label or tags}
    found = _steps(model)
    lines = []
    for name, value in facts.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        lines.append(f"{name.replace('_', ' ')}: {shown}")
    for name, rows in largest.items():
        lines.append(f"\n{name}")
        if rows:
            lines.append(table([["  " + feature, f"{w:+.3f}"] for feature, w in rows], right=(1,)))
    lines += ["\nsteps from (row) to (column)"]
    lines += [table(_step_rows(found), right=tuple(range(1, len(tags) + 2)))]
    print_result({**facts, "weights": largest, "steps": found}, lines, as_json=json)


def _facts_tagger(model: FeatureTagger) -> dict[str, Any]:
    params = model.get_params()
    templates = params.pop("templates")
    return {
        "model": model.name,
        "encoding": model.codec_.encoding,
        "tags": list(model.codec_.tags),
        "features": model.features_.n_features,
        "templates": [templates] if isinstance(templates, str) else list(templates),
        "documents": model.documents_,
        **params,
    }


def _largest(model: FeatureTagger, tag: int, top: int) -> list[tuple[str, float]]:
    """Return the features that speak most for a tag, with their weights."""
    import numpy as np

    state = model.weights_.state
    own: Floats = state[:, tag] - (state.mean(axis=1) if model.name == "hmm" else 0.0)
    # Weights that differ by rounding are equal: features of the same tokens keep their order.
    best = np.argsort(-np.round(own, 9), kind="stable")[:top]
    return [(model.features_.name(int(n)), float(own[n])) for n in best if own[n] > 0]


def _steps(model: FeatureTagger) -> dict[str, dict[str, float | None]]:
    """Return the weights between tags; None where a step is impossible."""
    from goldspan.tagger.crf import Masks

    masks, w = Masks.of(model.codec_, hard=model.hard), model.weights_
    tags = model.codec_.tags

    def row(weights: Floats, allowed: Floats) -> list[float | None]:
        return [float(x) if a else None for x, a in zip(weights, allowed, strict=True)]

    found = {"<start>": dict(zip(tags, row(w.start, masks.start), strict=True))}
    ends = row(w.end, masks.end)
    for n, tag in enumerate(tags):
        found[tag] = dict(zip(tags, row(w.step[n], masks.step[n]), strict=True))
        found[tag]["<end>"] = ends[n]
    return found


def _step_rows(steps: dict[str, dict[str, float | None]]) -> list[list[str]]:
    names = [*steps["<start>"], "<end>"]
    rows = [["", *names]]
    for tag, values in steps.items():
        cells = [values.get(name) for name in names]
        rows.append([tag, *("-" if value is None else f"{value:+.2f}" for value in cells)])
    return rows
