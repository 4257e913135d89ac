"""The formats by name.

How to add a format: write one module in `formats/` and one line in `FORMATS`. The module has

* `sniff(source: Source) -> bool` - whether the content looks like this format;
* `read(source: Source, options: ReadOptions) -> Crowd`; a kind of table may find a DataFrame or an
  Arrow table in `source.table`;
* `write(crowd: Crowd, path: Path) -> None`, unless the format can only be read. With a parameter
  `text`, `raw_csv`, `predicted` or `soft` it takes those options of `write_crowd`;
* `check() -> None` if it needs an extra: it raises `MissingExtraError` before any work is done;
* `layers(source: Source, options: ReadOptions) -> list[str]` if a file may answer several
  questions: their names, as `options.columns["label"]` takes them;
* `TAKES_TEXTS = True` if `read` takes tokens from `options.texts`, which is refused otherwise.

Tables are built on `grid.py`, `formats/columns.py` and `CrowdBuilder`; records with spans on
`formats/json_records.py`, `formats/span_crowd.py` and `formats/span_exports.py`, for example
`formats/doccano.py`; folders with a file per document and annotator as `formats/webanno.py`.

What a format cannot hold needs no code: `write_crowd` reads the file back and compares
(`losses.py`). Only a module of another package that cannot read may have
`cannot_hold(crowd: Crowd) -> list[str]`. Other packages add formats under the entry-point group
"goldspan.formats", name = module. This module imports no format, so that help texts stay fast.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple

from goldspan.errors import InputError, UnknownNameError
from goldspan.plugins import plugins


class Format(NamedTuple):
    """What is known of a format without importing it."""

    module: str  # Where `sniff`, `read` and `write` are: a module, or "module:object"
    summary: str  # One line for help texts
    kind: Literal["file", "table", "records"] = "file"  # "file", also a folder
    endings: tuple[str, ...] = ()  # Of file names that are written in this format by default
    # Whether items that nobody labelled are read without `unlabelled="keep"`
    holds_pools: bool = False
    # What to do about a file without labels
    hint: str = "export the annotations too, not the texts alone"
    extra: str = ""  # The extra of goldspan that it needs, "" if none


_IN = "goldspan.crowd.formats"
FORMATS: dict[str, Format] = {
    # In the order in which they are tried on content: the most particular first.
    "parquet": Format(
        f"{_IN}.parquet",
        "compact columns; goldspan's own layout, or any table of labels, spans or tags",
        endings=(".parquet",),
        holds_pools=True,
    ),
    "cleanlab": Format(
        f"{_IN}.cleanlab",
        "cleanlab's inputs as .npz: labels, pred_probs, labels_multiannotator",
        endings=(".npz",),
    ),
    "datasets": Format(
        f"{_IN}.datasets",
        "Hugging Face: the folder of a DatasetDict, or .parquet with ClassLabel features",
    ),
    "webanno": Format(
        f"{_IN}.webanno",
        "WebAnno TSV 3.3 (INCEpTION): a folder with a file per document and annotator, or one file",
    ),
    "xmi": Format(
        f"{_IN}.cas:XMI",
        "UIMA CAS as XMI (INCEpTION, DKPro): a folder with a file per document and annotator",
        extra="uima",
    ),
    "cas-json": Format(
        f"{_IN}.cas:JSON",
        "UIMA CAS as JSON: a folder with a file per document and annotator",
        extra="uima",
    ),
    "docbin": Format(
        f"{_IN}.docbin",
        "spaCy's DocBin: entities, categories and span groups with confidences",
        endings=(".spacy",),
        extra="spacy",
    ),
    "folder": Format(
        f"{_IN}.folder",
        "one CoNLL file per worker and document, gold beside them (a folder or a .zip)",
        endings=("",),
    ),
    "brat": Format(
        f"{_IN}.brat", "brat's folders of .txt and .ann files, one folder per annotator"
    ),
    "mturk": Format(f"{_IN}.mturk", "Mechanical Turk's results of a batch (CSV); read only"),
    "toloka": Format(
        f"{_IN}.toloka", "Toloka's assignments or aggregated answers (TSV); read only", "table"
    ),
    "appen": Format(
        f"{_IN}.appen", "Appen's (Figure Eight's) reports (CSV, JSON); read only", "table"
    ),
    "sagemaker": Format(
        f"{_IN}.sagemaker",
        "SageMaker Ground Truth: manifests, consolidation requests, workers' responses; read only",
        "records",
    ),
    "lewidi": Format(
        f"{_IN}.lewidi",
        "LeWiDi's JSON (learning with disagreements): everybody's single labels of texts",
    ),
    "label-studio": Format(
        f"{_IN}.label_studio",
        "Label Studio's JSON export (or JSON-MIN): spans of labels, or single choices",
        "records",
        endings=(".json",),
        hint="export completed annotations, or tasks with predictions of a model",
    ),
    "prodigy": Format(
        f"{_IN}.prodigy",
        "Prodigy's JSONL (db-out): spans, choices or labels of accepted tasks",
        "records",
    ),
    "argilla": Format(
        f"{_IN}.argilla",
        "Argilla's records (2.x, 1.x) as JSON: spans or single labels; read only",
        "records",
    ),
    "potato": Format(
        f"{_IN}.potato",
        "Potato's output folder, a folder per annotator: spans or single labels; read only",
        "records",
    ),
    "spacy-json": Format(
        f"{_IN}.spacy_json",
        "spaCy's training data as JSON: texts with entities or categories (gold only)",
        "records",
    ),
    "gliner": Format(
        f"{_IN}.gliner",
        "GLiNER's JSON for fine-tuning: tokens with gold spans (gold only)",
        "records",
    ),
    "doccano": Format(
        f"{_IN}.doccano",
        "doccano's JSONL exports, one file per annotator or one for all",
        "records",
    ),
    "tag-columns": Format(
        f"{_IN}.tag_columns",
        "a row per item: tokens, and a column of tags per annotator (Parquet, Dataset; read only)",
        "table",
    ),
    "layers": Format(
        f"{_IN}.layered",
        "JSON lines of `aggregate --layer`: the labels of several questions (gold only; read only)",
        "records",
    ),
    "spans": Format(
        f"{_IN}.span_jsonl",
        "goldspan's own JSON lines: texts or tokens with every worker's spans; holds everything",
        "records",
        endings=(".jsonl",),
        holds_pools=True,
    ),
    "json-labels": Format(
        f"{_IN}.json_labels",
        "JSON of other tools: a text, and a list of its spans or of its annotators; read only",
        "records",
    ),
    "span-table": Format(
        f"{_IN}.span_table",
        "a table of spans: item, text, start, end, label, worker, confidence",
        "table",
    ),
    "wide": Format(
        f"{_IN}.wide",
        "one row per token, one column per worker",
        "table",
        endings=(".tsv",),
        hint="name the columns of the workers with workers=[…] (--workers)",
    ),
    "long": Format(
        f"{_IN}.long",
        "one row per answer: item, worker, label (and token for sequences)",
        "table",
        endings=(".csv",),
        hint="name the columns with columns={'worker': …, 'label': …} (--columns)",
    ),
    "mace": Format(
        f"{_IN}.mace", "MACE's matrix of single labels: a line per item, a column per annotator"
    ),
    "conll": Format(
        f"{_IN}.conll",
        "one token per line with its tag, a blank line between items (gold only)",
        endings=(".conll",),
    ),
    "texts": Format(
        f"{_IN}.texts",
        "texts to label: .txt, or a column of a table or of JSON (no answers; read only)",
        "table",
        holds_pools=True,
    ),
}


def formats() -> list[str]:
    """Return the names of all formats, those of other packages last."""
    return [*FORMATS, *plugin_formats()]


def plugin_formats() -> list[str]:
    """Return the names of the formats of other packages; a name of goldspan's own stays its own."""
    return [name for name in plugins("goldspan.formats") if name not in FORMATS]


def of_kind(kind: str) -> list[str]:
    """Return the formats of a kind, in the order in which they are tried on content."""
    return [name for name, one in FORMATS.items() if one.kind == kind]


def get_format(name: str) -> Any:
    """Import the module of a format, or what stands for one."""
    if name in FORMATS:
        return resolve_name(FORMATS[name].module)
    if name not in plugins("goldspan.formats"):
        raise UnknownNameError("format", name, formats())
    return resolve_name(plugins("goldspan.formats")[name])


def get_writer(name: str) -> Any:
    """Import the module of a format that can be written."""
    module = get_format(name)
    if not hasattr(module, "write"):
        raise InputError(f"format {name!r} can only be read")
    return module
