"""Taggers: train them, label text with them, look into them."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import typer

from goldspan.cli.commands import Commands
from goldspan.cli.options import (
    AsJson,
    Input,
    MaxDecompressed,
    Overwrite,
    Reading,
    RunnerName,
    ThreadCount,
    argument,
    flag,
    option,
    reads_crowd,
)
from goldspan.cli.output import (
    check_files,
    check_outputs,
    key_values,
    print_result,
    read_value,
    say,
    steps,
    table,
    warn,
)

if TYPE_CHECKING:
    from goldspan.crowd import Crowd
    from goldspan.selection.reading import PoolFile
    from goldspan.tagger import SoftTags
    from goldspan.tagger.base import FeatureTagger, Tagger
    from goldspan.tagger.features import Text
    from goldspan.tagger.parameters import Floats
    from goldspan.tagger.streams import Item, Labelled

# --------------------------------------------------------------------------------------------------
# goldspan train


@reads_crowd()
def train(
    reading: Reading,
    source: Input,
    output: str | None = option(
        "Where to write the tagger, such as ner.goldspan.", "--output", "-o"
    ),
    overwrite: Overwrite = False,
    to_spacy: str | None = option(
        "Train nothing: write a project that `spacy train` trains on.", metavar="FOLDER"
    ),
    to_gliner: str | None = option(
        "Train nothing: write the data that GLiNER is fine-tuned on.", metavar="FOLDER"
    ),
    language: str = option("--to-spacy: of the texts, such as en or de; xx: any.", default="en"),
    model: str = option("The model: crf, hmm or encoder.", "--model", "-m", default="crf"),
    encoder: str | None = option(
        "Fine-tune this pre-trained encoder: a name of Hugging Face, or a folder with a model.",
        metavar="NAME_OR_FOLDER",
    ),
    method: str | None = option(
        "encoder, --to-…: learn the labels of this method of `goldspan aggregate`, such as"
        " bsc-seq+crf, from the answers in FILE, and not its gold."
    ),
    param: list[str] | None = option(
        "encoder: another parameter, such as epochs=4. Repeatable.", metavar="NAME=VALUE"
    ),
    checkpoint: str | None = option(
        "encoder: save the state to this file after every epoch, and resume from it.",
        metavar="FILE",
    ),
    templates: str | None = option(
        "Features: default, rodrigues, hmm, or a TOML file with a list `templates`."
    ),
    c2: float | None = option("crf: penalty of the squared weights; by default 0.5."),
    min_count: int = option(
        "Leave out features that occur less often than this.", default=1, min=1
    ),
    hash_bits: int = option(
        "Hash features into 2 ** N numbers; 0 for none.", default=0, min=0, max=26
    ),
    soft: bool = flag("Allow tag sequences that the encoding forbids.", "--soft"),
    max_iter: int | None = option(
        "Most steps of training; by default 200 (hmm: 50 rounds).", min=1
    ),
    validation: str | None = option(
        "Labelled items to score the tagger on; a crf stops training early by them.", metavar="FILE"
    ),
    start: str | None = option("crf: a trained tagger to start from.", metavar="FILE"),
    vectors: str | None = option(
        "crf: the vectors of this pre-trained encoder are features, too; it is not fine-tuned.",
        metavar="NAME_OR_FOLDER",
    ),
    threads: ThreadCount = None,
    runner: RunnerName = None,
    json: AsJson = False,
) -> None:
    """Train a tagger on items whose tags are known, and write it to one file (encoder: a folder).

    FILE may have any format that holds gold. Items that are tagged in part count with the tags that
    are known; items without any tag are left out. The result does not depend on the number of
    threads. Ctrl-C ends training, and the model as trained so far is written.

    Examples:

      goldspan train gold.conll -o ner.goldspan

      goldspan train answers.tsv -o ner --encoder bert-base-cased --method bsc-seq+crf

      goldspan train answers.tsv --to-spacy ner-project --method bsc-seq+crf
    """
    if to_spacy or to_gliner:
        others: dict[str, Any] = {"--output": output, "--encoder": encoder, "--start": start}
        others |= {"--vectors": vectors, "--param": param, "--to-gliner": to_spacy and to_gliner}
        _check_trains_nothing("--to-spacy" if to_spacy else "--to-gliner", others)
        what = ("spacy", to_spacy) if to_spacy else ("gliner", str(to_gliner))
        _write_project(reading, source, what, method, validation, language, as_json=json)
        return
    output = _named_output(output)
    model = "encoder" if encoder else model
    own = {"--encoder": encoder, "--method": method, "--param": param, "--checkpoint": checkpoint}
    chosen: dict[str, Any] = {"templates": templates, "c2": c2, "max_iter": max_iter}
    chosen["vectors"] = vectors
    counted = {"min_count": min_count, "hash_bits": hash_bits}
    params = _params_of(model, chosen, counted, own, start) | {"hard": not soft}
    replaced = output if model == "encoder" and overwrite and _is_tagger(output) else None
    inputs = [source, validation, start, encoder if encoder and Path(encoder).exists() else None]
    check_outputs(None if replaced else output, inputs=inputs, overwrite=overwrite)
    check_outputs(checkpoint, inputs=inputs, overwrite=True)  # a run goes on from it
    check_files(output=output, checkpoint=checkpoint)
    _check_start(start, model)
    from goldspan.runners import working

    with working(runner, threads) as worked_by, steps(3, quiet=json) as step:
        step(f"reading {source}")
        crowd = _of_texts(reading.read(source, step.part), source)
        data = _aggregated(crowd, method) if method else _labelled_items(crowd)
        if not soft and data.soft is None:
            _check_possible(data, crowd.tagset.encoding)
        tagger = _make(model, params | {"encoding": crowd.tagset.encoding})
        held_out = _held_out(reading.read(validation)) if validation else None
        step(f"training a {model}" if model != "encoder" else f"fine-tuning {encoder}")
        from goldspan.runners import FileCheckpoint

        around: dict[str, Any] = {"runner": worked_by, "progress": step.round}
        around |= {"start": _load(start), "validation": held_out}
        around |= {"checkpoint": FileCheckpoint(checkpoint)} if checkpoint else {}
        if encoder or vectors:
            _limit_torch(threads)
        interrupted = _fit(tagger, data, around)
        step("writing")
        tagger.save(output)
    facts = _facts_train(tagger, data, held_out)
    if not json:
        _warn_of(tagger, data)
    size = f"{_size(Path(output)) / 1e6:.1f} MB"
    lines = [f"  {name.replace('_', ' ')}: {value}" for name, value in facts.items()]
    found = {"input": source, "output": output, **_counts(tagger, data), **facts}
    print_result(found, [*lines, f"written: {output} ({size})"], as_json=json)
    if interrupted:
        done = f"{facts['epochs']} epochs" if "epochs" in facts else f"{facts.get('steps')} steps"
        warn(f"goldspan: interrupted after {done}; their result was written")
        raise typer.Exit(130)


def _named_output(output: str | None) -> str:
    if output is None:
        raise typer.BadParameter("name the tagger to write: -o ner.goldspan")
    return output


def _params_of(
    model: str,
    chosen: dict[str, Any],  # Parameters of models with features; None where the user named none
    counted: dict[str, int],  # Numbers of such models, which have defaults
    own: dict[str, Any],
    start: str | None,  # A tagger to begin with
) -> dict[str, Any]:
    """Return the parameters of a tagger, and reject options that are for another model."""
    params = {name: value for name, value in chosen.items() if value is not None}
    if model == "encoder":
        differ = {"--min-count": counted["min_count"] > 1, "--hash-bits": counted["hash_bits"]}
        _check_encoder(own["--encoder"], params, {**differ, "--start": start})
        return {"model": own["--encoder"], **_params_of_encoder(own["--param"])}
    _check_not_given(model, own)
    _check_vectors(chosen["vectors"])
    return params | counted


def _limit_torch(threads: int | None) -> None:
    """Let torch use so many threads, if the user says how many."""
    if threads:
        import torch

        torch.set_num_threads(threads)


def _check_vectors(vectors: str | None) -> None:
    """Reject a frozen encoder on a machine without the extra."""
    if vectors:
        from goldspan.tagger.network import check_installed

        check_installed(purpose="--vectors")


def _check_trains_nothing(option: str, others: dict[str, Any]) -> None:
    for name, value in others.items():
        if value:
            raise typer.BadParameter(f"{option} trains nothing: leave out {name}")


def _write_project(
    reading: Reading,
    source: str,
    what: tuple[str, str],
    method: str | None,
    validation: str | None,
    language: str,
    *,
    as_json: bool,
) -> None:
    """Write a folder that another library trains on; `what` is its kind and the folder."""
    kind, folder = what
    check_outputs(folder, inputs=[source, validation], overwrite=False)
    check_files(output=folder)
    import goldspan
    from goldspan.aggregation.projects import FILES, write_project

    with steps(3 if method else 2, quiet=as_json) as step:
        step(f"reading {source}")
        crowd = _of_texts(reading.read(source, step.part), source)
        dev = reading.read(validation) if validation else None
        if method:
            step(f"aggregating with {method}")
            crowd = goldspan.aggregate(crowd, method=method, progress=step.round).as_gold()
        step("writing")
        counts = write_project(crowd, folder, kind, dev=dev, language=language)
    names = dict(zip(("train", "dev"), FILES[kind], strict=True))
    if not as_json and counts["left_out"]:
        warn(f"{counts['left_out']} items without a label for every token were left out")
    lines = [f"  {name}: {counts[part]} items" for part, name in names.items()]
    hint = f"written: {folder} ({Path(folder) / 'README.md'} says how to train on it)"
    print_result({"input": source, "output": folder, **counts}, [*lines, hint], as_json=as_json)


def _of_texts(crowd: Crowd, source: str) -> Crowd:
    """Return a crowd, but reject single labels of items that have names and no text."""
    from goldspan.aggregation.legal import has_words
    from goldspan.errors import InputError

    if not has_words(crowd):
        raise InputError(
            f"{source}: a tagger learns from texts, and these items have only names: add a column "
            "with the texts"
        )
    return crowd


@dataclass(frozen=True, eq=False)
class _Data:
    """Items to learn from; None means that a tag is not known."""

    ids: list[str]
    text: Text
    tags: list[list[str | None]]
    n_in_part: int
    n_left_out: int
    soft: SoftTags | None = None


def _is_tagger(folder: str) -> bool:
    """Return whether a folder is a tagger, which another one may replace."""
    from goldspan.tagger.encoder import FILE

    return (Path(folder) / FILE).is_file()


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _check_not_given(model: str, options: dict[str, Any]) -> None:
    """Reject options that are for encoders."""
    for name, value in options.items():
        if value:
            raise typer.BadParameter(f"{name} is for encoders, and the model is {model}")


def _check_encoder(
    encoder: str | None, params: dict[str, Any], has_features: dict[str, Any]
) -> None:
    """Reject options that are for models with features, and a machine without the extra."""
    from goldspan.tagger.encoder import check_installed

    if not encoder:
        raise typer.BadParameter("--model encoder needs --encoder NAME_OR_FOLDER")
    given = {f"--{name.replace('_', '-')}": value for name, value in params.items()} | has_features
    for name, value in given.items():
        if value:
            raise typer.BadParameter(f"{name} is for models with features, not for an encoder")
    check_installed()


def _params_of_encoder(param: list[str] | None) -> dict[str, Any]:
    known = {}
    for name, text in key_values(param, "NAME=VALUE").items():
        if name in {"model", "encoding", "hard"}:
            raise typer.BadParameter(f"--param {name} cannot be set here")
        known[name] = read_value(text)
    return known


def _aggregated(crowd: Crowd, method: str) -> _Data:
    """Aggregate the answers; return the probabilities of the tags where somebody answered."""
    import numpy as np

    import goldspan
    from goldspan.errors import InputError
    from goldspan.tagger import SoftTags, Text

    result = goldspan.aggregate(crowd, method=method)
    has_answers = np.diff(result.crowd.by_item.bounds) > 0
    if not has_answers.any():
        raise InputError("no item has an answer: leave out --method to learn from gold")
    tokens = np.repeat(has_answers, np.diff(crowd.offsets))
    kept = result.as_gold().select_items(has_answers)
    groups = None if kept.groups is None else [str(name) for name in kept.groups.to_pylist()]
    return _Data(
        kept.item_ids.to_pylist(),
        Text.of(kept.tokens_list, groups),
        kept.tagset.decode(kept.gold_tagged),
        0,
        int((~has_answers).sum()),
        SoftTags(kept.tagset, result.token_probs[tokens]),
    )


def _labelled_items(crowd: Crowd) -> _Data:
    """Return words and tags of the items of which some tag is known."""
    import numpy as np

    from goldspan._arrays import count_in_rows
    from goldspan.errors import InputError
    from goldspan.tagger import Text

    unknown = count_in_rows(crowd.gold_tagged.codes < 0, crowd.offsets)
    useless = (unknown > 0) & (unknown == np.diff(crowd.offsets))
    if useless.all():
        raise InputError("no item has a known tag: give a FILE with gold, or --gold")
    kept = crowd.select_items(~useless) if useless.any() else crowd
    groups = None if kept.groups is None else [str(name) for name in kept.groups.to_pylist()]
    tags = kept.tagset.decode(kept.gold_tagged)
    return _Data(
        kept.item_ids.to_pylist(),
        Text.of(kept.tokens_list, groups),
        tags,
        int(((unknown > 0) & ~useless).sum()),
        int(useless.sum()),
    )


def _check_start(start: str | None, model: str) -> None:
    """Reject a tagger to begin with where none is used."""
    from goldspan.errors import InputError

    if start and model == "hmm":
        raise InputError("--start is for --model crf: an hmm is always refitted")


def _check_possible(data: _Data, encoding: str) -> None:
    """Reject tags that no well-formed sequence has; those of whole items are made well-formed."""
    if not data.n_in_part:
        return
    import numpy as np

    from goldspan.chains.decoding import first_without_path
    from goldspan.errors import InputError
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
            "fix them, or pass --soft to allow any sequence"
        )


def _held_out(crowd: Crowd) -> tuple[Text, list[list[str | None]]]:
    """Return words and tags of the items whose tags are all known."""
    import numpy as np

    from goldspan.errors import InputError

    data = _labelled_items(crowd)
    whole = np.array([None not in item for item in data.tags])
    if not whole.any():
        raise InputError("there is no item to validate on: all tags of such an item must be known")
    items = np.flatnonzero(whole)
    return data.text.select(items), [data.tags[n] for n in items]


def _fit(tagger: Tagger, data: _Data, around: dict[str, Any]) -> bool:
    """Train, and say whether Ctrl-C ended it with something learnt."""
    try:
        tagger.fit(data.text, data.tags if data.soft is None else data.soft, **around)
    except KeyboardInterrupt:
        if not tagger.is_fitted:
            raise
        return True
    return False


def _warn_of(tagger: Tagger, data: _Data) -> None:
    """Tell of items and tags that were not learned from as they are."""
    if data.n_left_out:
        warn(f"{data.n_left_out} items without any tag were left out")
    if data.n_in_part:
        warn(f"{data.n_in_part} items are tagged in part: what is known of them counts")
    if tagger.n_repaired_:
        warn(f"{tagger.n_repaired_} tags were made well-formed (--soft trains on them as they are)")


def _counts(tagger: Tagger, data: _Data) -> dict[str, int]:
    return {
        "items_left_out": data.n_left_out,
        "items_in_part": data.n_in_part,
        "tags_made_well_formed": tagger.n_repaired_,
    }


def _make(model: str, params: dict[str, Any]) -> Tagger:
    from goldspan.errors import UnknownNameError
    from goldspan.tagger.load import KINDS

    if model not in KINDS:
        raise UnknownNameError("model", model, KINDS)
    return KINDS[model]().set_params(**params)


def _load(path: str | None) -> Tagger | None:
    if path is None:
        return None
    from goldspan.tagger import load_tagger

    return load_tagger(path)


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
_ENDINGS |= {".bio": "conll", ".iob": "conll"}
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
        "Format of the output: conll or jsonl; by default its ending decides."
    ),
    tokens: str | None = option(
        "How texts are split: fine, space or words; by default like the tagger's training texts."
    ),
    vectors: str | None = option(
        "Where the encoder is that the tagger was trained with (train --vectors), if not where it"
        " was then.",
        metavar="NAME_OR_FOLDER",
    ),
    max_decompressed: MaxDecompressed = None,
    json: AsJson = False,
) -> None:
    """Tag a file of any size; only a few thousand tokens are in memory at a time.

    In plain text a line is an item, and a blank line ends a document. CoNLL has a token in the
    first column; JSON lines have `tokens` or `text`, and their other fields are kept. Tables with a
    column of texts (.csv, .parquet) are read as a whole. The output has the probability of every
    tag (CoNLL) or span (JSON lines).

    Examples:

      goldspan tag ner.goldspan text.txt

      goldspan tag ner.goldspan news.jsonl.gz -o tagged.jsonl.gz

      cat text.txt | goldspan tag ner.goldspan - --to-format jsonl
    """
    check_outputs(output, inputs=[source, tagger], overwrite=overwrite)
    if json and output in {None, "-"}:
        raise typer.BadParameter("--json describes what was written: name a file, -o tagged.jsonl")
    from goldspan.crowd.atomic import write_text
    from goldspan.errors import UnknownNameError
    from goldspan.spans.text import RULES
    from goldspan.tagger import load_tagger
    from goldspan.tagger.streams import READERS, conll_lines, json_lines, label, read_items

    writers = {"conll": conll_lines, "jsonl": json_lines}
    _check_ending(output, to_format)
    given = format or _by_ending(source) or "text"
    if given not in READERS:
        raise UnknownNameError("format of texts", given, READERS)
    wanted = to_format or _by_ending(output) or ("jsonl" if given == "jsonl" else "conll")
    if wanted not in writers:
        raise UnknownNameError("output format", wanted, writers)
    model = load_tagger(tagger, vectors=vectors)
    if tokens is not None and tokens not in RULES:
        raise UnknownNameError("rule for tokens", tokens, RULES)
    count, to_stdout = _Count(), output in {None, "-"}
    shown = steps(1, quiet=json or (to_stdout and sys.stdout.isatty()))
    with shown as step, _opened(source) as (file, position):
        step(f"tagging {source}")
        is_free = given == "jsonl" or format == "text"
        checked = file if is_free else cast("TextIO", _NoTable(file, source))
        rule = tokens or model.tokens_
        is_whole = format is None and _is_pool(source)
        whole = _of_pool(source, rule, max_decompressed) if is_whole else None
        found = label(model, whole or read_items(checked, given, source, rule))
        chunks = writers[wanted](count.of(found, lambda: step.part(*position())))
        if to_stdout:
            for chunk in chunks:
                say(chunk.removesuffix("\n"))
            return
        write_text(str(output), chunks)
    size = f"{count.items} items, {count.tokens} tokens, {count.spans} spans"
    facts = {"input": source, "output": output, **vars(count)}
    print_result(facts, [f"written: {output} ({size})"], as_json=json)


def _is_pool(source: str) -> bool:
    """Return whether a file is read as a whole, as a pool is: a table, JSON, or a rejected one."""
    return Path(source.removesuffix(".gz")).suffix.lower() in _WHOLE


def _of_pool(source: str, rule: str, max_decompressed: str | None) -> Iterator[Item] | None:
    """Read the texts of a table or of JSON; None if it is something else, to be read by lines."""
    from goldspan.crowd.source import open_source
    from goldspan.selection.reading import CROWD, pool_format, read_pool

    file = open_source(source, max_decompressed=max_decompressed)
    kind = pool_format(file)
    return None if kind == CROWD else _items(read_pool(file, kind, otherwise=rule))


def _items(read: PoolFile) -> Iterator[Item]:
    from goldspan.tagger.streams import Item

    pool = read.pool
    for n, name in enumerate(pool.item_ids.to_pylist()):
        words, text = pool.words(n), str(pool.given[n])
        starts = pool.starts_of(n)
        bounds = [(a, a + len(w)) for a, w in zip(starts, words, strict=True)]
        yield Item(words, name, n, text, bounds, dict(read.fields[n]))


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
    from goldspan.errors import Fault, FormatError

    is_table = "\t" in line or Path(name.removesuffix(".gz")).suffix.lower() == ".csv"
    header = Source(name, line.encode())
    names = header_names(header)
    if is_table and names[0].lower() not in TOKEN and (wide.sniff(header) or long.sniff(header)):
        message = (
            f"this is the header of a table of answers ({', '.join(names[:6])}), not of a text: "
            "`goldspan convert FILE -o words.conll` writes one with the words in the first column "
            "(without gold `goldspan aggregate FILE -o words.conll`)"
        )
        raise FormatError([Fault(message, name, number, kind="format")])


def _check_ending(output: str | None, to_format: str | None) -> None:
    """Reject a name whose ending says nothing, before any work is done."""
    from goldspan.errors import InputError

    if output not in {None, "-"} and not to_format and _by_ending(output) is None:
        raise InputError(
            f"{output}: the name must end in {', '.join(_ENDINGS)} (also .gz), or pass --to-format"
        )


class _Count:
    """Counts what passes."""

    def __init__(self) -> None:
        self.items = self.tokens = self.spans = 0

    def of(self, labelled: Iterator[Labelled], passed: Callable[[], None]) -> Iterator[Labelled]:
        for one in labelled:
            passed()
            self.items += 1
            self.tokens += len(one.tags)
            self.spans += len(one.spans)
            yield one


def _by_ending(name: str | None) -> str | None:
    if name is None:
        return None
    return _ENDINGS.get(Path(name.removesuffix(".gz")).suffix.lower())


@contextmanager
def _opened(source: str) -> Iterator[tuple[TextIO, Callable[[], tuple[int, int]]]]:
    """Open a file or standard input as UTF-8, with or without a byte order mark.

    Yields it with a function that returns how many bytes were read, and of how many; of 0 where the
    end is not known.
    """
    from goldspan.errors import InputError

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
    source: str = argument("A folder of `goldspan train --encoder`.", "TAGGER"),
    output: str = option("The folder to write.", "--output", "-o", default=...),
    json: AsJson = False,
) -> None:
    """Write an encoder as a folder that tags without torch, by ONNX Runtime.

    `goldspan tag` takes the folder as any other tagger; it needs the extra onnx.

    Examples:

      goldspan tagger export ner -o ner-onnx
    """
    from goldspan.errors import InputError
    from goldspan.tagger import Encoder, load_tagger

    check_outputs(output, inputs=[source], overwrite=False)
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
    from goldspan.errors import InputError, UnknownNameError
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
    params.pop("gazetteers")
    templates = params.pop("templates")
    return {
        "model": model.name,
        "encoding": model.codec_.encoding,
        "tags": list(model.codec_.tags),
        "features": model.features_.n_features,
        "templates": [templates] if isinstance(templates, str) else list(templates),
        "gazetteers": sorted(getattr(model.features_, "gazetteers", {})),
        "documents": model.documents_,
        **params,
    }


def _largest(model: FeatureTagger, tag: int, top: int) -> list[tuple[str, float]]:
    """Return the features that speak most for a tag, with their weights.

    Weights that differ by rounding are equal: features of the same tokens then keep their order.
    """
    import numpy as np

    state = model.weights_.state
    own: Floats = state[:, tag] - (state.mean(axis=1) if model.name == "hmm" else 0.0)
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
