"""The fast grid against a slow one: cells, lines and blocks; and which tables are refused."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.crowd.grid import (
    MAX_CELL,
    cell_text,
    first_line,
    guess_delimiter,
    is_comment,
    read_grid,
)
from goldspan.crowd.source import open_source
from goldspan.errors import FormatError, InputError

CELL = st.text(st.sampled_from(list("ab#? 'é東😀-.")), max_size=3)


def grid_of(text, delimiter=None):
    return read_grid(open_source(text.encode()), delimiter)


def rows_of(grid):
    columns = (grid.column(name).to_pylist() for name in grid.header)
    return [list(row) for row in zip(*columns, strict=True)]


def refused(text, delimiter=None):
    with pytest.raises(FormatError) as caught:
        grid_of(text, delimiter)
    return str(caught.value)


@st.composite
def tables(draw, mark="\t"):
    """Lines of a table with blank lines, rows of empty cells and comments in it."""
    width = draw(st.integers(2, 4))
    header = [f"c{n}" for n in range(width)]
    lines = [mark.join(header)]
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["row", "row", "row", "blank", "empty", "comment"]))
        row = draw(st.lists(CELL, min_size=width, max_size=width))
        lines.append(
            {"blank": "", "empty": mark * (width - 1), "comment": f"# {row[0]}"}.get(
                kind, mark.join(row)
            )
        )
    lines.append(mark.join("x" * width))
    return lines


def slow(lines, mark):
    """Read the lines one by one, as the docstring of `read_grid` says."""
    rows, places, blocks, block, blank = [], [], [], 0, False
    for number, line in enumerate(lines, start=1):
        if line.startswith("# ") and mark not in line:
            continue
        cells = line.split(mark)
        if not any(cells):
            blank = True
            continue
        block += blank
        blank = False
        rows.append(cells)
        places.append(number)
        blocks.append(block)
    return rows[0], rows[1:], places[1:], blocks[1:]


@given(st.sampled_from("\t;,|"), st.data(), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_cells_lines_and_blocks_are_those_of_a_slow_reader(mark, data, end, closed):
    lines = data.draw(tables(mark))
    grid = grid_of(end.join(lines) + (end if closed else ""), mark)
    header, rows, places, blocks = slow(lines, mark)
    assert list(grid.header) == header
    assert rows_of(grid) == rows
    assert grid.line.tolist() == places
    assert np.diff(grid.block).tolist() == np.diff(blocks).tolist()
    assert grid.n_rows == len(rows)


@given(st.lists(st.lists(st.text(max_size=4), min_size=3, max_size=3), min_size=1, max_size=5))
def test_quoted_cells_are_those_of_the_standard_library(rows):
    rows = [[cell.replace("\0", "").replace("\r", "") for cell in row] for row in rows]
    rows = [["x" if n == 0 else cell for n, cell in enumerate(row)] for row in rows]
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([["a", "b", "c"], *rows])
    assert rows_of(grid_of(buffer.getvalue())) == rows


@given(st.data())
def test_quotes_change_nothing_where_they_are_not_needed(data):
    lines = data.draw(tables(","))
    quoted = [",".join(f'"{c}"' for c in lines[0].split(",")), *lines[1:]]
    one, two = grid_of("\n".join(lines)), grid_of("\n".join(quoted))
    assert rows_of(one) == rows_of(two)
    assert one.line.tolist() == two.line.tolist()
    assert np.diff(one.block).tolist() == np.diff(two.block).tolist()


def test_a_quote_in_a_tsv_is_a_character():
    assert rows_of(grid_of('a\tb\n"x"\t"\n')) == [['"x"', '"']]


def test_the_line_of_a_cell_over_several_lines_is_its_last():
    assert grid_of('a,b\n"x\ny",1\nz,2\n').line.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("line", "mark"),
    [("a\tb,c;d", "\t"), ("a;b;c,d", ";"), ("a,b;c,d", ","), ("a", ","), ("a;b,c", ",")],
)
def test_the_delimiter_is_guessed_from_the_header(line, mark):
    assert guess_delimiter(line) == mark


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("# a word", True),
        ("# id = x", True),
        ("# O", False),
        ("#\tO", False),
        ("# a\tO", False),
        ("#x y z", False),
    ],
)
def test_a_comment_starts_with_a_hash_and_a_blank_and_has_no_tab(line, wanted):
    assert is_comment(line) is wanted


def test_the_first_line_is_neither_blank_nor_a_comment():
    assert first_line(open_source(b"\n# a word here\n\n  x\ty\n")) == "  x\ty"
    assert first_line(open_source(b"# a word here\n")) == ""


def test_names_of_columns_lose_their_outer_blanks():
    assert grid_of(" a , b\n1,2\n").header == ("a", "b")


# What is refused


@pytest.mark.parametrize("delimiter", ["", "::", "é", '"', "\n"])
def test_a_delimiter_that_is_none_is_refused(delimiter):
    with pytest.raises(InputError, match="must be one ASCII character, such as a tab or a comma"):
        grid_of("a,b\n1,2\n", delimiter)


def test_every_ragged_row_is_refused_with_its_line_and_a_guess_why():
    assert refused("a\tb\n1\n\n# x y\n1\t2\n1\t2\t3\n").splitlines() == [
        "<bytes> line 2: 1 cells where the header has 2: is the row cut off?",
        "<bytes> line 6: 3 cells where the header has 2: does a token hold the delimiter?",
    ]
    assert "<bytes> line 3: 3 cells" in refused('a,b\n"1",2\n1,2,3\n')


@pytest.mark.parametrize(("quote", "mark"), [("", "\t"), ('"', "\t"), ('"', ","), ('"', ";")])
def test_a_header_without_a_cell_for_the_names_of_rows_is_that_of_r(quote, mark):
    def line(*cells: str) -> str:
        return mark.join(f"{quote}{cell}{quote}" for cell in cells) + "\n"

    text = line("a", "b") + line("r1", "x", "y") + line("r2", "x", "z")
    grid = grid_of(text)
    assert grid.header == ("", "a", "b")
    assert grid.column("b").to_pylist() == ["y", "z"]
    assert "3 cells" in refused("id,text\n1,Well, yes\n2,Well, no\n")


def test_of_many_faults_the_first_twenty_are_shown_and_the_rest_counted():
    message = refused("a\tb\n" + "1\n" * 50)
    assert len(message.splitlines()) == 21
    assert message.endswith("… and 30 more")


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("size", [MAX_CELL + 1, 200_000])
def test_a_cell_that_is_too_long_is_refused_with_its_line(quote, size):
    text = f"a,b\n1,2\n1,{quote}{'x' * size}{quote}\n"
    assert (
        refused(text)
        == f"<bytes> line 3: a cell longer than {MAX_CELL} bytes: this is not a token, id or label"
    )


def test_a_cell_of_the_greatest_length_is_read():
    assert grid_of(f"a,b\n1,{'x' * MAX_CELL}\n").n_rows == 1


def test_a_column_name_that_is_too_long_is_refused():
    assert refused("a," + "x" * 20_000 + "\n1,2\n") == (
        f"<bytes> line 1: a column name longer than {MAX_CELL} characters: is this a table?"
    )


def test_columns_of_one_name_are_refused():
    assert (
        refused("b,a,b,a\n1,2,3,4\n")
        == "<bytes> line 1: columns 'a', 'b' appear twice in the header"
    )


@pytest.mark.parametrize("text", [",,\n,\n", '""\n', "# only a comment\n", '"",""\n'])
def test_a_table_without_rows_is_refused(text):
    assert refused(text) == "<bytes>: the file holds no row: is the path right?"


@pytest.mark.parametrize("text", ["a,b\n", "a,b\n,\n\n", '"a",b\n'])
def test_a_header_without_rows_is_refused(text):
    assert refused(text) == "<bytes> line 1: there is a header but no row below it"


@pytest.mark.parametrize("text", ['a,b\n"x,1\n', 'a,b\n"x"y,1\n'])
def test_a_quote_that_is_not_closed_is_refused_with_its_line(text):
    assert refused(text).startswith("<bytes> line 2: ")
    assert refused(text).endswith(
        "a quoted cell is not closed, or a quote inside a cell is not doubled"
    )


# What a cell can show


@given(st.text())
def test_a_cell_shows_everything_but_tabs_line_ends_and_nul(word):
    shown = cell_text(word)
    assert [a == b or (a in "\t\n\r\0" and b == " ") for a, b in zip(word, shown, strict=True)] == [
        True
    ] * len(word)


# What Excel says about its delimiter


@pytest.mark.parametrize("mark", [";", ",", "|", "\t"])
@pytest.mark.parametrize("declaration", ["sep={}\n", "SEP={}\r\n", '"sep={}"\n', "\ufeffsep={}\n"])
def test_a_first_line_that_names_the_delimiter_is_no_row_and_is_obeyed(declaration, mark):
    grid = grid_of(declaration.format(mark) + f"item{mark}a\nx{mark}y\n")
    assert (grid.header, rows_of(grid)) == (("item", "a"), [["x", "y"]])
    assert grid.line.tolist() == [3]


def test_quoted_cells_may_stand_below_a_line_that_names_the_delimiter():
    grid = grid_of('sep=;\nitem;"a,b"\nx;"y;z"\n')
    assert (grid.header, rows_of(grid)) == (("item", "a,b"), [["x", "y;z"]])
    assert grid.line.tolist() == [3]


def test_a_delimiter_that_the_user_names_wins_over_the_line_of_the_file():
    grid = grid_of("sep=;\na,b\nx,y\n", ",")
    assert (grid.header, rows_of(grid)) == (("a", "b"), [["x", "y"]])


def test_a_column_named_sep_is_a_column():
    assert grid_of("sep=;;b\nx;y;z\n").header == ("sep=", "", "b")
