"""`goldspan init`: a plan for people's own texts, or the example that comes with the package."""

from __future__ import annotations

import json as json_text
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from goldspan.cli.options import AsJson, Overwrite, argument, flag, option
from goldspan.cli.output import (
    check_files,
    check_outputs,
    check_part,
    listed,
    print_result,
)
from goldspan.crowd.atomic import NewPlaces, write_text
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.crowd import Crowd

EXAMPLE = (
    "README.md", "campaign.toml", "crowd.tsv", "instructions.md", "newsroom.txt", "reviews.csv",
    "serve.toml", "value.toml",
)  # fmt: skip
"""The files of the example; pyproject.toml puts them into the wheel."""
EXAMPLE_FOLDER = "goldspan-example"
ANNOTATORS, OVERLAP = 3, 2
"""Where neither is given; with fewer annotators the overlap is as many."""
MOST_OPEN = 1000
"""Items that are open at a time: annotators need not wait for each other within them."""
ALONE = (
    "[aggregate]",
    'method = "mv-token" # one answer per item: the labels are those that the annotator gave',
    "",
)
"""With one answer per item there is nothing to weigh: a model of annotators would guess."""
BRIEF = 60
"""Characters of an item that are shown."""


class Kind(StrEnum):
    """What annotators do."""

    SPANS = "spans"
    SINGLE = "single"


@dataclass(frozen=True)
class Campaign:
    """The facts that a plan is written from."""

    file: str  # The texts, as the plan names them
    labels: list[str]  # What annotators choose from
    kind: Kind  # Whether they mark spans or give one label to each item
    columns: dict[str, str]  # Names of columns by role, "text" and "id"
    n_items: int
    annotators: list[str]
    overlap: int  # Answers per item


def init(
    source: str = argument(
        "The texts: a table (.csv, .tsv, .parquet), a .txt or .jsonl file, or a folder of"
        " .txt files. With --example: the folder to write to.",
        "FILE",
        default="",
    ),
    labels: list[str] | None = option(
        "The labels that annotators choose from, such as PRODUCT,COMPANY.", metavar="NAMES"
    ),
    kind: Kind = option(
        "What annotators do: mark parts of a text (spans), or give it one label (single).",
        default=Kind.SPANS,
    ),
    text_column: str | None = option(
        "The column with the texts, if goldspan cannot tell which it is.", metavar="NAME"
    ),
    id_column: str | None = option("The column with the ids of the texts.", metavar="NAME"),
    annotators: str | None = option(
        "Number of annotators, or their names: ann,ben,cleo. By default 3.", metavar="N|NAMES"
    ),
    overlap: int | None = option(
        "Answers per text, each by a different annotator. By default 2.", min=1
    ),
    out: str = option("The file to write the plan to.", default="plan.toml"),
    overwrite: Overwrite = False,
    example: bool = flag("Write a complete example to a folder.", "--example"),
    json: AsJson = False,
) -> None:
    """Write a plan for labelling your own texts, or an example, and print the next steps.

    Annotators work in their browsers and are not paid. The plan is a short text file with comments:
    edit it before the campaign begins.

    Examples:

      goldspan init reviews.csv --labels PRODUCT,COMPANY

      goldspan init --example
    """
    if example:
        _write_example(Path(source or EXAMPLE_FOLDER), overwrite=overwrite, as_json=json)
        return
    names = listed(labels, "--labels") or []
    if not source or not names:
        missing = "FILE" if not source else "--labels"
        raise typer.BadParameter(
            f"{missing} is missing, as in: goldspan init reviews.csv --labels PRODUCT,COMPANY"
        )
    people, each = _people(annotators, overlap)
    path = Path(out)
    check_files(out=out)
    check_outputs(out, inputs=[source], overwrite=overwrite)
    check_part("plan")
    from goldspan.campaign import read_inputs, read_plan
    from goldspan.selection.files import read_pool

    read = read_pool(source, text=text_column, id=id_column)
    found = read.import_report.columns
    columns = {
        role: name
        for role, name in (("text", found.get("text")), ("id", found.get("item")))
        if name
    }
    file = Path(os.path.relpath(source, path.parent)).as_posix()
    campaign = Campaign(file, names, kind, columns, read.n_items, people, each)
    text = plan_text(campaign, path)
    # What `goldspan serve` would reject is rejected before anything is written.
    read_inputs(read_plan(tomllib.loads(text)), path.parent)
    write_text(path, [text])
    serve = shlex.join(["goldspan", "serve", out])
    links = shlex.join(["goldspan", "invite", out, "--workers", "dora"])
    facts = {
        "plan": out, "source": source, "items": read.n_items, "first": _first(read),
        "columns": _every_column(read), "text": columns.get("text"), "id": columns.get("id"),
        "kind": kind, "labels": names, "annotators": people, "overlap": each,
        "next": [serve, links],
    }  # fmt: skip
    does = f"{'mark' if kind is Kind.SPANS else 'choose one of'} {', '.join(names)}"
    lines = [
        *_told(source, read, columns),
        f"written: {out} ({', '.join(people)} {does}; {counted(each, 'answer')} per item)",
        "",
        "1. Start the server. It prints your own link, and one for each annotator:",
        f"   {serve}",
        "2. For another annotator, in a second terminal while the server runs:",
        f"   {links}",
    ]
    print_result(facts, lines, as_json=json)


def plan_text(campaign: Campaign, path: Path) -> str:
    """Return the plan as TOML with comments."""
    check = shlex.join(["goldspan", "plan", "check", str(path)])
    spans, alone = campaign.kind is Kind.SPANS, campaign.overlap == 1
    task = (
        "types", "types of spans that annotators mark in a text"
    ) if spans else ("labels", "of which annotators choose one for each text")  # fmt: skip
    lines = [
        f"# The plan of a labelling campaign. What it will do: {check}",
        f"name = {_toml(_name(campaign.file))}",
        "",
        "[task]",
        f"{task[0]} = {_toml(campaign.labels)} # {task[1]}",
        "",
        "[pool]",
        f"file = {_toml(campaign.file)} # {counted(campaign.n_items, 'item')}",
        *(f"{role} = {_toml(name)} # the column of it" for role, name in campaign.columns.items()),
        "",
        "[crowd]",
        'source = "web" # people in their browsers',
        f"annotators = {_toml(campaign.annotators)} # `goldspan serve` prints a link for each",
        "",
        "[redundancy]",
        f"overlap = {campaign.overlap} # answers per item, each by another annotator",
        *(['stop = "fixed(1)"'] if alone else []),
        "",
        *(ALONE if alone else []),
        "[select]",
        'by = "random" # or "coverage, then mnlp, 10% random": a model picks what teaches it most',
        f"batch = {min(campaign.n_items, MOST_OPEN)} # items that are open at a time",
        "",
        "# [page]",
        '# instructions = "instructions.md" # what annotators are told: what to label, examples',
    ]
    return "\n".join(lines) + "\n"


def example_folder() -> Path:
    """Return where the example lies: in the package, or in the checkout that it is run from."""
    import goldspan

    package = Path(goldspan.__file__).parent
    places = (package / "example", package.parents[1] / "examples")
    return next((one for one in places if (one / EXAMPLE[0]).is_file()), places[0])


def _write_example(folder: Path, *, overwrite: bool, as_json: bool) -> None:
    files = {folder / name: example_folder() / name for name in EXAMPLE}
    with NewPlaces() as new:
        new.folder(folder)
        check_outputs(*map(str, files), overwrite=overwrite)
        new.expect(*files)
        for file, source in files.items():
            write_text(file, [source.read_text(encoding="utf-8")])
    out = str(folder / "out")
    commands = [
        shlex.join(["goldspan", "run", str(folder / "campaign.toml"), "--out", out]),
        shlex.join(["goldspan", "init", str(folder / "reviews.csv"), "--labels",
                    "PRODUCT,COMPANY", "--out", str(folder / "reviews.toml")]),
    ]  # fmt: skip
    facts = {"folder": str(folder), "files": list(EXAMPLE), "next": commands}
    lines = [
        f"written: {', '.join(EXAMPLE)} in {folder}",
        "a whole campaign with simulated annotators:",
        f"   {commands[0]}",
        "a plan to label texts yourself:",
        f"   {commands[1]}",
    ]
    print_result(facts, lines, as_json=as_json)


def _people(annotators: str | None, overlap: int | None) -> tuple[list[str], int]:
    """Return the names of the annotators, and how many answers an item gets."""
    given = (annotators or str(max(ANNOTATORS, overlap or 0))).strip()
    if re.fullmatch(r"[0-9]+", given):
        n = int(given)
        if not 1 <= n <= 1000:
            raise typer.BadParameter(f"--annotators: from 1 to 1000 people, not {n}")
        names = [f"annotator-{k}" for k in range(1, n + 1)]
    else:
        names = [name.strip() for name in listed([given], "--annotators") or []]
    each = min(OVERLAP, len(names)) if overlap is None else overlap
    if each > len(names):
        raise typer.BadParameter(
            f"--overlap {each}: the answers to a text come from different annotators, and there "
            f"{'is 1' if len(names) == 1 else f'are {len(names)}'}: --annotators {each}, or a "
            "smaller overlap"
        )
    return names, each


def _every_column(read: Crowd) -> list[str]:
    other = [] if read.attributes is None else read.attributes.column_names
    return list(dict.fromkeys([*read.import_report.columns.values(), *other]))


def _first(read: Crowd) -> str:
    text = None if read.texts is None else read.texts[0].as_py()
    text = text or " ".join(read.tokens[0].as_py())
    plain = " ".join(text.split())
    return plain if len(plain) <= BRIEF else f"{plain[: BRIEF - 1]}…"


def _told(source: str, read: Crowd, columns: dict[str, str]) -> Iterator[str]:
    """Return what was found."""
    n = read.n_items
    where = f" in the column {columns['text']!r}" if "text" in columns else ""
    every = _every_column(read)
    others = f" (columns: {', '.join(every)})" if every else ""
    yield f"{source}: {counted(n, 'item')}{where}{others}"
    yield f"first item: {_first(read)}"
    yield from read.import_report.notes


def _name(file: str) -> str:
    """Make the name of a campaign from that of its file."""
    stem = Path(file).name.partition(".")[0]
    usable = re.sub(r"[^\w .-]+", "-", stem).strip(" .-_")[:100]
    return usable or "campaign"


def _toml(value: Any) -> str:
    """Write a string or a list of strings as TOML, of which JSON is nearly a part."""
    return json_text.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
