"""`goldspan tag`: label text with a trained tagger, however long it is."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, cast

import typer

from goldspan.cli import reading as r
from goldspan.cli.output import Overwrite, check_outputs, say
from goldspan.cli.wording import in_options

if TYPE_CHECKING:
    from goldspan.selection.reading import PoolFile
    from goldspan.tagger.streams import Item, Labelled

_ENDINGS = {".jsonl": "jsonl", ".conll": "conll", ".conll03": "conll", ".tsv": "conll"}
_ENDINGS |= {".bio": "conll", ".iob": "conll"}
_WHOLE = {
    ".csv", ".parquet", ".json", ".xlsx", ".xls", ".ods", ".pdf", ".doc", ".docx", ".odt", ".rtf",
}  # fmt: skip


def tag(
    tagger: Annotated[str, typer.Argument(metavar="TAGGER", help="A file of `goldspan train`.")],
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="Text, CoNLL or .jsonl (.gz too), or - for stdin.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Where to write (.gz too); stdout by default."),
    ] = None,
    overwrite: Overwrite = False,
    format: Annotated[  # noqa: A002 - the word users know
        str | None,
        typer.Option(
            "--format", "-f", help="Of the input: text, conll or jsonl; by its ending by default."
        ),
    ] = None,
    to_format: Annotated[
        str | None,
        typer.Option(help="Of the output: conll or jsonl; by its ending by default."),
    ] = None,
    tokens: Annotated[
        str | None,
        typer.Option(
            help="How texts are cut: fine, space or words; by default as the tagger's training "
            "texts were.",
            show_default=False,
        ),
    ] = None,
    max_decompressed: r.MaxDecompressed = None,
) -> None:
    """Tag a file of any size; only a few thousand tokens are in memory at a time.

    In plain text a line is an item, and a blank line ends a document. CoNLL has a token in the
    first column; JSON lines have `tokens` or `text`, and their other fields are kept. Tables with a
    column of texts (.csv, .parquet) are read as a whole. The output
    has every tag's probability (CoNLL) or every span's (JSON lines).

    Examples:

      goldspan tag ner.goldspan text.txt

      goldspan tag ner.goldspan news.jsonl.gz -o tagged.jsonl.gz

      cat text.txt | goldspan tag ner.goldspan - --to-format jsonl
    """
    check_outputs(output, inputs=[source, tagger], overwrite=overwrite)
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
    model = load_tagger(tagger)
    if tokens is not None and tokens not in RULES:
        raise UnknownNameError("rule for tokens", tokens, RULES)
    count = _Count()
    with _opened(source) as file:
        is_free = given == "jsonl" or format == "text"
        checked = file if is_free else cast("TextIO", _NoTable(file, source))
        rule = tokens or model.tokens_
        is_whole = format is None and _is_pool(source)
        whole = _of_pool(source, rule, max_decompressed) if is_whole else None
        found = label(model, whole or read_items(checked, given, source, rule))
        chunks = writers[wanted](count.of(found))
        if output in {None, "-"}:
            for chunk in chunks:
                say(chunk.removesuffix("\n"))
            return
        write_text(str(output), chunks)
    say(f"written: {output} ({count.items} items, {count.tokens} tokens, {count.spans} spans)")


def _is_pool(source: str) -> bool:
    """Return whether a file is read as a whole, as a pool is: a table, JSON, or what is refused."""
    return Path(source.removesuffix(".gz")).suffix.lower() in _WHOLE


def _of_pool(source: str, rule: str, max_decompressed: str | None) -> Iterator[Item] | None:
    """Read the texts of a table or of JSON; None if it is something else, to be read by lines.

    Raises:
        InputError: It is no such file, or holds answers.
    """
    from goldspan.crowd.source import open_source
    from goldspan.selection.reading import CROWD, pool_format, read_pool

    with in_options(r.OPTIONS):
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
    """Reject the header of a wide or a long table, unless its first column holds the words.

    Raises:
        InputError: It is one.
    """
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
    """Reject a name whose ending says nothing, before any work is done.

    Raises:
        InputError: It is such a name, and no format is given.
    """
    from goldspan.errors import InputError

    if output not in {None, "-"} and not to_format and _by_ending(output) is None:
        raise InputError(
            f"{output}: the name must end in {', '.join(_ENDINGS)} (also .gz), or pass --to-format"
        )


class _Count:
    """Counts what passes."""

    def __init__(self) -> None:
        self.items = self.tokens = self.spans = 0

    def of(self, labelled: Iterator[Labelled]) -> Iterator[Labelled]:
        for one in labelled:
            self.items += 1
            self.tokens += len(one.tags)
            self.spans += len(one.spans)
            yield one


def _by_ending(name: str | None) -> str | None:
    if name is None:
        return None
    return _ENDINGS.get(Path(name.removesuffix(".gz")).suffix.lower())


@contextmanager
def _opened(source: str) -> Iterator[TextIO]:
    """Open a file or standard input as UTF-8, with or without a byte order mark."""
    from goldspan.errors import InputError

    if source == "-":
        yield io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig")
        return
    opener = gzip.open if source.endswith(".gz") else open
    try:
        raw = opener(source, "rb")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}") from None
    with raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as file:
        yield file
