"""What all aggregators share: the habits of scikit-learn, and labels in the make of the answers."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import count_between, count_in_rows, rows_of
from goldspan.aggregation.consensus import Consensus
from goldspan.aggregation.families import names_nobody
from goldspan.chains.decoding import best_paths_of_votes, first_without_path
from goldspan.crowd import Crowd, ReadOptions
from goldspan.crowd.detection import is_dataframe, rows_as_table
from goldspan.crowd.io import to_crowd
from goldspan.errors import FormatError, InputError, NotFittedError, UnavailableError
from goldspan.params import Estimator, OneOf, result
from goldspan.protocols import Checkpoint, Progress, Runner, Serial
from goldspan.spans import Codec, Tagged, find_errors, find_spans
from goldspan.spans.corpus import write_codes
from goldspan.tagger.features import Text


@dataclass(frozen=True, eq=False)
class FitContext:
    """What an aggregator is given beside the crowd."""

    known: NDArray[np.int16] | None = None  # [n_tokens], truth to learn from, -1 unknown; or None
    start: Consensus | None = None  # An earlier result to go on from, or None
    runner: Runner = field(default_factory=Serial)
    progress: Progress | None = None  # Who is told of every step, or None
    checkpoint: Checkpoint | None = None  # Where the state is kept, or None


class Aggregator(Estimator, ABC):
    r"""Base of the aggregators: keyword-only parameters, `fit`, `fit_predict`, `get_params`.

    A subclass sets `name`, the method's name in the registry, declares its parameters as fields
    (see `goldspan.params`), and implements `_aggregate`.

    Attributes:
        can_go_on: Whether the method learns from round to round, so that `fit(start=…)` and
            `update` begin where an earlier result ended.
        result_: The `Consensus`, after `fit`.
        labels_: The labels of `result_` as `fit_predict` returns them for a DataFrame; a list of
            labels where `fit` was given something else. For single labels.
        probas_: The probabilities of the labels, as `fit_predict_proba` returns them.
        classes_: The labels in the order of the columns of `probas_` and `predict_proba`: an array,
            sorted, as scikit-learn has it. For single labels.

    >>> from goldspan.aggregation import get_aggregator
    >>> answers = b"task,worker,label\n1,u,no\n1,v,yes\n1,w,yes\n"
    >>> method = get_aggregator("mv-token").fit(answers)
    >>> method.classes_.tolist(), method.probas_.round(2).tolist()
    (['no', 'yes'], [[0.33, 0.67]])
    """

    can_go_on: ClassVar[bool] = False
    result_: Consensus = result()
    labels_: Any = result()
    probas_: Any = result()
    classes_: NDArray[Any] = result()
    _make: _Make = result()

    def __getattr__(self, name: str) -> Any:
        if name in ("result_", "labels_", "probas_", "classes_"):
            if "result_" not in vars(self):
                raise NotFittedError(f"{type(self).__name__} has no result yet: call fit first")
            if name == "classes_":
                return np.array(list(_classes(self.result_).values()))
            make: _Make = vars(self).get("_make") or _Make()
            return (make.labels if name == "labels_" else make.probabilities)(self.result_)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @abstractmethod
    def _aggregate(self, crowd: Crowd, context: FitContext) -> Consensus:
        """Compute the consensus of a crowd with at least one answer."""

    def fit(
        self,
        crowd: Any,
        gold: Any = None,
        *,
        start: Consensus | None = None,
        runner: Runner | None = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Aggregate a crowd; the result is `result_`.

        Args:
            crowd: A `Crowd`, a DataFrame with columns task (or item), worker, label, or anything
                else that `read_crowd` reads.
            gold: Known labels to learn from, as for `aggregate`: they are taken as the truth and
                stand in the result. The crowd's own gold is never used to decide. Majority votes
                learn nothing from either. Tags that only known labels have join those of the
                result's crowd.
            start: An earlier result to go on from, for example before new answers came.
            runner: Where to work, for example `goldspan.runners.Threads(2)`; by default this
            thread.
            progress: Who is told of every step.
            checkpoint: Where the state is kept after every step, to resume from.

        Raises:
            InputError: The crowd has no answer, or does not suit the method; or a parameter that
                was set later makes no sense.
        """
        self._check()
        if runner is not None and not hasattr(runner, "map_reduce"):
            raise InputError(
                f"runner must be an object, for example goldspan.runners.Threads(2), not {runner!r}"
            )
        found = as_crowd(crowd)
        make = _Make.of(rows_as_table(crowd))
        known = None
        if gold is not None:
            from goldspan.crowd.gold import attach_gold
            from goldspan.crowd.labels import recode

            attached = attach_gold(found.with_gold(None), gold, ReadOptions())
            # Known truth may have tags that no answer has: its codes are those of the joined tags.
            known, found = attached.gold, recode(found, attached.tagset)
        if not len(found.latest):
            raise InputError("the crowd has no answer: there is nothing to aggregate")
        context = FitContext(known, start, runner or Serial(), progress, checkpoint)
        begin = time.perf_counter()
        result = self._aggregate(found, context)
        families = getattr(self, "families", "none")
        if names_nobody(families):
            note = f"{families}: the table of families names no family"
            result = replace(result, notes=(*result.notes, note))
        seconds = time.perf_counter() - begin
        self.result_ = replace(
            result, method=self.name, params=self.get_params(), seconds=seconds, known=known,
            notes=(*result.notes, *reading_notes(crowd, found)),
        )  # fmt: skip
        self._make = make
        return self

    def update(
        self,
        crowd: Any,
        gold: Any = None,
        *,
        runner: Runner | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Take new answers into the result: aggregate all answers, going on from `result_`.

        Methods that learn from round to round (`can_go_on`) begin with what they learned of the
        workers, found by id, or with the weights of their CRF, and need few rounds. Others compute
        the result anew, so that it has the same bits as after `fit`.

        Args:
            crowd: All answers, the earlier and the new ones; items and workers may be new too.
            gold: As for `fit`.
            runner: As for `fit`.
            progress: As for `fit`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: As `fit`; or the crowd lacks tags that the earlier result knows, and has
                others.

        >>> from goldspan.aggregation import get_aggregator
        >>> method = get_aggregator("ds")
        >>> rows = [{"task": n, "worker": w, "label": "xy"[n % 2]} for n in range(9) for w in "abc"]
        >>> found = method.fit(rows[:-1]).update(rows).result_
        >>> found.labels[-1], found.stop_reason
        ('x', 'tol')
        """
        start = self.result_ if self.can_go_on else None
        return self.fit(crowd, gold, start=start, runner=runner, progress=progress)

    def fit_predict(self, crowd: Any, gold: Any = None) -> Any:
        """Aggregate and return the labels.

        Args:
            crowd: As for `fit`.
            gold: As for `fit`.

        Returns:
            For a pandas DataFrame a pandas Series of labels indexed by task; for a DataFrame of
            another make one with columns task and label; for anything else the list of tags per
            item. Labels that are numbers or truth values in the DataFrame come back as such.

        Raises:
            InputError: As `fit`; or a DataFrame does not hold single labels.
        """
        result = self.fit(crowd, gold).result_
        return result.tags if self._make.frame is None else self.labels_

    def fit_predict_proba(self, crowd: Any, gold: Any = None) -> Any:
        """Aggregate single labels and return the probability of every label.

        Votes have shares of votes or of weight in their place, which are not calibrated.

        Args:
            crowd: As for `fit`.
            gold: As for `fit`.

        Returns:
            For a pandas DataFrame one indexed by task with a column for every label; for a
            DataFrame of another make one with a column task and a column for every label; for
            anything else an array, float64 [n_items, n_labels]. The columns are in the order of
            `classes_`. Rows of items about which nothing is known are NaN.

        Raises:
            InputError: As `fit`; or the items are not single labels.
        """
        return self.fit(crowd, gold).probas_

    def predict_proba(self, crowd: Any) -> Any:
        """Return the probability of every label for other items of known workers.

        Nothing is learned from them; see `predict` of the method.

        Args:
            crowd: As for `fit`.

        Returns:
            As `fit_predict_proba`.

        Raises:
            NotFittedError: `fit` was not called.
            UnavailableError: The method learns nothing that holds for other items.
            InputError: The items are not single labels, have labels that the fitted ones lack, or
                do not suit what was learned.
        """
        if not hasattr(self, "predict"):
            raise UnavailableError(
                f"{self.name} learns nothing that holds for other items: use fit_predict_proba"
            )
        result: Consensus = self.predict(crowd)
        return _Make.of(rows_as_table(crowd)).probabilities(result, _classes(self.result_))


@dataclass(frozen=True)
class _Make:
    """In which form answers came, and so labels go back."""

    frame: Any = None  # The library of a DataFrame, as narwhals names it; None for anything else
    item: str = "task"  # Name of the column of items
    is_whole: bool = False  # Whether its ids are whole numbers

    @classmethod
    def of(cls, crowd: Any) -> _Make:
        """Look at what was given; a DataFrame that is no long table counts as anything else."""
        if not is_dataframe(crowd):
            return cls()
        import narwhals as nw

        from goldspan.crowd.formats.long import find_roles

        try:
            frame = nw.from_native(crowd, eager_only=True)
            item = find_roles(tuple(map(str, frame.columns)), "<DataFrame>", ReadOptions())["item"]
        except (FormatError, TypeError):
            return cls()
        return cls(frame.implementation, item, frame.schema[item].is_integer())

    def labels(self, result: Consensus) -> Any:
        """Return the labels of single labels."""
        if self.frame is None:
            return result.labels
        labels, crowd = result.label_array, result.crowd
        if not crowd.labels_are_text:
            labels = crowd.labels_of(result.codes)
        if not self.frame.is_pandas():
            return self._native({"task": self._tasks(result), "label": labels})
        from goldspan.spans.notebook import data_frame

        series = data_frame(pa.table({"label": labels}))["label"]
        return series.set_axis(self._index(result))

    def probabilities(self, result: Consensus, classes: dict[str, Any] | None = None) -> Any:
        """Return the probabilities of single labels, in the order of given ones."""
        classes, tags = classes or _classes(result), result.tagset.tags
        if unknown := [tag for tag in tags if tag not in classes]:
            raise InputError(f"labels that the fitted answers lack: {', '.join(unknown)}")
        probs = np.zeros((result.crowd.n_items, len(classes)))
        probs[:, [[*classes].index(tag) for tag in tags]] = result.token_probs
        probs[probs.sum(axis=1) == 0] = np.nan
        if self.frame is None:
            return probs
        if not self.frame.is_pandas():
            columns = {str(x): pa.array(probs[:, n]) for n, x in enumerate(classes.values())}
            return self._native({"task": self._tasks(result), **columns})
        import pandas as pd

        names = pd.Index(list(classes.values()), name="label")
        return pd.DataFrame(probs, self._index(result), names)

    def _tasks(self, result: Consensus) -> pa.Array:
        ids = result.crowd.item_ids
        return ids.cast(pa.int64()) if self.is_whole else ids

    def _index(self, result: Consensus) -> Any:
        import pandas as pd

        return pd.Index(self._tasks(result).to_pandas(), name=self.item)

    def _native(self, columns: dict[str, pa.Array]) -> Any:
        import narwhals as nw

        return nw.from_arrow(pa.table(columns), backend=self.frame).to_native()


def _classes(result: Consensus) -> dict[str, Any]:
    """Return single labels by tag, sorted."""
    if not result.crowd.is_classification:
        raise UnavailableError(
            "probabilities of items are for crowds of single labels; tagged tokens have "
            "result_.token_probs"
        )
    pairs = zip(result.tagset.tags, result.crowd.label_values, strict=True)
    return dict(sorted(pairs, key=lambda pair: pair[1]))


def reading_notes(given: Any, crowd: Crowd) -> list[str]:
    """Say what reading decided and left out, where a caller gave no `Crowd` that tells it."""
    return [] if isinstance(given, Crowd) else crowd.import_report.unasked


def as_crowd(crowd: Any) -> Crowd:
    """Return a `Crowd` as it is and read anything else as one; messages name the argument."""
    return to_crowd(crowd, "crowd")


# --------------------------------------------------------------------------------------------------
# The words of a crowd, as taggers read them.


def text_of(crowd: Crowd) -> Text:
    """Return the words of a crowd with their documents."""
    group = None
    if crowd.documents is not None:
        names = np.asarray(crowd.documents.to_pylist(), object).astype(str)
        group = np.unique(names, return_inverse=True)[1].astype(np.int64)
    words = crowd.tokens.flatten().cast(pa.large_string())
    return Text(words, crowd.offsets, group)


def has_words(crowd: Crowd) -> bool:
    """Return whether items have words; single labels may have none but the items' names."""
    words = crowd.tokens.flatten().cast(pa.string())
    return not (crowd.is_classification and words.equals(crowd.item_ids.cast(pa.string())))


def check_words(crowd: Crowd) -> None:
    """Reject a crowd of single labels without text, whose only words are the items' names."""
    if not has_words(crowd):
        raise InputError(
            "a CRF learns from words, and these single labels have none but their items' names: "
            "use ds, ibcc or mace"
        )


# --------------------------------------------------------------------------------------------------
# Who wins a vote: the label with most votes, ties by a rule, whole items made well-formed.


def is_legal(
    codes: NDArray[np.int16], offsets: NDArray[np.int64], codec: Codec
) -> NDArray[np.bool_]:
    """Return for every item whether its tags are well-formed, bool [n_items]."""
    bad = np.zeros(len(offsets) - 1, np.bool_)
    found = find_errors(Tagged(codes, offsets), codec)
    bad[np.searchsorted(offsets, found.position, side="right") - 1] = True
    return ~bad


Ties = Literal["first", "random", "outside", "inside"]
TIES: tuple[str, ...] = get_args(Ties)
TieRule = Annotated[str, OneOf(TIES)]


def winners(
    counts: NDArray[Any],  # Whole numbers [n_tokens, n_labels]; negative votes are allowed
    voted: NDArray[np.bool_],  # [n_tokens], whether a token has a vote at all; it is `O` otherwise
    crowd: Crowd,
    codec: Codec,
    rule: tuple[str, int | None],  # The tie rule and its seed
    *,
    legal: bool = True,  # Whether to make items well-formed
) -> NDArray[np.int16]:
    """Take the label with most votes at every token, then make items legal if asked to."""
    # Legal means: the legal sequence with most votes in all; ties by the rule, as for a token
    # returns int16 [n_tokens]
    order = preference(counts, crowd, codec, *rule)
    scores = counts * np.int64(order.max(initial=0) + 1) + order
    codes: NDArray[np.int16] = scores.argmax(axis=1).astype(np.int16)
    if codec.outside >= 0:
        codes[~voted] = codec.outside
    if not legal or codec.rules.is_plain:
        return codes
    bad = np.flatnonzero(~is_legal(codes, crowd.offsets, codec))
    return repair(codes, counts, order, bad, crowd.offsets, codec)


def preference(
    counts: NDArray[Any], crowd: Crowd, codec: Codec, ties: str, random_state: int | None
) -> NDArray[np.int64]:
    """Rank the labels of every token by the tie rule, the largest first."""
    # returns int64 [n_tokens, n_labels] in 0 … n_labels - 1
    n_labels = len(codec.tags)
    order = np.arange(n_labels - 1, -1, -1, dtype=np.int64)
    if ties == "inside" and codec.outside >= 0:
        order = np.where(np.arange(n_labels) == codec.outside, 0, order + 1)
    ranks = np.tile(order, (len(counts), 1))
    if ties == "random":
        most = counts.max(axis=1, keepdims=True)
        tied = np.flatnonzero((counts == most).sum(axis=1) > 1)
        items = np.unique(np.searchsorted(crowd.offsets, tied, side="right") - 1)
        for n in items.tolist():
            start, end = crowd.offsets[n], crowd.offsets[n + 1]
            rng = item_rng(random_state, "votes", crowd.item_ids[n].as_py())
            ranks[start:end] = rng.permuted(ranks[start:end], axis=1)
    return ranks


def repair(
    codes: NDArray[np.int16],  # [n_tokens], the present tags
    first: NDArray[Any],  # [n_tokens, n_labels], what counts first
    second: NDArray[Any],  # [n_tokens, n_labels], what decides among equals; not negative
    items: NDArray[np.int64],
    offsets: NDArray[np.int64],  # [n_items + 1]
    codec: Codec,
) -> NDArray[np.int16]:
    """Return some items the legal sequence with the largest sum of `first`, then of `second`."""
    if not len(items):
        return codes
    bounds, flat = rows_of(offsets, items)
    weight = np.int64(np.diff(bounds).max()) * np.int64(second.max(initial=0)) + 1
    scores = first[flat].astype(np.int64) * weight + second[flat]
    repaired = codes.copy()
    repaired[flat] = best_paths_of_votes(scores, bounds, codec)
    return repaired


def item_rng(seed: int | None, purpose: str, item_id: str) -> np.random.Generator:
    """Return a generator of an item's own, the same on every machine and in any order."""
    if seed is None:
        return np.random.default_rng()
    digest = hashlib.blake2b(f"{seed}\0{purpose}\0{item_id}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


# --------------------------------------------------------------------------------------------------
# Known truth to be clamped: made legal, or rejected with the item's name.


def legal_known(known: NDArray[np.int16], crowd: Crowd) -> tuple[NDArray[np.int16], list[str]]:
    """Make known truth legal."""
    # known int16 [n_tokens], -1 unknown
    codec = crowd.tagset
    if codec.rules.is_plain:
        return known, _notes(known, 0)
    whole = count_in_rows(known < 0, crowd.offsets) == 0
    every = np.repeat(whole, np.diff(crowd.offsets))
    written = write_codes(find_spans(Tagged(known, crowd.offsets), codec), crowd.offsets, codec)
    found = np.where(every, written, known).astype(np.int16)
    allowed = (found < 0)[:, None] | (found[:, None] == np.arange(len(codec.tags)))
    every = np.ones(crowd.n_items, np.bool_)
    masks = (codec.start_mask, codec.mask, codec.end_mask)
    bad = first_without_path(crowd.offsets, every, allowed, *masks)
    if bad >= 0:
        tags = [*codec.tags, "?"]
        own = known[crowd.offsets[bad] : crowd.offsets[bad + 1]].tolist()
        raise InputError(
            f"item {crowd.item_ids[int(bad)].as_py()}: no well-formed {codec.encoding} sequence "
            f"agrees with its known tags {' '.join(tags[code] for code in own[:50])}"
        )
    return found, _notes(found, int(np.count_nonzero(found != known)))


def _notes(known: NDArray[np.int16], changed: int) -> list[str]:
    notes = [f"{int((known >= 0).sum())} tokens of known truth"]
    return [*notes, f"{changed} known tags made well-formed"] if changed else notes


# --------------------------------------------------------------------------------------------------
# Known truth in the result of a vote: it is kept, and the labels around it stay well-formed.


def read_known(
    known: NDArray[np.int16] | None, crowd: Crowd, *, legal: bool
) -> tuple[NDArray[np.int16] | None, list[str]]:
    """Make known truth well-formed if asked to, and note how much of it there is."""
    if known is None or not (known >= 0).any():
        return None, []
    return legal_known(known, crowd) if legal else (known, _notes(known, 0))


def with_known(
    codes: NDArray[np.int16],  # [n_tokens], what was decided
    known: NDArray[np.int16],  # [n_tokens], -1 unknown
    votes: NDArray[Any],  # Whole numbers [n_tokens, n_labels]
    crowd: Crowd,
    *,
    legal: bool,  # Whether items shall be well-formed
) -> NDArray[np.int16]:
    """Put known labels in place, and repair items that are no longer well-formed."""
    # A repaired item keeps every known tag, then as many of the others as it can, then most votes
    codec, offsets = crowd.tagset, crowd.offsets
    found = np.where(known >= 0, known, codes).astype(np.int16)
    if not legal or codec.rules.is_plain:
        return found
    bad = np.flatnonzero(~is_legal(found, offsets, codec))
    kept = np.zeros(votes.shape, np.int64)
    most = int(np.diff(offsets).max()) + 1  # one known tag outweighs all others of an item
    kept[np.arange(len(found)), found] = np.where(known >= 0, most, 1)
    return repair(found, kept, votes - votes.min(initial=0), bad, offsets, codec)


def leave_open(
    codes: NDArray[np.int16],  # [n_tokens]
    asked: NDArray[np.bool_],  # [n_items], whether anybody answered
    known: NDArray[np.int16] | None,  # [n_tokens], -1 unknown; or None
    crowd: Crowd,
) -> tuple[NDArray[np.int16], int]:
    """Open the items that nobody answered and of which nothing is known; also count them."""
    stays = asked if known is None else asked | (count_in_rows(known >= 0, crowd.offsets) > 0)
    kept = np.repeat(stays, np.diff(crowd.offsets))
    return np.where(kept, codes, np.int16(-1)), int((~stays).sum())


def sure_of(result: Consensus, known: NDArray[np.int16]) -> Consensus:
    """Return known labels, spans of known tokens, and items known as a whole a confidence of 1."""
    crowd, there = result.crowd, np.flatnonzero(known >= 0)
    probs = result.token_probs.copy()
    probs[there] = 0
    probs[there, known[there]] = 1
    spans = find_spans(Tagged(result.codes, crowd.offsets), crowd.tagset)
    inside = count_between(known < 0, spans.start, spans.end) == 0
    whole = count_in_rows(known < 0, crowd.offsets) == 0
    return replace(
        result,
        token_probs=probs,
        span_confidence=np.where(inside, np.float32(1), result.span_confidence),
        confidence=np.where(whole, np.float32(1), result.confidence),
    )
