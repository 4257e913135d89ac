"""The formats by name. A new format is one file in `formats/` and one line here.

A format module has:

* `SUMMARY: str` - one line for help texts;
* `SUFFIXES: tuple[str, ...]` - endings of file names that suggest it, "" for a folder;
* `sniff(source: Source) -> bool` - whether the content looks like it;
* `read(source: Source, options: ReadOptions) -> Crowd`;
* `write(crowd: Crowd, path: Path) -> None`, or no such name if it is only read.

What a format cannot hold is found by reading back what was written (`losses.py`). A module of
another package that cannot read may have `cannot_hold(crowd: Crowd) -> list[str]` to say it.

Other packages add formats under the entry-point group "goldspan.formats".
"""

from __future__ import annotations

FORMATS: dict[str, str] = {
    # In the order in which they are tried on content: the most particular first.
    "parquet": "goldspan.crowd.formats.parquet",
    "folder": "goldspan.crowd.formats.folder",
    "brat": "goldspan.crowd.formats.brat",
    "label-studio": "goldspan.crowd.formats.label_studio",
    "prodigy": "goldspan.crowd.formats.prodigy",
    "doccano": "goldspan.crowd.formats.doccano",
    "tag-columns": "goldspan.crowd.formats.tag_columns",
    "spans": "goldspan.crowd.formats.span_jsonl",
    "mturk": "goldspan.crowd.formats.mturk",
    "span-table": "goldspan.crowd.formats.span_table",
    "wide": "goldspan.crowd.formats.wide",
    "long": "goldspan.crowd.formats.long",
    "conll": "goldspan.crowd.formats.conll",
}
