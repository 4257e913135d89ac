"""How pictures are saved and set into a page: always the same bytes, and words stay words."""

from __future__ import annotations

import re
import subprocess
import sys

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from goldspan.errors import UnknownNameError
from goldspan.report import agreement_figure, save_figure
from goldspan.report.drawing import bare, inline_svg, new_figure, write


@pytest.fixture
def figure(crowd, agreement):
    return agreement_figure(crowd, agreement)


@pytest.fixture
def written():
    """A figure that holds the words it is called with."""

    def make(words):
        figure = new_figure(2, 1)
        ax = figure.subplots()
        bare(ax)
        ax.plot([0, 1], [0, 1], marker="o")
        write(ax, 0.1, 0.5, words)
        return figure

    return make


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_a_saved_picture_always_has_the_same_bytes(suffix, crowd, agreement, tmp_path):
    paths = [tmp_path / f"{name}{suffix}" for name in "abc"]
    first = agreement_figure(crowd, agreement)
    save_figure(first, paths[0])
    save_figure(first, paths[1])
    save_figure(agreement_figure(crowd, agreement), paths[2])
    assert len({path.read_bytes() for path in paths}) == 1


@pytest.mark.parametrize(
    ("suffix", "start"), [(".svg", b"<?xml"), (".PNG", b"\x89PNG"), (".pdf", b"%PDF")]
)
def test_the_suffix_decides_the_format(suffix, start, figure, tmp_path):
    save_figure(figure, tmp_path / f"a{suffix}")
    assert (tmp_path / f"a{suffix}").read_bytes().startswith(start)


def test_a_saved_picture_holds_no_date(figure, tmp_path):
    save_figure(figure, tmp_path / "a.svg")
    save_figure(figure, tmp_path / "a.pdf")
    assert b"dc:date" not in (tmp_path / "a.svg").read_bytes()
    assert b"CreationDate" not in (tmp_path / "a.pdf").read_bytes()


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.svg.gz"])
def test_another_suffix_is_refused_with_the_names(name, figure, tmp_path):
    with pytest.raises(UnknownNameError, match=r"choose from \.pdf, \.png, \.svg"):
        save_figure(figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_fails_leaves_no_file(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("disk full")

    broken = Figure()
    monkeypatch.setattr(broken, "savefig", fail)
    (tmp_path / "a.png").write_bytes(b"before")
    with pytest.raises(RuntimeError):
        save_figure(broken, tmp_path / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"before"


def test_global_settings_are_neither_changed_nor_obeyed(crowd, agreement, tmp_path):
    save_figure(agreement_figure(crowd, agreement), tmp_path / "plain.svg")
    own = {"font.size": 30, "axes.grid": False, "axes.facecolor": "red", "savefig.dpi": 10}
    with mpl.rc_context({**own, "ytick.labelsize": 40, "savefig.bbox": "tight"}):
        before = dict(mpl.rcParams)
        save_figure(agreement_figure(crowd, agreement), tmp_path / "styled.svg")
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "styled.svg").read_bytes()


def test_pyplot_is_never_loaded(root, tmp_path):
    code = (
        "import sys, goldspan\n"
        "from goldspan.report import agreement_figure, save_figure\n"
        f"crowd = goldspan.read_crowd({str(root / 'examples' / 'crowd.tsv')!r}, format='wide')\n"
        "figure = agreement_figure(crowd, goldspan.agreement(crowd))\n"
        f"save_figure(figure, {str(tmp_path / 'a.png')!r})\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_an_inline_picture_escapes_its_words_and_names_no_place(figure, page):
    svg = inline_svg(figure, 'A "title" <b>', "what & why")
    found = page(svg)
    assert found.faults == []
    assert found.all("svg")[0]["aria-label"] == 'A "title" <b>. what & why'
    assert "http" not in svg
    assert not found.all("style")
    assert "span F1, %" in found.text


@pytest.mark.parametrize(
    "words", ["$x^", "#0072b2 url(#a)", 'id="a" 1.23456', "<script>&amp;", "\u7ea2\u8272", "a\x00b"]
)
def test_words_of_strangers_are_drawn_as_they_are(words, written, page):
    found = page(inline_svg(written(words), words, words))
    assert found.faults == []
    assert words.replace("\x00", "\ufffd") in found.text
    assert {tag for tag, _ in found.elements} <= {
        *("svg", "title", "desc", "g", "path", "defs", "use", "text", "clippath", "rect")
    }


def test_pictures_of_one_page_do_not_share_ids(written, page):
    both = page("".join(inline_svg(written("x"), title, "") for title in ("One", "The other")))
    ids = [attrs["id"] for _, attrs in both.elements if "id" in attrs]
    assert ids
    assert len(ids) == len(set(ids))
    used = {attrs["href"][1:] for attrs in both.all("use")}
    clips = {attrs["clip-path"][5:-1] for _, attrs in both.elements if "clip-path" in attrs}
    assert used | clips <= set(ids)


def test_numbers_of_an_inline_picture_are_short(figure):
    assert not re.search(r"\d\.\d{3}", inline_svg(figure, "a", "b"))


def test_letters_that_the_font_lacks_are_no_warning(written, tmp_path):
    save_figure(written("\u7ea2"), tmp_path / "a.png")
