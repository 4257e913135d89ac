"""What every simulated worker is: a frozen object that answers items whose truth is known.

A worker that changes another's answers is a `Habit`: its `base` is that other worker, so that
habits can be put on top of each other. In text, `flip(0.05) + misses(0.3)`.
"""

from __future__ import annotations

import keyword
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.protocols import Progress, Runner, Serial
from goldspan.simulate.draws import Draws, Floats, Keys, keys_of
from goldspan.spans import Codec

if TYPE_CHECKING:
    from goldspan.simulate.crf_noise import TruthTagger

Codes = NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Scene:
    """What all workers of a simulated crowd share.

    Attributes:
        truth: A crowd whose gold is known at every token.
        seed: Of everything random.
        workers: All workers by id.
        taggers: The CRFs trained on the truth, by their templates; "" is the one that was given.
        runner: Where to work.
        progress: Who is told of the steps of training, or None.
    """

    truth: Crowd
    seed: int
    workers: Mapping[str, SimulatedWorker]
    taggers: dict[str, TruthTagger] = field(default_factory=dict)
    runner: Runner = field(default_factory=Serial)
    progress: Progress | None = None

    @property
    def codec(self) -> Codec:
        """The tags."""
        return self.truth.tagset

    @property
    def codes(self) -> Codes:
        """The truth, int16 [n_tokens]."""
        return self.truth.gold_tagged.codes

    @cached_property
    def item_keys(self) -> Keys:
        """Keys of all items, uint64 [n_items]."""
        return keys_of(self.truth.item_ids.to_pylist())

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How often every label is the truth, int64 [J]."""
        return np.bincount(self.codes, minlength=len(self.codec.tags))

    def assign(self, worker: str, items: NDArray[np.int64]) -> Assignment:
        """Hand items to a worker."""
        lengths = np.diff(self.truth.offsets)[items]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        tokens = np.repeat(self.truth.offsets[items] - offsets[:-1], lengths)
        truth = self.codes[tokens + np.arange(offsets[-1])]
        draws = Draws(self.seed, worker, self.item_keys[items], offsets)
        return Assignment(self, items, truth, offsets, draws, draws.per_item("moment"))


@dataclass(frozen=True, eq=False)
class Assignment:
    """The items that a worker answers, with their truth.

    Attributes:
        scene: What all workers share.
        items: int64 [n_items], indices of items in the scene's truth.
        truth: int16 [n_tokens].
        offsets: int64 [n_items + 1].
        draws: The worker's random numbers on these items.
        moments: float64 [n_items] in [0, 1), when in the course the worker meets every item. The
            course is an order of its own, drawn item by item: it is not that of the items.
    """

    scene: Scene
    items: NDArray[np.int64]
    truth: Codes
    offsets: NDArray[np.int64]
    draws: Draws
    moments: Floats

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every item, int64 [n_items]."""
        return np.diff(self.offsets)

    def within(self, part: str) -> Assignment:
        """Give the same items with the random numbers of a part of the worker."""
        return replace(self, draws=self.draws.within(part))


@dataclass(frozen=True)
class SimulatedWorker(ABC):
    """Base of the simulated workers: frozen dataclasses, whose fields are their arguments in text.

    Attributes:
        name: In the registry.
    """

    name: ClassVar[str]

    @abstractmethod
    def answer(self, work: Assignment) -> Codes:
        """Answer items: int16 [n_tokens], a pure function of the assignment; -1 skips a token."""

    def prepare(self, scene: Scene) -> None:
        """Check that the worker suits the truth, and train what it needs; called once.

        Raises:
            InputError: It does not suit.
        """
        for part in self.parts():
            part.prepare(scene)

    def parts(self) -> Iterator[SimulatedWorker]:
        """Give the workers that this one is made of."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, SimulatedWorker):
                yield value

    def check_number(self, name: str, least: float = 0.0, most: float = 1.0) -> None:
        """Refuse an argument that is no number, or one out of range."""
        value = getattr(self, name)
        real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not real or not least <= value <= most or not np.isfinite(value):
            bounds = (
                f"from {least:g} to {most:g}" if np.isfinite(most) else f"of at least {least:g}"
            )
            raise InputError(f"{self.name}: {name} must be a number {bounds}, not {value!r}")

    def check_whole(self, name: str) -> None:
        """Refuse an argument that is no whole number of at least 0."""
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise InputError(
                f"{self.name}: {name} must be a whole number of at least 0, not {value!r}"
            )

    def check_worker(self, name: str) -> None:
        """Refuse an argument that is no worker."""
        value = getattr(self, name)
        if not isinstance(value, SimulatedWorker):
            raise InputError(f"{self.name}: {name} must be a worker, not {value!r}")

    def __str__(self) -> str:
        """Write it as it is read by `parse_worker`."""
        words = []
        skipped = False
        for one in fields(self):
            value = getattr(self, one.name)
            if one.kw_only:  # not an argument in text
                continue
            if one.default is not MISSING and value == one.default:
                skipped = True
                continue
            words.append(f"{one.name}={_text(value)}" if skipped else _text(value))
        return f"{self.name}({', '.join(words)})" if words else self.name


@dataclass(frozen=True)
class Perfect(SimulatedWorker):
    """Gives the truth."""

    name = "perfect"

    def answer(self, work: Assignment) -> Codes:
        """Give the truth."""
        return work.truth.copy()


@dataclass(frozen=True)
class Habit(SimulatedWorker):
    """Changes what another worker answers.

    Attributes:
        base: That worker.
    """

    base: SimulatedWorker = field(default=Perfect(), kw_only=True)

    def __post_init__(self) -> None:
        self.check_worker("base")

    @abstractmethod
    def change(self, codes: Codes, work: Assignment) -> Codes:
        """Change answers, int16 [n_tokens]."""

    def answer(self, work: Assignment) -> Codes:
        """Let the base answer with the numbers it has alone, then change it with others."""
        return self.change(self.base.answer(work), work.within(f"{self.name} {self.depth}"))

    @property
    def depth(self) -> int:
        """How many habits are below: the same habit twice must not draw the same numbers."""
        return self.base.depth + 1 if isinstance(self.base, Habit) else 0

    def __str__(self) -> str:
        """Write the base first, then the habit."""
        own = super().__str__()
        return own if self.base == Perfect() else f"{self.base} + {own}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        is_word = value.isidentifier() and not keyword.iskeyword(value)
        return value if is_word and value.lower() != "none" else repr(value)
    return repr(value.item()) if isinstance(value, np.generic) else str(value)
