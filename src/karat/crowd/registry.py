"""The formats by name. A new format is one file in `formats/` and one line here.

A format module has:

* `SUMMARY: str` - one line for help texts;
* `SUFFIXES: tuple[str, ...]` - endings of file names that suggest it, "" for a folder;
* `sniff(source: Source) -> bool` - whether the content looks like it;
* `read(source: Source, options: ReadOptions) -> Crowd`;
* `write(crowd: Crowd, path: Path) -> None`, or no such name if it is only read;
* `cannot_hold(crowd: Crowd) -> list[str]` - what of this crowd would be lost in writing.

Other packages add formats under the entry-point group "karat.formats".
"""

from __future__ import annotations

FORMATS: dict[str, str] = {
    # In the order in which they are tried on content: the most particular first.
    "parquet": "karat.crowd.formats.parquet",
    "folder": "karat.crowd.formats.folder",
    "brat": "karat.crowd.formats.brat",
    "label-studio": "karat.crowd.formats.label_studio",
    "prodigy": "karat.crowd.formats.prodigy",
    "doccano": "karat.crowd.formats.doccano",
    "spans": "karat.crowd.formats.span_jsonl",
    "mturk": "karat.crowd.formats.mturk",
    "wide": "karat.crowd.formats.wide",
    "long": "karat.crowd.formats.long",
    "conll": "karat.crowd.formats.conll",
}
