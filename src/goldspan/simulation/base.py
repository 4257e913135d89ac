"""What a simulated annotator is, the truth that it is given, and CRFs with noise."""

from __future__ import annotations

import keyword
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import STEP, Keys, count_in_rows, hash64, keys_of, scattered, unit
from goldspan._kernel import kernel
from goldspan.crowd import Answers, Crowd, read_crowd
from goldspan.crowd.labels import translate
from goldspan.crowd.model import list_array
from goldspan.crowd.options import MISSING as NO_LABEL
from goldspan.errors import InputError
from goldspan.params import Number, check_parameters
from goldspan.protocols import Progress, Runner, Serial
from goldspan.spans import Codec
from goldspan.tagger import CRF, Text
from goldspan.tagger.base import potentials_of, transform
from goldspan.tagger.crf import Masks
from goldspan.tagger.decoding import decode
from goldspan.tagger.features import Features
from goldspan.tagger.kernels import Weights

# --------------------------------------------------------------------------------------------------
# Random numbers by address: every number is a hash of what it is for, and of nothing else.


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of one worker on some items."""

    seed: int
    name: str  # Whose numbers these are: the worker's id, and the part of the worker
    item_keys: Keys  # uint64 [n_items], from `keys_of`
    offsets: NDArray[np.int64]  # [n_items + 1], tokens of the items

    def within(self, part: str) -> Draws:
        """Return the numbers of a part of the worker, independent of all others."""
        return replace(self, name=f"{self.name}\0{part}")

    def per_item(self, use: str) -> Floats:
        """Return a number in [0, 1) for every item, float64 [n_items]."""
        return unit(scattered(self._keys(use) + STEP))

    def per_token(self, use: str) -> Floats:
        """Return a number in [0, 1) for every token, float64 [n_tokens]."""
        lengths = np.diff(self.offsets)
        place = np.arange(self.offsets[-1]) - np.repeat(self.offsets[:-1], lengths)
        steps = (place + 2).astype(np.uint64) * STEP  # step 1 is the item's own number
        return unit(scattered(np.repeat(self._keys(use), lengths) + steps))

    def generator(self, use: str) -> np.random.Generator:
        """Return a generator for what concerns the worker and no single item."""
        text = f"{self.seed}\0{self.name}\0{use}"
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))

    def _keys(self, use: str) -> Keys:
        own = np.uint64(hash64(f"{self.seed}\0{self.name}\0{use}"))
        return scattered(self.item_keys ^ own)


# --------------------------------------------------------------------------------------------------
# Drawing labels one after the other, each given the one before.


@kernel
def draw_labels(
    offsets: NDArray[np.int64],  # [n_items + 1]
    truth: NDArray[np.int16],  # [n_tokens]
    uniform: NDArray[np.float64],  # [n_tokens] in [0, 1)
    cumulative: NDArray[np.float64],  # [n_previous, J, J]
    begin: int,  # The previous label at an item's start; 0 without memory
    codes: NDArray[np.int16],  # [n_tokens], written
) -> None:
    """Draw a label for every token by the inverse of its distribution."""
    n_previous, _, n_labels = cumulative.shape
    for item in range(len(offsets) - 1):
        previous = begin
        for token in range(offsets[item], offsets[item + 1]):
            row = cumulative[previous, truth[token]]
            given = 0
            while given < n_labels - 1 and uniform[token] >= row[given]:
                given += 1
            codes[token] = given
            if n_previous > 1:
                previous = given


# --------------------------------------------------------------------------------------------------
# What every simulated worker is: a frozen object that answers items whose truth is known.


Codes = NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class SimulationContext:
    """What all workers of a simulated crowd share."""

    truth: Crowd  # A crowd whose gold is known at every token
    seed: int
    workers: Mapping[str, SimulatedWorker]
    # The CRFs trained on the truth, by their templates; "" is the one that was given
    taggers: dict[str, TruthTagger] = field(default_factory=dict)
    runner: Runner = field(default_factory=Serial)
    progress: Progress | None = None  # Who is told of the steps of training, or None

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
    """The items that a worker answers, with their truth."""

    context: SimulationContext  # What all workers share
    items: NDArray[np.int64]  # [n_items], indices of items in the context's truth
    truth: Codes  # int16 [n_tokens]
    offsets: NDArray[np.int64]  # [n_items + 1]
    draws: Draws  # The worker's random numbers on these items
    moments: Floats  # [n_items] in [0, 1), when the worker meets every item

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every item, int64 [n_items]."""
        return np.diff(self.offsets)

    def within(self, part: str) -> Assignment:
        """Return the same items with the random numbers of a part of the worker."""
        return replace(self, draws=self.draws.within(part))


@dataclass(frozen=True)
class SimulatedWorker(ABC):
    """Base of the simulated workers: frozen dataclasses, whose fields are their arguments in text.

    Attributes:
        name: In the registry.
    """

    name: ClassVar[str]

    def __post_init__(self) -> None:
        check_parameters(self, self.name)

    @abstractmethod
    def answer(self, work: Assignment) -> Codes:
        """Answer items: int16 [n_tokens], a pure function of the assignment; -1 skips a token."""

    def prepare(self, context: SimulationContext) -> None:
        """Check that the worker suits the truth, and train what it needs; called once.

        Raises:
            InputError: It does not suit.
        """
        for part in self.parts():
            part.prepare(context)

    def parts(self) -> Iterator[SimulatedWorker]:
        """Yield the workers that this one is made of."""
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, SimulatedWorker):
                yield value

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
        """Return the truth."""
        return work.truth.copy()


@dataclass(frozen=True)
class Habit(SimulatedWorker):
    """Changes what another worker answers.

    Attributes:
        base: That worker.
    """

    base: SimulatedWorker = field(default=Perfect(), kw_only=True)

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


# --------------------------------------------------------------------------------------------------
# The truth that workers answer to: known at every token, or drawn for single labels.


def known_truth(truth: Any) -> Crowd:
    """Take a crowd, or read one, whose gold is known at every token."""
    crowd = truth if isinstance(truth, Crowd) else read_crowd(truth)
    open_items = np.flatnonzero(has_unknown(crowd))
    if len(open_items):
        name = crowd.item_ids[int(open_items[0])].as_py()
        raise InputError(
            f"{len(open_items)} of {crowd.n_items} items have tokens without gold (first: {name}): "
            "leave them out with crowd.select_items(~has_unknown(crowd))"
        )
    return crowd


def has_unknown(crowd: Crowd) -> NDArray[np.bool_]:
    """Return which items have a token without gold, bool [n_items]."""
    return count_in_rows(crowd.gold_tagged.codes < 0, crowd.offsets) > 0


def draw_truth(
    n_items: int,
    labels: int | Sequence[str] = 2,
    *,
    shares: Sequence[float] | None = None,
    seed: int = 0,
) -> Crowd:
    """Draw the truth of items of single labels.

    Args:
        n_items: How many; they are called q1, q2, ….
        labels: How many labels, then called 0, 1, …; or their names.
        shares: How frequent every label is, in any unit; all alike by default.
        seed: Of the draws. An item's label does not depend on the number of items.

    Returns:
        A crowd with gold and without workers.

    Raises:
        InputError: No label, a name twice or one that files read as no label, or shares that are
            none.

    >>> draw_truth(4, ["no", "yes"], seed=3).tagged_by_id()
    {'q1': ['yes'], 'q2': ['yes'], 'q3': ['no'], 'q4': ['yes']}
    """
    names = [str(n) for n in range(labels)] if isinstance(labels, int) else list(labels)
    if not names or len(set(names)) < len(names):
        raise InputError(f"labels must be a number of at least 1, or different names, not {labels}")
    unreadable = [name for name in names if name.strip() in NO_LABEL]
    if unreadable:
        raise InputError(
            f"labels: {unreadable[0]!r} cannot be the name of a label: in files it means that "
            "there is none"
        )
    if n_items < 0:
        raise InputError(f"the number of items must be at least 0, not {n_items}")
    limits = np.cumsum(_checked_shares(shares, len(names)))
    codec = Codec.from_types(names, "PLAIN")
    ids = [f"q{n + 1}" for n in range(n_items)]
    offsets = np.arange(n_items + 1)
    uniform = Draws(seed, "truth", keys_of(ids), offsets).per_item("label")
    # The last limit may fall short of 1 by rounding.
    drawn = np.minimum(np.searchsorted(limits, uniform, side="right"), len(names) - 1)
    code_of = np.array([codec.index[name] for name in names], np.int16)
    return Crowd(
        item_ids=pa.array(ids, pa.string()),
        tokens=list_array(pa.array(ids, pa.string()), offsets),
        worker_ids=pa.array([], pa.string()),
        tagset=codec,
        answers=Answers.none(),
        gold=code_of[drawn],
    )


def _checked_shares(shares: Sequence[float] | None, n_labels: int) -> Floats:
    given = np.ones(n_labels) if shares is None else np.asarray(shares, np.float64)
    if given.shape != (n_labels,):
        raise InputError(f"shares must be {n_labels} numbers, one per label, not {len(given)}")
    if not np.isfinite(given).all() or (given < 0).any() or given.sum() == 0:
        raise InputError(f"shares must be numbers of at least 0, and one above 0, not {shares}")
    return np.asarray(given / given.sum())


# --------------------------------------------------------------------------------------------------
# `crf_noise(variance)`: a consistent worker (Rodrigues et al. 2013).


TEMPLATES = "rodrigues"
"""Feature templates unless others are named: those of Rodrigues et al. (2013)."""
Variance = Annotated[float, Number(0, 1e6)]
"""Largest variance: weights are of size 1 to 10, so that long before answers are mere noise."""


@dataclass(frozen=True, eq=False)
class TruthTagger:
    """A trained CRF and the features of the items to answer, found once for all workers.

    Attributes:
        crf: The CRF.
        features: Features of the items.
        tagset: Of the answers; it holds the CRF's tags.

    >>> from goldspan.simulation import draw_truth, simulate_crowd
    >>> truth = draw_truth(30, labels=2, seed=1)
    >>> tagger = TruthTagger.train(truth)
    >>> for repeat in range(30):
    ...     crowd = simulate_crowd(truth, ["crf_noise(0.1) x5"], seed=repeat, tagger=tagger)
    """

    crf: CRF
    features: Features
    tagset: Codec

    @classmethod
    def train(
        cls,
        truth: Any,
        *,
        runner: Runner | None = None,
        progress: Progress | None = None,
        **params: Any,
    ) -> TruthTagger:
        """Train a CRF on a truth, to answer the same items.

        Args:
            truth: A crowd with gold at every token, or what `read_crowd` reads.
            runner: Where to work.
            progress: Who is told of every step.
            params: Parameters of the `CRF`; `templates` is "rodrigues" by default.

        Raises:
            InputError: Some gold is not known, or a parameter is wrong.
        """
        crowd = known_truth(truth)
        given = {"templates": TEMPLATES, "encoding": crowd.tagset.encoding, **params}
        crf = CRF().set_params(**given)
        tags = crowd.tagset.decode_complete(crowd.gold_tagged)
        crf.fit(_shown_text(crowd), tags, runner=runner, progress=progress)
        return cls.of(crf, crowd)

    @classmethod
    def of(cls, crf: CRF, truth: Any) -> TruthTagger:
        """Take a CRF that was trained elsewhere, to answer the items of a truth.

        Raises:
            InputError: The CRF knows tags that the truth's tag set lacks, or takes no words.
        """
        if not isinstance(crf, CRF) or "weights_" not in vars(crf):
            raise InputError(f"tagger must be a trained CRF or a TruthTagger, not {crf!r}")
        crowd = known_truth(truth)
        known, wanted = crf.codec_, crowd.tagset
        strange = [tag for tag in known.tags if tag not in wanted.tags]
        if strange or known.encoding != wanted.encoding:
            raise InputError(
                f"the tagger gives {known.encoding} tags {' '.join(known.tags)}; the truth has "
                f"{wanted.encoding} {' '.join(wanted.tags)}: train it on such tags"
            )
        return cls(crf, transform(crf.features_, _shown_text(crowd)), wanted)

    def answer(self, items: NDArray[np.int64], variance: float, rng: np.random.Generator) -> Codes:
        """Decode items under weights with noise.

        Args:
            items: int64 [n_items], indices of items.
            variance: Of the noise.
            rng: The worker's; it gives the same noise whatever the items.

        Returns:
            int16 [n_tokens], codes of the tag set.
        """
        weights = self.crf.weights_
        vector = weights.vector
        vector += np.sqrt(variance) * rng.standard_normal(len(vector))
        noisy = Weights.of_vector(vector, *weights.state.shape)
        masks = Masks.of(self.crf.codec_, hard=self.crf.hard)
        potentials = potentials_of(self.features.select(items), noisy, masks)
        codes = decode(potentials, self.crf.codec_, least=np.inf).codes
        return translate(codes, self.crf.codec_, self.tagset)


@dataclass(frozen=True)
class CrfNoise(SimulatedWorker):
    """Answers as a CRF does whose parameters were disturbed.

    Attributes:
        variance: Of the noise, at most 1e6; 0 gives the CRF's own answers.
        templates: Features of the CRF, a named set or a TOML file. By default it is the tagger
            that was given to `simulate_crowd`, and if none was, one with the set "rodrigues".
    """

    variance: Variance
    templates: str | None = None
    name = "crf_noise"

    def prepare(self, context: SimulationContext) -> None:
        """Train the CRF unless another worker did."""
        key = self._key(context)
        if key not in context.taggers:
            context.taggers[key] = TruthTagger.train(
                context.truth, templates=key, runner=context.runner, progress=context.progress
            )

    def answer(self, work: Assignment) -> Codes:
        """Decode with noise."""
        tagger = work.context.taggers[self._key(work.context)]
        return tagger.answer(work.items, self.variance, work.draws.generator("noise"))

    def _key(self, context: SimulationContext) -> str:
        if self.templates is not None:
            return self.templates
        return "" if "" in context.taggers else TEMPLATES


def _shown_text(crowd: Crowd) -> Text:
    groups = None
    if crowd.groups is not None:
        groups = [str(name) for name in crowd.groups.to_pylist()]
    return Text.of(crowd.tokens_list, groups)
