"""Scores of methods that README and guides quote stand in a table of a results page."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest


class Cell(NamedTuple):
    """A cell of a results page: the beginning of the table's caption, its row, its column."""

    page: str
    caption: str
    row: tuple[str, ...]
    column: str


SPANS = "Span F1 by source and crowd"
SINGLE = "Single labels: means"


def span(method: str, crowd: str = "mean") -> Cell:
    return Cell("results-purity", SPANS, (crowd,), method)


def mean(method: str) -> Cell:
    return Cell("results-purity", SINGLE, (method,), "score")


def pico(method: str) -> Cell:
    return span(method, "pico")


def paper(method: str) -> Cell:
    return Cell("results-bsc", "crowd_6056", (method, "test"), "F1")


DEALS = Cell("results-bsc", "crowd_6056: bsc-seq+crf, 5 deals", ("test",), "F1, mean")
OUT, IN = "mv-token, ties to O", "mv-token, ties to spans"
VOTES = "mv-token (ties inside)"
QUOTES: list[tuple[str, str, list[Cell]]] = [
    (
        "README.md",
        "has a mean F1 of _, the best fixed method _, majority vote _ or _;",
        [*map(span, ("auto", "bsc-seq+words", "mv-token (ties outside)", VOTES))],
    ),
    (
        "README.md",
        "it gets _ % right, a vote _ %",
        [*map(mean, ("auto", "mv-token"))],
    ),
    (
        "docs/methods.md",
        (
            "| `auto` | `bsc-seq+words` | `mace` | `bsc-seq+crf` | `ds` | `bsc-cm` | votes, ties "
            "to spans | `bsc-seq` | |---:|---:|---:|---:|---:|---:|---:|---:| "
            "| _ | _ | _ | _ | _ | _ | _ | _ |"
        ),
        [
            *map(pico, ("auto", "bsc-seq+words", "mace", "bsc-seq+crf", "ds", "bsc-cm", VOTES)),
            pico("bsc-seq"),
        ],
    ),
    (
        "docs/methods.md",
        (
            "`bsc-seq+crf` _, `auto` _, `bsc-seq+words` _ (published BSC-seq 77.4), `ds` _ (74.4), "
            "`mace` _ (70.0), votes _ with ties to `O` and _ with ties to spans (65.4), made "
            "well-formed; the raw votes have _ and _."
        ),
        [
            DEALS,
            span("auto", "crowd_6056, test half"),
            *map(paper, ("bsc-seq+words", "ds", "mace", OUT, IN)),
            *map(paper, (f"{OUT}, raw", f"{IN}, raw")),
        ],
    ),
    (
        "docs/methods.md",
        "it gives _ % right, the best fixed method, `mace`, _ and the majority _.",
        [*map(mean, ("auto", "mace", "mv-token"))],
    ),
    (
        "docs/methods.md",
        "`bsc-seq+crf` _ and `auto` _ on the authors' 5,985 sentences",
        [span("bsc-seq+crf", "crowd.tsv"), span("auto", "crowd.tsv")],
    ),
    (
        "docs/worker-models.md",
        "`bsc-seq+crf` has a strict F1 of _, where `bsc-seq+words` has _ and `auto` _",
        [pico("bsc-seq+crf"), pico("bsc-seq+words"), pico("auto")],
    ),
    (
        "docs/math.md",
        (
            "| `auto` | `bsc-seq+words` | `mace` | `bsc-seq+crf` | `ds` | votes | "
            "|---:|---:|---:|---:|---:|---:| | _ | _ | _ | _ | _ | _ |"
        ),
        [pico(m) for m in ("auto", "bsc-seq+words", "mace", "bsc-seq+crf", "ds", VOTES)],
    ),
]
"""Page, words with a gap per number, and where each number stands."""
NUMBER = r"(\d\d(?:\.\d)?)"
"""Rounded to a digit after the point, or to none."""
SAID = re.compile(
    r"`(?:auto|mace|ds|bsc-[\w+]+)`(?: has| is)?(?: a (?:mean |span |strict )*F1 of)? (\d\d\.\d)\b"
)
"""A method with its score."""
ELSEWHERE = {"docs/methods.md": {"84.5"}}
"""Means of the twelve sets of docs/voting.md."""


def _text(root, page: str) -> str:
    lines = (root / page).read_text("utf-8").splitlines()
    return " ".join(" ".join(lines).split())


def _found(text: str, words: str) -> re.Match[str]:
    pattern = NUMBER.join(re.escape(part) for part in words.split("_"))
    found = re.search(pattern, text)
    assert found, f"the page does not say any more: {words}"
    return found


def look_up(root, cell: Cell) -> float:
    """Return a number of a results page."""
    heads, caption = [], ""
    for line in (root / "docs" / f"{cell.page}.md").read_text("utf-8").splitlines():
        if line.startswith("**"):
            caption, heads = line.strip("*"), []
        elif line.startswith("|") and caption.startswith(cell.caption):
            cells = [one.strip(" `*") for one in line.strip("|").split("|")]
            heads = heads or cells
            if tuple(cells[: len(cell.row)]) == cell.row:
                return float(cells[heads.index(cell.column)])
    raise AssertionError(f"no table has {cell}")


@pytest.mark.parametrize("page", sorted({page for page, *_ in QUOTES}))
def test_scores_that_a_page_quotes_are_those_of_a_table_of_results(root, page):
    text = _text(root, page)
    for own, words, cells in QUOTES:
        if own == page:
            for number, cell in zip(_found(text, words).groups(), cells, strict=True):
                digits = len(number.partition(".")[2])
                assert number == f"{look_up(root, cell) + 1e-9:.{digits}f}", words


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/methods.md"])
def test_every_score_beside_a_method_is_looked_up(root, page):
    text = _text(root, page)
    known = [_found(text, words).span() for own, words, _ in QUOTES if own == page]
    for said in SAID.finditer(text):
        inside = any(low <= said.start(1) < high for low, high in known)
        assert inside or said[1] in ELSEWHERE.get(page, ()), f"nothing looks up: {said[0]}"


def test_a_method_with_a_score_is_seen():
    for words in ("`auto` has a mean F1 of 81.4", "`bsc-seq+crf` 81.4", "`mace` is 55.3"):
        assert SAID.search(words)
