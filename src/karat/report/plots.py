"""Pictures, drawn with Matplotlib's object interface: no pyplot, no change of global settings."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from karat.crowd import Agreement, Crowd
from karat.crowd.atomic import new_file
from karat.errors import MissingExtraError, UnknownNameError
from karat.report.distributions import Distribution, distributions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, BOX, POINT = "#1b2631", "#5c6875", "#dde3e8", "#d9e8f4", "#0072b2"
"""The colours; blue on grey is told apart under every colour blindness."""

SUFFIXES = (".pdf", ".png", ".svg")
WHISKER = 1.5
"""Box heights that a whisker may be long."""
MAX_POINTS = 200
"""Points drawn per box; of more values every n-th in their order is drawn, both ends included."""
_FONT = "DejaVu Sans"
"""Comes with Matplotlib, so that every machine draws the same."""


def agreement_figure(crowd: Crowd, agreement: Agreement) -> Figure:
    """Draw three box plots side by side, as in paper 000, figure 2.

    Answers per worker, answers per item (per document where workers answered whole documents),
    and the workers' span F1: against gold if there is some, else against the others; for single
    labels their accuracy. The box is the middle half, its line the median; whiskers reach to the
    last value within 1.5 box heights.

    Args:
        crowd: The crowd.
        agreement: Its agreement, from `karat.agreement`.

    Returns:
        The figure, 4.4 by 3 inches: its smallest print can be read on a phone.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "a picture") from None
    with _own_settings():
        figure = Figure(figsize=(4.4, 3.0), dpi=200, facecolor="white")
        axes = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.085, right=0.885, top=0.84, bottom=0.04, wspace=1.05)
        for letter, ax, shown in zip("abc", axes, distributions(crowd, agreement), strict=True):
            _draw(ax, shown, letter)
    return figure


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

    Its text takes the page's font, its colours are the page's CSS variables (`--fig-ink`,
    `--fig-muted`, `--fig-grid`, `--fig-box`, `--fig-point`), its ground is transparent.

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
    svg = re.sub(r'xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    for name, colour in _variables().items():
        svg = svg.replace(colour, f"var({name})")
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box
    labels = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    head = f'<svg {box[0]} role="img" aria-label="{escape(f"{title}. {description}")}">{labels}'
    body = re.sub(r"\n\s*", "\n", re.sub(r"<svg.*?>", "", svg, count=1, flags=re.DOTALL))
    return head + body.strip()


def _variables() -> dict[str, str]:
    names = ("--fig-ink", "--fig-muted", "--fig-grid", "--fig-box", "--fig-point")
    return dict(zip(names, (INK, MUTED, GRID, BOX, POINT), strict=True))


@contextmanager
def _own_settings() -> Iterator[None]:
    """Set Matplotlib's defaults for a while, whatever style the caller's program has chosen."""
    from matplotlib import style

    with style.context("default"):
        yield


def _save(
    figure: Figure, out: Any, *, svg_text: Literal["path", "none"] = "path", **options: Any
) -> None:
    """Save so that the bytes are always the same; `svg_text` says whether letters become paths."""
    import matplotlib as mpl

    with _own_settings(), mpl.rc_context({"svg.hashsalt": "karat", "svg.fonttype": svg_text}):
        figure.savefig(out, **options)


def _draw(ax: Axes, shown: Distribution, letter: str) -> None:
    title = f"({letter}) {shown.what}" + (", %" if shown.is_rate else "")
    _write(ax, -0.4, 1.14, title, weight="bold")
    _write(ax, -0.4, 1.065, shown.per, color=MUTED)
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_visible(False)
    ax.set_facecolor("none")
    ax.set_xticks([])
    ax.set_xlim(-0.4, 0.4)
    _scale(ax, shown)
    ax.tick_params(axis="y", length=0, pad=2, labelsize=8.5, labelcolor=MUTED)
    ax.tick_params(axis="y", labelfontfamily=_FONT)
    ax.grid(visible=True, axis="y", color=GRID, linewidth=0.7, linestyle="-")
    ax.set_axisbelow(True)
    if not len(shown.values):
        _write(ax, 0.1, 0.5, "no values", color=MUTED)
        return
    _box(ax, shown.values)
    _scatter(ax, _thinned(shown.values))
    _label_quartiles(ax, shown)


def _write(ax: Axes, x: float, y: float, words: str, **look: Any) -> None:
    """Write at a place in the axes' own measure, 0 to 1 from corner to corner."""
    look = {"color": INK, "size": 9.5, "family": _FONT, **look}
    ax.text(x, y, words, transform=ax.transAxes, clip_on=False, **look)


def _scatter(ax: Axes, points: NDArray[np.float64]) -> None:
    few = len(points) <= 50
    jitter = np.random.default_rng(0).uniform(-0.22, 0.22, len(points))
    size, alpha = (13, 0.75) if few else (8, 0.4)
    look: dict[str, Any] = {"s": size, "alpha": alpha, "color": POINT, "linewidths": 0}
    ax.scatter(jitter, points, zorder=3, clip_on=False, **look)


def _scale(ax: Axes, shown: Distribution) -> None:
    """Set limits and ticks: shares from 0 (or 0.5) to 1, counts from 0, logarithmic if skew."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    values = shown.values if len(shown.values) else np.zeros(1)
    if shown.is_rate:
        ax.set_ylim(0.5 if values.min() > 0.55 else 0.0, 1.0)
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))
        return
    top = float(max(values.max(), 1.0))
    if top > 30 * max(float(np.percentile(values, 75)), 1.0):
        ax.set_yscale("symlog", linthresh=1.0)
        ax.set_yticks([0.0, *(10.0**power for power in range(int(np.log10(top)) + 1))])
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.set_ylim(0.0, 1.04 * top)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short_count(value)))


def _short_count(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _box(ax: Axes, values: NDArray[np.float64]) -> None:
    """Draw box, median and whiskers by hand: `Axes.boxplot` loads pyplot and chooses a backend."""
    from matplotlib.patches import Rectangle

    first, median, third = np.percentile(values, [25, 50, 75])
    reach = WHISKER * (third - first)
    low = min(values[values >= first - reach].min(), first)
    high = max(values[values <= third + reach].max(), third)
    line: dict[str, Any] = {"color": INK, "linewidth": 0.9, "zorder": 2}
    for inner, outer in ((first, low), (third, high)):
        ax.plot([0, 0], [inner, outer], **line)
        ax.plot([-0.12, 0.12], [outer, outer], **line)
    look: dict[str, Any] = {"facecolor": BOX, "edgecolor": INK, "linewidth": 0.9, "zorder": 2.1}
    ax.add_patch(Rectangle((-0.31, first), 0.62, third - first, **look))
    ax.plot([-0.31, 0.31], [median, median], **line | {"linewidth": 2.0, "zorder": 2.2})


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(values)
    if len(ordered) <= MAX_POINTS:
        return ordered
    return np.asarray(ordered[np.linspace(0, len(ordered) - 1, MAX_POINTS).round().astype(int)])


def _label_quartiles(ax: Axes, shown: Distribution) -> None:
    """Write the quartiles beside the box, moved apart where they would touch."""
    _, first, median, third, _, _ = shown.quartiles
    to_axes = ax.transData + ax.transAxes.inverted()
    low, middle, high = (float(to_axes.transform((0, v))[1]) for v in (first, median, third))
    gap = 0.07
    low, high = min(low, middle - gap), max(high, middle + gap)
    labels = [(middle, median, INK, "bold")]
    labels += [(y, value, MUTED, "normal") for y, value in ((low, first), (high, third))]
    seen = set()
    for y, value, colour, weight in labels:
        words = shown.show(value)
        if words not in seen:
            look = {"color": colour, "weight": weight, "size": 9, "va": "center_baseline"}
            _write(ax, 1.04, y, words, **look)
        seen.add(words)
