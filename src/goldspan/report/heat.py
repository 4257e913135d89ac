"""Confusions, and how far every two workers agree: as numbers and as heat maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.aggregation.votes import vote_counts
from goldspan.aggregation.workers import confusion_counts, count_errors
from goldspan.crowd import Crowd
from goldspan.crowd.measures import Agreement, judged_spans, share
from goldspan.report.drawing import (
    GRID,
    INK,
    MUTED,
    ON,
    RIGHT,
    WRONG,
    bare,
    default_style,
    new_figure,
    write,
)
from goldspan.report.wording import count, shorten
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------
# Which labels a crowd, or one worker, takes for which others: expected confusions in numbers.


MAX_WORKERS = 6
EQUAL = 5.0
"""Labels of the whole crowd that are added to a worker's, so that few labels are no finding."""
RARE = 0.5
"""Truths that are expected less often than this in all labels are no row to compare."""


@dataclass(frozen=True, eq=False)
class Confusions:
    """Expected confusions of one worker, of several or of all."""

    labels: tuple[str, ...]  # Names of rows and columns
    counts: NDArray[np.float64]  # [n_labels, n_labels], expected: truth, label given
    n_merged: int = 0  # Labels that the last row stands for; 0 if every label has its own

    @property
    def totals(self) -> NDArray[np.float64]:
        """Expected labels given per truth, float64 [n_labels]."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def rates(self) -> NDArray[np.float64]:
        """P(label given | truth), rows that sum to 1; rows of nothing are 0."""
        total = self.totals[:, None]
        return np.asarray(
            np.divide(self.counts, total, out=np.zeros_like(self.counts), where=total > 0)
        )

    def look(self, i: int, j: int, share: float) -> tuple[str, float]:
        """Return the colour of a cell with some share, and how strong it is."""
        colour = RIGHT if i == j else WRONG
        if i == j == len(self.labels) - 1 and self.n_merged:
            colour = MUTED  # others as others: nobody knows whether they are the same
        return colour, round(share if len(self.labels) <= MAX_WRITTEN else share**0.5, 2)

    def take(self, kept: Sequence[int], n_others: int) -> Confusions:
        """Keep some labels in their order, and put the others together as the last."""
        if not n_others:
            return self
        place = np.full(len(self.labels), len(kept))
        place[list(kept)] = np.arange(len(kept))
        counts = np.zeros((len(kept) + 1, len(kept) + 1))
        np.add.at(counts, (place[:, None], place[None, :]), self.counts)
        names = (*(self.labels[i] for i in kept), f"{n_others} others")
        return Confusions(names, counts, n_others)

    def fold(self, max_labels: int) -> Confusions:
        """Keep the most frequent labels, so that there are at most `max_labels` rows."""
        return self.take(*self.most_frequent(max_labels))

    def most_frequent(self, max_labels: int) -> tuple[list[int], int]:
        """Return which labels to keep, in their order, and how many others there are."""
        n = len(self.labels)
        if n <= max_labels:
            return list(range(n)), 0
        seen = self.counts.sum(axis=0) + self.counts.sum(axis=1)
        kept = np.sort(np.argsort(-seen, kind="stable")[: max(max_labels - 1, 0)])
        return kept.tolist(), n - len(kept)


@dataclass(frozen=True)
class Mistake:
    """A frequent confusion."""

    truth: str
    given: str  # What was said instead
    share: float  # P(given | truth)
    count: float  # How often, expected


def confusions(consensus: Consensus, worker: str | None = None) -> Confusions:
    """Count the expected confusions of a worker, or all together, of tags of spans by type."""
    crowd, probs, tags = consensus.crowd, consensus.token_probs, consensus.tagset
    if worker is None:
        counts = probs.T.astype(np.float64) @ vote_counts(crowd)
    else:
        counts = confusion_counts(crowd, probs, crowd.worker_index(worker))
    if tags.rules.is_plain:
        return Confusions(tags.tags, counts)
    place = np.where(tags.type_of < 0, len(tags.types), tags.type_of)
    by_type = np.zeros((len(tags.types) + 1,) * 2)
    np.add.at(by_type, (place[:, None], place[None, :]), counts)
    return Confusions((*tags.types, "no span"), by_type)


def said_by_type(consensus: Consensus) -> Confusions:
    """Count what workers said where the known label, or else the result, is of a type.

    A span is found if one of its type overlaps it; "nothing" is no span that overlaps.
    """
    crowd, tags, truth = consensus.crowd, consensus.tagset, consensus.codes
    if crowd.gold is not None:
        truth = np.where(crowd.gold >= 0, crowd.gold, truth)
    if tags.rules.is_plain:
        counts = np.zeros((len(tags.tags),) * 2)
        np.add.at(counts, truth[truth >= 0], vote_counts(crowd)[truth >= 0])
        return Confusions(tags.tags, counts)
    gold, own = judged_spans(crowd, truth)
    counts = np.diag(np.bincount(gold.type, minlength=len(tags.types) + 1).astype(np.float64))
    for (kind, of, _, other), n in count_errors(gold, own).items():
        if kind == "invents":
            counts[-1, of] += n
        elif kind in {"types", "misses"}:  # of "misses" the other type is -1, the last column
            counts[of, [of, other]] += -n, n
    return Confusions((*tags.types, "nothing"), counts)


def mistakes(found: Confusions, n: int = 8) -> list[Mistake]:
    """List the most frequent confusions, at most `n`."""
    wrong = found.counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:n]
    rates, names = found.rates, found.labels
    pairs = [(int(i), int(j)) for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True)]
    return [
        Mistake(names[i], names[j], float(rates[i, j]), float(wrong[i, j]))
        for i, j in pairs
        if wrong[i, j] >= RARE
    ]


def unlike_the_others(
    consensus: Consensus, workers: Sequence[str], n: int = MAX_WORKERS
) -> list[str]:
    """Return the workers whose confusions differ most from those of all together, the most first.

    The difference is the total variation between the rows of a worker and of all, each row
    counting alike: rare labels matter as much as frequent ones.
    """
    whole = confusions(consensus)
    compared = whole.totals >= RARE
    if not compared.any():
        return []
    rates = whole.rates[compared]
    far: list[tuple[float, str]] = []
    for worker in workers:
        counts = confusions(consensus, worker).counts[compared]
        if counts.sum() > 0:
            own = counts + EQUAL * rates
            gap = np.abs(own / own.sum(axis=1, keepdims=True) - rates).sum() / 2
            far.append((float(gap), worker))
    far.sort(key=lambda pair: -pair[0])  # stable: equal ones stay in their order
    return [worker for _, worker in far[:n]]


# --------------------------------------------------------------------------------------------------
# The picture of confusions: heat maps of what workers say where something else is true.


MAX_LABELS = 200
MAX_WRITTEN = 24
"""With more labels than this the cells have no numbers."""
LEAST = 0.005
"""Cells with a smaller share are left empty."""
DARK = 0.75
"""From this share on the words in a cell are light."""
LETTER, BOLD = 0.0072, 1.2
"""Inches that a character takes per point of its size, and how much wider bold ones are."""
MAX_LETTERS = 16
MARGIN = 0.12
"""Inches around the labels."""
CELLS = ((12, 0.4), (MAX_WRITTEN, 0.3), (60, 0.16), (np.inf, 0.09))
"""Inches of a cell, by the number of labels up to which."""


def confusion_figure(
    consensus: Consensus, worker: str | None = None, *, max_labels: int = MAX_LABELS
) -> Figure:
    r"""Draw what a worker, or all together, said for every truth.

    Rows are the truth by the result, columns the label given; a cell holds the share of its row in
    per cent, blue where label and truth are the same, orange where they differ. Beside the rows
    stands how many labels are expected to fall into each. The truth is not certain: a token counts
    in every row with the probability of that label. With more than 24 labels the cells have no
    numbers, and their colour grows with the root of the share, so that rare mistakes are seen.

    Args:
        consensus: The result.
        worker: Id; by default all workers together.
        max_labels: The most frequent labels have rows of their own, the others share the last.

    Raises:
        InputError: Unknown worker.
        MissingExtraError: Matplotlib is not installed.

    >>> import goldspan
    >>> answers = b"task,worker,label\nq1,a,yes\nq1,b,yes\nq1,c,no\nq2,a,no\nq2,b,no\n"
    >>> figure = confusion_figure(goldspan.aggregate(answers, "ds"), "c")
    >>> [text.get_text() for text in figure.axes[0].texts][:2]
    ['Worker c: what was said, % of the row', '1 label']
    """
    who = "All workers" if worker is None else f"Worker {shorten(worker, 30)}"
    return _drawn(confusions(consensus, worker).fold(max_labels), who, "label")


def type_confusion_figure(consensus: Consensus, *, max_labels: int = MAX_LABELS) -> Figure:
    r"""Draw what all workers said where the known label, or else the result, is of a type.

    Spans count as found whatever their bounds; "nothing" is a span that was missed, or invented.
    The most frequent `max_labels` types have rows of their own. Errors as `confusion_figure`.

    >>> import goldspan
    >>> answers = b"token\tann\tbob\nAnn\tB-PER\tB-PER\nsang\tO\tO\nRome\tB-LOC\tO\n"
    >>> figure = type_confusion_figure(goldspan.aggregate(answers, "mv-token"))
    >>> [text.get_text() for text in figure.axes[0].texts][:2]
    ['All workers: what was said, % of the row', '3 spans']
    """
    noun = "label" if consensus.tagset.rules.is_plain else "span"
    return _drawn(said_by_type(consensus).fold(max_labels), "All workers", noun)


def _drawn(found: Confusions, who: str, noun: str) -> Figure:
    """Draw confusions with all that is written around them."""
    amount = counted(round(found.counts.sum()), noun)
    title = f"{who}: what was said, % of the row"
    with _heat_map(found.labels, title, amount) as (figure, at, size, cell):
        _legend(at, MARGIN - _room(found.labels, size) - 0.36, -0.28)
        _cells(at.ax, found.rates, found.look, size=size)
        _names(at, found.labels, size, cell)
        _totals(at, found, noun, size, cell)
    return figure


MOST_PAIRED = 60
"""Workers with a row in the matrix of pairs."""
PALEST = 0.08
"""How strong the colour of the pair is that agrees least."""
LEAST_RANGE = 0.3
"""Pairs whose agreement differs by less do not differ by all of the colour's range."""


def pair_shares(
    crowd: Crowd, found: Agreement, most: int = MOST_PAIRED
) -> tuple[list[str], NDArray[np.float64], int]:
    """Return the most active workers and how far every two agree, [n, n], NaN if not comparable."""
    # Who agrees most with the others comes first; last, of how many workers these are
    left, right, total, equal = found.pairs
    both = np.concatenate([left[total > 0], right[total > 0]])
    paired = np.flatnonzero(np.bincount(both, minlength=crowd.n_workers))
    answers, others = (found.workers[name].to_numpy() for name in ("answers", "f1_others"))
    kept = paired[np.argsort(-answers[paired], kind="stable")[:most]]
    kept = kept[np.argsort(-others[kept], kind="stable")]
    place = np.full(crowd.n_workers, -1)
    place[kept] = np.arange(len(kept))
    shown = (place[left] >= 0) & (place[right] >= 0)
    a, b, shares = place[left[shown]], place[right[shown]], np.full((len(kept),) * 2, np.nan)
    shares[a, b] = shares[b, a] = share(equal[shown], total[shown])
    return [crowd.worker_ids[n].as_py() for n in kept.tolist()], shares, len(paired)


def pairs_figure(crowd: Crowd, agreement: Agreement, *, max_workers: int = MOST_PAIRED) -> Figure:
    r"""Draw how far every two workers agree: span F1, or the share of equal labels, in per cent.

    Who agrees most with the others comes first; of more than `max_workers` those with the most
    answers are drawn. Pairs who share nothing have empty cells.

    Raises:
        MissingExtraError: Matplotlib is not installed.

    >>> import goldspan
    >>> crowd = goldspan.read_crowd(b"task,worker,label\n1,ann,x\n1,bob,x\n2,ann,y\n2,bob,x\n")
    >>> figure = pairs_figure(crowd, goldspan.agreement(crowd))
    >>> [text.get_text() for text in figure.axes[0].texts][:4]
    ['Equal labels of every two workers, %', '2 workers', '50', '50']
    """
    names, shares, n_workers = pair_shares(crowd, agreement, max_workers)
    some = f"the {len(names)} most active of " if len(names) < n_workers else ""
    what = "Equal labels" if crowd.tagset.rules.is_plain else "Span F1"
    title, known = f"{what} of every two workers, %", shares[~np.isnan(shares)]
    high = known.max(initial=0.0)
    step = (1 - PALEST) / max(high - known.min(initial=1.0), LEAST_RANGE)

    def look(_row: int, _column: int, value: float) -> tuple[str, float]:
        return RIGHT, round(1 - step * (high - value), 2)

    amount = some + counted(n_workers, "worker")
    with _heat_map(names or [""], title, amount) as (figure, at, size, cell):
        _cells(at.ax, shares, look, size=size, least=0.0)
        _names(at, names, size, cell, axes=("", ""))
    return figure


@contextmanager
def _heat_map(
    labels: Sequence[str], title: str, amount: str
) -> Iterator[tuple[Figure, _Inches, float, float]]:
    """Begin a heat map; gives also the size of letters, and the inches of a cell."""
    n = len(labels)
    cell = next(size for limit, size in CELLS if n <= limit)
    size = 8.5 if n <= MAX_WRITTEN else 7.0 if n <= 60 else 5.0
    room = _room(labels, size)
    left, top, bottom, margin = room + 0.36, 0.95, room + 0.4, 0.1
    width = max(left + n * cell + 0.7, 2 * margin + _length(title, BOLD * 9.5))
    height = top + n * cell + bottom
    figure = new_figure(width, height)
    with default_style():
        ax = figure.add_axes((left / width, bottom / height, n * cell / width, n * cell / height))
        at = _Inches(ax, n * cell)
        at.write(margin - left, -0.72, title, weight="bold")
        at.write(margin - left, -0.5, amount, color=MUTED, size=8.5)
        yield figure, at, size, cell


def worker_confusions_figure(
    consensus: Consensus, workers: Sequence[str] | None = None, *, max_labels: int = 12
) -> Figure:
    r"""Draw the confusions of several workers side by side, small.

    Args:
        consensus: The result.
        workers: Ids; by default the six whose confusions differ most from those of all together.
        max_labels: The most frequent labels have rows of their own, the others share the last.

    Raises:
        InputError: Unknown worker.
        MissingExtraError: Matplotlib is not installed.

    >>> import goldspan
    >>> answers = b"task,worker,label\nq1,a,yes\nq1,b,yes\nq1,c,no\nq2,a,no\nq2,b,no\n"
    >>> len(worker_confusions_figure(goldspan.aggregate(answers, "ds")).axes)
    3
    """
    if workers is None:
        workers = unlike_the_others(consensus, consensus.crowd.worker_ids.to_pylist())
    kept = confusions(consensus).most_frequent(max_labels)
    shown = [(worker, confusions(consensus, worker).take(*kept)) for worker in workers]
    labels = shown[0][1].labels if shown else ("",)
    n_columns = min(3, max(len(shown), 1))
    n_rows = max(-(-len(shown) // n_columns), 1)
    side, size, names = 1.45, 7.0 if len(labels) > 9 else 8.0, 0.3
    room = _room(labels, size)
    left, bottom, gap, head, legend = room + names, room + names + 0.05, 0.25, 0.5, 0.35
    width = max(left + n_columns * (side + gap), left + 2.4)
    height = legend + n_rows * (side + head) + bottom
    figure = new_figure(width, height)
    with default_style():
        for k, (worker, found) in enumerate(shown):
            row, column = divmod(k, n_columns)
            x = left + column * (side + gap)
            y = height - legend - (row + 1) * (side + head)
            ax = figure.add_axes((x / width, y / height, side / width, side / height))
            at = _Inches(ax, side)
            at.write(0, -0.26, shorten(worker, 18), weight="bold", size=9)
            detail = counted(round(found.counts.sum()), "label")
            at.write(0, -0.09, detail, color=MUTED, size=8)
            _cells(ax, found.rates, found.look, size=0)
            if not k:
                _legend(at, 0, -0.6)
            is_last = k + n_columns >= len(shown)
            _names(at, labels, size, side / len(labels), rows=not column, columns=is_last)
    return figure


class _Inches:
    """Writes beside a heat map: inches from its upper left corner, down and to the right."""

    def __init__(self, ax: Axes, side: float) -> None:
        self.ax = ax
        self.side = side

    def write(self, x: float, y: float, words: str, **look: Any) -> None:
        write(self.ax, x / self.side, 1 - y / self.side, words, **look)


def _cells(
    ax: Axes,
    rates: NDArray[np.float64],
    look_of: Callable[[int, int, float], tuple[str, float]],  # Colour and strength of a cell
    *,
    size: float,
    least: float = LEAST,
) -> None:
    """Draw the cells; their shares are written if the font size is not 0."""
    from matplotlib.patches import Rectangle

    n = max(len(rates), 1)
    bare(ax)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_xlim(0, n)
    ax.set_ylim(n, 0)
    line: dict[str, Any] = {"color": GRID, "linewidth": 0.7, "clip_on": False}
    for edge in range(n + 1) if n <= MAX_WRITTEN and size else (0, n):
        ax.plot([0, n], [edge, edge], **line)
        ax.plot([edge, edge], [0, n], **line)
    for i, j in np.argwhere(rates >= least).tolist():
        colour, alpha = look_of(i, j, float(rates[i, j]))
        look: dict[str, Any] = {"facecolor": colour, "linewidth": 0, "clip_on": False}
        ax.add_patch(Rectangle((j, i), 1, 1, alpha=alpha, **look))
        if size and n <= MAX_WRITTEN:
            middle: dict[str, Any] = {"ha": "center", "va": "center_baseline"}
            ink = ON if alpha >= DARK else INK
            words = f"{100 * rates[i, j]:.0f}"
            place = ((j + 0.5) / n, 1 - (i + 0.5) / n)
            write(ax, *place, words, color=ink, size=size - 0.5, **middle)


def _names(
    at: _Inches,
    labels: Sequence[str],
    size: float,
    cell: float,
    *,
    rows: bool = True,
    columns: bool = True,
    axes: tuple[str, str] = ("truth", "label given"),
) -> None:
    """Write the labels at the rows and columns, and what rows and columns are."""
    n = len(labels)
    names = [_short(label) for label in labels]
    look: dict[str, Any] = {"size": min(size, 62 * cell), "color": INK}
    room = _room(labels, size)
    is_turned = room - MARGIN > 0.9 * cell
    if rows:
        for i, name in enumerate(names):
            at.write(-0.05, (i + 0.5) * cell, name, ha="right", va="center_baseline", **look)
        middle: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "center"}
        at.write(-room - 0.13, n * cell / 2, axes[0], color=MUTED, size=8.5, **middle)
    if columns:
        for j, name in enumerate(names):
            turned: dict[str, Any] = {"rotation": 90 * is_turned, "ha": "center", "va": "top"}
            at.write((j + 0.5) * cell, n * cell + 0.05, name, **turned, **look)
        below = n * cell + (room if is_turned else 0.15) + 0.17
        at.write(n * cell / 2, below, axes[1], color=MUTED, size=8.5, ha="center")


def _totals(at: _Inches, found: Confusions, noun: str, size: float, cell: float) -> None:
    """Write how many labels, or spans, every row has."""
    n = len(found.labels)
    look: dict[str, Any] = {"size": min(size, 62 * cell), "color": MUTED}
    at.write(n * cell + 0.07, -0.07, f"{noun}s", **look)
    for i, total in enumerate(found.totals.tolist()):
        words = count(round(total))
        at.write(n * cell + 0.07, (i + 0.5) * cell, words, va="center_baseline", **look)


def _legend(at: _Inches, x: float, y: float) -> None:
    """Say what the colours mean."""
    for colour, words, shift in ((RIGHT, "as the truth", 0.0), (WRONG, "something else", 1.1)):
        at.write(x + shift, y, "\u25a0", color=colour, size=9)
        at.write(x + shift + 0.14, y, words, color=MUTED, size=8.5)


def _room(labels: Sequence[str], size: float) -> float:
    """Inches that the longest label takes."""
    return max((_length(_short(label), size) for label in labels), default=0.0) + MARGIN


def _length(words: str, size: float) -> float:
    """Inches that words take, roughly; Chinese characters, for example, are wide."""
    return sum(1 + (east_asian_width(char) in "WF") for char in words) * LETTER * size


def _short(label: str) -> str:
    return shorten(" ".join(label.split()), MAX_LETTERS)
