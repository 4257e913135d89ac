"""What all pictures share: colours, letters, and how they are saved or set into a page.

Matplotlib's object interface only: no pyplot, no change of global settings. Words come from
strangers: they are no formulas, and characters that Matplotlib's font lacks are no warning.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from goldspan.crowd.atomic import new_file
from goldspan.errors import MissingExtraError, UnknownNameError
from goldspan.old_name import OLD_NAME
from goldspan.report.wording import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, BOX, POINT = "#1b2631", "#5c6875", "#dde3e8", "#d9e8f4", "#0072b2"
"""The colours; blue on grey is told apart under every colour blindness."""
RIGHT, WRONG, ON = "#0173b2", "#d55e00", "#fefefe"
"""Cells of a heat map, blue and vermilion, and words on the darkest of them."""
COLOURS = {
    "--fig-ink": INK,
    "--fig-muted": MUTED,
    "--fig-grid": GRID,
    "--fig-box": BOX,
    "--fig-point": POINT,
    "--fig-right": RIGHT,
    "--fig-wrong": WRONG,
    "--fig-on": ON,
}
"""The CSS variables that take the place of the colours in a page."""
SUFFIXES = (".pdf", ".png", ".svg")
FONT = "DejaVu Sans"
"""Comes with Matplotlib, so that every machine draws the same."""


def new_figure(width: float, height: float) -> Figure:
    """Give an empty figure.

    Args:
        width: Inches.
        height: Inches.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "a picture") from None
    return Figure(figsize=(width, height), dpi=200, facecolor="white")


@contextmanager
def own_settings() -> Iterator[None]:
    """Set Matplotlib's defaults for a while, whatever style the caller's program has chosen."""
    from matplotlib import style

    with style.context("default"):
        yield


def write(ax: Axes, x: float, y: float, words: str, **look: Any) -> None:
    """Write at a place in the axes' own measure, 0 to 1 from corner to corner."""
    look = {"color": INK, "size": 9.5, "family": FONT, "transform": ax.transAxes, **look}
    ax.text(x, y, printable(words), clip_on=False, parse_math=False, **look)


def bare(ax: Axes) -> None:
    """Take away the frame and the ground of axes, and set the letters of their ticks."""
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_visible(False)
    ax.set_facecolor("none")
    ax.tick_params(length=0, pad=2, labelsize=8.5, labelcolor=MUTED, labelfontfamily=FONT)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .svg, .png or .pdf; the same figure gives the same bytes.

    Raises:
        UnknownNameError: The name ends in something else.
        InputError: The path cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UnknownNameError("picture format", suffix, SUFFIXES)
    date = {".svg": "Date", ".pdf": "CreationDate"}.get(suffix)
    metadata = {date: None} if date else {}
    with new_file(path) as temporary, temporary.open("wb") as out:
        _save(figure, out, format=suffix[1:], metadata=metadata)


def inline_svg(figure: Figure, title: str, description: str) -> str:
    """Give a figure as an SVG element for an HTML page.

    Its text takes the page's font, its colours are the page's CSS variables (`COLOURS`), its
    ground is transparent, and it has no ids, so that a page may hold many.

    Args:
        figure: The figure.
        title: Its short name, read aloud in place of the picture.
        description: What it shows, in sentences.
    """
    from html import escape

    buffer = io.BytesIO()
    _save(figure, buffer, format="svg", svg_text="none", facecolor="none")
    svg = buffer.getvalue().decode()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box
    name = f"{printable(title)}. {printable(description)}"
    labels = (
        f"<title>{escape(printable(title))}</title><desc>{escape(printable(description))}</desc>"
    )
    head = f'<svg {box[0]} role="img" aria-label="{escape(name)}">{labels}'
    svg = re.sub(r"<svg.*?>", "", svg, count=1, flags=re.DOTALL)
    prefix = re.sub(r"\W+", "-", title.lower())
    used = set(re.findall(r'(?:url\(#|href="#)([^")]*)', svg))
    # Only within tags: the words between them are strangers', and stay as they are.
    body = re.sub(r"<[^>]*>", lambda tag: _for_page(tag[0], prefix, used), svg)
    return head + re.sub(r"\n\s*", "\n", body).strip()


def _for_page(tag: str, prefix: str, used: set[str]) -> str:
    """Make an element fit for a page with other pictures: short, in the page's colours."""
    tag = re.sub(r' ?xmlns(:\w+)?="[^"]*"', "", tag).replace("xlink:href", "href")
    tag = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", tag)
    tag = re.sub(r'( id="|url\(#|href="#)', rf"\1{prefix}-", tag)
    tag = re.sub(r"\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), tag)
    for name, colour in COLOURS.items():
        tag = tag.replace(colour, f"var({name})")
    return tag


def _save(
    figure: Figure, out: Any, *, svg_text: Literal["path", "none"] = "path", **options: Any
) -> None:
    """Save so that the bytes are always the same; `svg_text` says whether letters become paths."""
    import matplotlib as mpl

    with (
        own_settings(),
        # The salt of the ids in a picture is seen by nobody: those of before stay as they are.
        mpl.rc_context({"svg.hashsalt": OLD_NAME, "svg.fonttype": svg_text}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(out, **options)
