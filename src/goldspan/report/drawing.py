"""Drawing: canvas, axes, filled curves, box plots, distributions."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from goldspan import __version__
from goldspan.crowd import Crowd
from goldspan.crowd.atomic import new_file
from goldspan.crowd.measures import Agreement, Quartiles
from goldspan.errors import MissingExtraError, UnknownNameError
from goldspan.report.wording import amount, bare_percent, count, interval, percent, shorten
from goldspan.spans.notebook import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# What all pictures share: colours, fonts, and how they are saved or set into a page.


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
    """Return an empty figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "a picture") from None
    return Figure(figsize=(width, height), dpi=200, facecolor="white")


@contextmanager
def default_style() -> Iterator[None]:
    """Set Matplotlib's defaults for a while, whatever style the caller's program has chosen."""
    from matplotlib import style

    with style.context("default"):
        yield


def write(ax: Axes, x: float, y: float, words: str, **look: Any) -> None:
    """Write at a place in the axes' own measure, 0 to 1 from corner to corner."""
    look = {"color": INK, "size": 9.5, "family": FONT, "transform": ax.transAxes, **look}
    ax.text(x, y, printable(words), clip_on=False, parse_math=False, **look)


def bare(ax: Axes, grid: Literal["x", "y", "both", ""] = "") -> None:
    """Take away the frame and the ground of axes, set the size of tick labels, draw a grid."""
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_visible(False)
    ax.set_facecolor("none")
    ax.tick_params(length=0, pad=2, labelsize=8.5, labelcolor=MUTED, labelfontfamily=FONT)
    if grid:
        ax.grid(visible=True, axis=grid, color=GRID, linewidth=0.7, linestyle="-")
        ax.set_axisbelow(True)


def below(ax: Axes, words: str) -> None:
    """Write what the x axis is."""
    ax.set_xlabel(words, fontfamily=FONT, fontsize=8.5, color=MUTED, labelpad=3)


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
    """Return a figure as an SVG element for an HTML page."""
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
    """Save so that the bytes are always the same; `svg_text` says whether text becomes paths."""
    import matplotlib as mpl

    with (
        default_style(),
        mpl.rc_context({"svg.hashsalt": "goldspan", "svg.fonttype": svg_text}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(out, **options)


# --------------------------------------------------------------------------------------------------
# What pictures with two axes share: ground and title, legend, ticks in per cent and in counts.


DOTS: dict[str, Any] = {"linestyle": (0, (2, 2)), "color": MUTED, "linewidth": 1.2}
"""The look of limits and targets."""


@contextmanager
def plot(
    size: tuple[float, float], sides: tuple[float, float, float, float], *words: Any, **room: Any
) -> Iterator[tuple[Figure, Axes]]:
    """Begin a picture with two axes; `sides`: left, right, top, bottom; others as in `ground`."""
    figure, names = new_figure(*size), ("left", "right", "top", "bottom")
    with default_style():
        ax = figure.subplots()
        figure.subplots_adjust(**dict(zip(names, sides, strict=True)))
        ground(ax, *words, **room)
        yield figure, ax


def ground(
    ax: Axes,
    title: str,
    label: str,
    grid: Literal["x", "y", "both"] = "both",
    shift: float = 0.0,
    room: float = 0.3,
) -> None:
    """Set title, grid and the words beneath; above the axes there is room for the legend."""
    bare(ax, grid)
    above = 1 + room / (ax.bbox.height / ax.figure.dpi)
    left = -shift / (ax.bbox.width / ax.figure.dpi)
    write(ax, left, above, title, weight="bold", va="bottom", size=9)
    below(ax, label)


def legend(ax: Axes, apart: float = 0.1, columns: int = 4) -> None:
    """Set the legend between title and axes; marks and words are so many ems apart."""
    look: dict[str, Any] = {"prop": {"family": FONT, "size": 8}, "labelcolor": INK}
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "ncols": columns}
    tight: dict[str, Any] = {
        "handletextpad": apart,
        "columnspacing": 0.8,
        "borderaxespad": 0.1,
        "borderpad": 0.1,
    }
    ax.legend(frameon=False, **look, **place, **tight)


def percent_ticks(axis: Any, bottom: float = 0.0) -> None:
    """Write shares in per cent, at fewer places where the axis does not begin at 0."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5 if bottom < 0.5 else 4))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))


def count_ticks(axis: Any) -> None:
    """Write whole numbers, thousands set apart."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


# --------------------------------------------------------------------------------------------------
# The pages of reports: templates filled with what they show.


def fill_template(name: str, /, **values: Any) -> str:
    """Return a page."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report", "a report") from None
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"percent": percent, "count": count, "short": shorten}
    environment.filters |= {"amount": amount, "bare": bare_percent, "interval": interval}
    # Sections that a page has several times have another level of headings, and marks at their ids
    values = {"version": __version__, "level": 2, "at": "", **values}
    return environment.get_template(name).render(values)


def _read(name: str) -> str:
    return files("goldspan.report").joinpath("templates", name).read_text(encoding="utf-8")


def _clean(value: Any) -> Any:
    return printable(value) if type(value) is str else value


# --------------------------------------------------------------------------------------------------
# What the agreement picture shows: three distributions, and their quartiles in words.


WHOLE = 0.8
"""Workers answer whole documents if they answered this share of the items of theirs."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """One box plot."""

    what: str  # What is counted or measured, the first line of its title
    per: str  # Of what, the second line
    values: NDArray[np.float64]  # [n], finite
    is_rate: bool = False  # Whether the values are shares between 0 and 1

    @property
    def title(self) -> str:
        """Both lines as one."""
        return f"{self.what} {self.per}"

    @property
    def quartiles(self) -> Quartiles:
        """Minimum, quartiles, maximum and mean; NaN without values."""
        return Quartiles.of(self.values)

    def show(self, value: float) -> str:
        """Write a value as a reader wants it: shares in per cent, counts plain.

        >>> Distribution("F1", "of workers", np.zeros(0), is_rate=True).show(0.6341)
        '63.4'
        """
        if np.isnan(value):
            return "–"
        if self.is_rate:
            return f"{100 * value:.1f}"
        return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:,.1f}"

    def describe(self) -> str:
        """Return the distribution in a sentence, for readers who do not see the picture."""
        if not len(self.values):
            return f"{self.title}: nothing to show."
        low, first, median, third, high = map(self.show, self.quartiles[:5])
        unit = " per cent" if self.is_rate else ""
        return (
            f"{self.title}: from {low} to {high}{unit}, "
            f"the middle half between {first} and {third}, median {median}."
        )


def distributions(crowd: Crowd, agreement: Agreement) -> tuple[Distribution, ...]:
    """Collect the three distributions of a crowd."""
    whole = _documents(crowd)
    if whole is None:
        answers = crowd.latest
        by_worker = np.bincount(answers.worker, minlength=crowd.n_workers)
        by_item = np.bincount(answers.item, minlength=crowd.n_items)
        titles = ("answers", "per worker"), ("answers", "per item")
    else:
        worker, document, n_documents = whole
        by_worker = np.bincount(worker, minlength=crowd.n_workers)
        by_item = np.bincount(document, minlength=n_documents)
        titles = ("documents", "per worker"), ("workers", "per document")
    return (
        Distribution(*titles[0], by_worker.astype(float)),
        Distribution(*titles[1], by_item.astype(float)),
        _quality(crowd, agreement),
    )


def _documents(crowd: Crowd) -> tuple[NDArray[np.int64], NDArray[np.int64], int] | None:
    """Worker and document of every answered document; None if items were answered singly."""
    if crowd.groups is None or crowd.groups.null_count or not len(crowd.latest):
        return None
    groups = crowd.groups.dictionary_encode()
    index = groups.indices.to_numpy().astype(np.int64)
    size = np.bincount(index, minlength=len(groups.dictionary))
    key = crowd.latest.worker.astype(np.int64) * len(size) + index[crowd.latest.item]
    pairs, n_answered = np.unique(key, return_counts=True)
    worker, document = np.divmod(pairs, len(size))
    if len(size) == crowd.n_items or np.mean(n_answered / size[document]) < WHOLE:
        return None
    return worker, document, len(size)


def _quality(crowd: Crowd, agreement: Agreement) -> Distribution:
    plain = crowd.tagset.rules.is_plain
    others = ("agreement", "with the others") if plain else ("span F1", "against the others")
    names = {
        "span_f1": ("span F1", "against gold"),
        "token_accuracy": ("accuracy", "against gold"),
        "f1_others": others,
    }
    name = next(n for n in names if n in agreement.workers.column_names)
    values = agreement.workers.column(name).drop_null().to_numpy().astype(float)
    return Distribution(*names[name], values[np.isfinite(values)], is_rate=True)


# --------------------------------------------------------------------------------------------------
# The picture of a crowd: three box plots of how much the workers did and how well.


WHISKER = 1.5
"""Box heights that a whisker may be long."""
MAX_POINTS = 200
"""Points drawn per box; of more values every n-th in their order is drawn, both ends included."""


def agreement_figure(crowd: Crowd, agreement: Agreement) -> Figure:
    """Draw three box plots side by side, as in figure 2 of Rodrigues et al. (2013).

    Answers per worker, answers per item (per document where workers answered whole documents),
    and the workers' span F1: against gold if there is some, else against the others; for single
    labels their accuracy. The box is the middle half, its line the median; whiskers reach to the
    last value within 1.5 box heights.

    Args:
        crowd: The crowd.
        agreement: Its agreement, from `goldspan.agreement`.

    Returns:
        The figure, 4.4 by 3 inches: its smallest print can be read on a phone.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    figure = new_figure(4.4, 3.0)
    with default_style():
        axes = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.085, right=0.885, top=0.84, bottom=0.04, wspace=1.05)
        for mark, ax, shown in zip("abc", axes, distributions(crowd, agreement), strict=True):
            _draw(ax, shown, mark)
    return figure


def _draw(ax: Axes, shown: Distribution, mark: str) -> None:
    title = f"({mark}) {shown.what}" + (", %" if shown.is_rate else "")
    write(ax, -0.4, 1.14, title, weight="bold")
    write(ax, -0.4, 1.065, shown.per, color=MUTED)
    bare(ax, "y")
    ax.set_xticks([])
    ax.set_xlim(-0.4, 0.4)
    _scale(ax, shown)
    if not len(shown.values):
        write(ax, 0.1, 0.5, "no values", color=MUTED)
        return
    _box(ax, shown.values)
    _scatter(ax, _thinned(shown.values))
    # Write the quartiles beside the box, moved apart where they would touch
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
            write(ax, 1.04, y, words, **look)
        seen.add(words)


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
        percent_ticks(ax.yaxis)
        return
    top = float(max(values.max(), 1.0))
    if top > 30 * max(float(np.percentile(values, 75)), 1.0):
        ax.set_yscale("symlog", linthresh=1.0)
        ax.set_yticks([0.0, *(10.0**power for power in range(int(np.log10(top)) + 1))])
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.set_ylim(0.0, 1.04 * top)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))


def short_count(value: float) -> str:
    """Write a tick of counts: thousands with a k."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _box(ax: Axes, values: NDArray[np.float64]) -> None:
    """Draw box, median and whiskers without `Axes.boxplot`, which loads pyplot."""
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
