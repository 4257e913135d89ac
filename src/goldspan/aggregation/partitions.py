"""Aggregation out of core: partitions of a crowd are shards, of which none is held here.

Every partition is read three times: its footer and digest, to number the workers of all; its
answers, to lay them out as evidence in files that the E-steps map into memory; and its items at the
end, to write its labels. The caller holds the workers' parameters, and never an item.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from goldspan._arrays import hash64, keys_of, load_array
from goldspan.aggregation import get_aggregator
from goldspan.aggregation.auto import Auto
from goldspan.aggregation.base import FitContext
from goldspan.aggregation.bsc.engine import EngineInputs, Model, vote_shard
from goldspan.aggregation.bsc.evidence import Evidence, Stored, Sums, compress, store
from goldspan.aggregation.bsc.posterior import Posterior, consensus_of
from goldspan.aggregation.bsc.priors import given_prior, trusted_ids
from goldspan.aggregation.dawid_skene import Variational
from goldspan.aggregation.families import families_named_by
from goldspan.aggregation.workermodels import Rows
from goldspan.crowd import Crowd
from goldspan.crowd.atomic import FULL, write_folder
from goldspan.crowd.formats.parquet import about_of, partitions_of
from goldspan.crowd.io import read_crowd
from goldspan.crowd.model import Answers
from goldspan.errors import GoldspanError, InputError
from goldspan.protocols import Checkpoint, Progress, Runner, Serial
from goldspan.spans import Codec

Keys = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PartitionedResult:
    """What became of partitions; the labels are in the files."""

    method: str
    n_partitions: int
    n_items: int
    n_open: int  # Items that nobody answered
    n_answers: int
    n_workers: int
    confidence: float  # Mean confidence of the items with answers
    trace: tuple[float, ...]  # The objective after every step
    converged: bool  # Whether it converged
    stop_reason: str  # Why it stopped
    seconds: float  # How long it took
    notes: tuple[str, ...] = ()  # How `auto` chose the method


class _Found(NamedTuple):
    """What the footers of partitions say."""

    workers: pa.Array
    tags: tuple[str, ...]
    encoding: str
    digests: tuple[str, ...]
    facts: dict[str, dict[str, str]]
    places: tuple[tuple[int, int] | None, ...]


class _Counts(NamedTuple):
    """Counts of the labels that were written."""

    n_items: int
    n_open: int
    n_answers: int
    confidence: float


@dataclass(frozen=True, eq=False)
class _Part:
    """A partition, and where its evidence is or will be."""

    path: Path
    scratch: Path
    evidence: Path
    output: str


def aggregate_partitions(
    source: str | Path,  # The folder, as `goldspan convert --partitions` writes it
    output: str | Path,  # A folder that does not exist; files of labels are named as the partitions
    method: str = "ds",  # ds, one-coin, ibcc, mace, or a bsc method without words and CRF
    *,
    runner: Runner | None = None,  # Where to work; by default in this thread
    progress: Progress | None = None,  # Who is told of every step
    checkpoint: Checkpoint | None = None,
    **params: Any,
) -> PartitionedResult:
    """Aggregate a folder of partitions into a folder of labels, a Parquet file for each of them.

    The labels are those that `aggregate` gives to the whole crowd, but for the last bits of sums
    that are added in another order: a partition is a shard. Same partitions, same bits, wherever
    it runs. Gold in the partitions is not used. On a cluster all machines must see both folders.
    """
    begin = time.perf_counter()
    context = FitContext(runner=runner or Serial(), progress=progress, checkpoint=checkpoint)
    notes: tuple[str, ...] = ()
    if method == "auto":
        judge = _judge(params)
    else:
        made = _estimator(method, params)
    target, paths = Path(output), partitions_of(source)
    if target.exists():
        raise InputError(f"{target} exists already: remove it or choose another name")
    with _working_beside(target) as work:
        parts = [
            _Part(path, work / f"{path.stem}.raw", work / path.stem, path.name) for path in paths
        ]
        found = context.runner.map_reduce(_describe, parts, None, _together)
        _check_whole(paths, found)
        if "families" not in params and (told := families_named_by(found.facts)):
            raise InputError(
                f"the file of the answers tells that {', '.join(sorted(told)[:8])} err together, "
                "which is not heeded on partitions: pass families='none' (--families none) if they "
                "are to count in full"
            )
        if method == "auto":
            made, notes = _chosen(judge, parts, found)
        inputs = _prepare(made, parts, found, context)
        inputs, fit = made._fit(inputs, context)  # noqa: SLF001 - of one family
        codec = inputs.crowd.tagset
        last = (fit.tables, codec, made.decode, made.name)
        counts: list[_Counts] = []

        def fill(folder: Path) -> None:
            jobs = [replace(part, output=str(folder.absolute() / part.output)) for part in parts]
            counts.extend(context.runner.map(_label, jobs, last))

        write_folder(target, fill)
    every = _Counts(*(sum(column) for column in zip(*counts, strict=True)))
    n_labelled = every.n_items - every.n_open
    return PartitionedResult(
        made.name, len(parts), every.n_items, every.n_open, every.n_answers,
        inputs.crowd.n_workers, every.confidence / max(1, n_labelled), fit.trace, fit.converged,
        fit.stop_reason, time.perf_counter() - begin, notes,
    )  # fmt: skip


MARK = ".goldspan"
"""File of a folder that a run works in, which it holds."""


@contextmanager
def _working_beside(target: Path) -> Iterator[Path]:
    """Yield a working folder beside the output, for one run at a time, and remove it at the end."""
    work = target.with_name(f".{target.name}.work")
    mark = work / MARK
    try:
        if work.exists() and not mark.exists():
            raise InputError(
                f"{work} is in the way: remove it, or choose another name than {target}"
            )
        work.mkdir(exist_ok=True)
        held = mark.open("ab")
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another run writes {target}: wait, or choose another name") from None
        for old in set(work.iterdir()) - {mark}:  # of a run that was killed
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        try:
            yield work
        except OSError as error:
            why = error.strerror or str(error)
            if error.errno is None or error.errno in FULL:  # NumPy says only what it did not write
                why = f"{why}: make room on the disk; nothing was changed"
                raise InputError(f"cannot write {target}: {why}") from error
            raise InputError(f"{error.filename or target}: {why}") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _check_whole(paths: Sequence[Path], found: _Found) -> None:
    """Raise `InputError` if a partition is missing, or is one of another crowd."""
    # Files of other programs do not say which of how many they are, and are taken as they are
    said = {place for place in found.places if place is not None}
    if not said:
        return
    folder, every = paths[0].parent, {total for _, total in said}
    if None in found.places or len(every) > 1 or len(said) < len(paths):
        raise InputError(f"{folder}: the partitions were not written together")
    (total,) = every
    missing = sorted(set(range(total)) - {number for number, _ in said})
    if missing:
        named = ", ".join(f"{number + 1}" for number in missing[:8])
        raise InputError(f"{folder}: of {total} partitions {len(missing)} are missing: {named}")


def _estimator(method: str, params: dict[str, Any]) -> Variational:
    """Return the aggregator of a method, if it works on partitions."""
    made = get_aggregator(method, **params)
    if not isinstance(made, Variational) or made.text:
        why = ""
        if "+" in method or method.startswith("crf"):
            why = "; words and CRFs are learned from all texts together: aggregate a sample by it"
        raise InputError(
            f"{method} does not work on partitions: use auto, ds, one-coin, ibcc, mace, or a bsc "
            f"method without words and CRF{why}"
        )
    for name, only in (("history", None), ("families", "none")):
        if getattr(made, name) != only:
            raise InputError(f"{name} does not work on partitions: leave it out")
    if not made.forbidden_count:
        raise InputError("forbidden='zero' does not work on partitions: give a number")
    return made


# --------------------------------------------------------------------------------------------------
# The choice of `auto`: methods that work out of core, judged on some items of some partitions.


SAMPLE, SAMPLED = 20_000, 8
"""Answers by which methods are judged, and partitions that they are taken from."""
JUDGE = ("share", "random_state")
"""Parameters of `auto` that have an effect on partitions."""
NO_FAMILIES = ("families", "none")


def _judge(params: dict[str, Any]) -> Auto:
    """Return `auto` as it judges what works on partitions: without words, CRFs and families."""
    params = {name: value for name, value in params.items() if (name, value) != NO_FAMILIES}
    wrong = sorted(set(params) - set(JUDGE))
    if wrong:
        raise InputError(
            f"auto on partitions takes {' and '.join(JUDGE)}, not {', '.join(wrong)}: it chooses "
            "among methods without words, CRFs and families"
        )
    return Auto(text="none", documents="none", families="none", **params)


def _chosen(
    judge: Auto, parts: Sequence[_Part], found: _Found
) -> tuple[Variational, tuple[str, ...]]:
    """Return the best method, which runs alone (a mixture needs all posteriors), and the notes."""
    seed = judge.random_state or 0
    own = sorted(parts, key=lambda part: hash64(f"{seed} {part.path.name}"))[:SAMPLED]
    sample = _together_in_one([_sampled(part, found, seed, SAMPLE // len(own)) for part in own])
    candidates = judge.fit(sample).result_.candidates
    works = [(one, made) for one in candidates if (made := _workable(one.name)) is not None]
    said = f"auto judged by {len(sample.latest)} answers of {len(own)} partitions"
    if not any(one.is_judged for one, _ in works):
        return _estimator("ds", {}), (f"{said}, of which none could be hidden: ds",)
    best, made = max(works, key=lambda pair: pair[0].score)
    top = max(candidates, key=lambda one: one.score)
    notes = [f"{said}: {best.name} predicts hidden answers best (loss {-best.score:.4f})"]
    if top.score > best.score:
        notes.append(f"{top.name} is better (loss {-top.score:.4f}), but not for partitions")
    return made, tuple(notes)


def _workable(name: str) -> Variational | None:
    """Return the method of a candidate, None if it does not work on partitions."""
    method, _, rest = name.partition(", ")
    key, _, value = rest.partition("=")
    try:
        return _estimator(method, {key: float(value)} if value else {})
    except (GoldspanError, ValueError):
        return None


def _sampled(part: _Part, found: _Found, seed: int, n_answers: int) -> Crowd:
    """Return items of a partition, drawn by their ids, with about so many answers."""
    crowd = _read(part, found.workers)
    keys = [hash64(f"{seed} {name}") for name in crowd.item_ids.to_pylist()]
    order = np.argsort(np.array(keys, np.uint64), kind="stable")
    so_far = np.cumsum(np.bincount(crowd.answers.item, minlength=crowd.n_items)[order])
    return crowd.select_items(np.sort(order[: 1 + int(np.searchsorted(so_far, n_answers))]))


def _together_in_one(crowds: Sequence[Crowd]) -> Crowd:
    """Join crowds of the same workers and tags; who answered nothing is left out."""
    first = np.cumsum([0, *(one.n_items for one in crowds)])
    given = [one.answers for one in crowds]
    sizes = np.concatenate([one.lengths for one in given])
    answers = Answers(
        np.concatenate([one.item + np.int32(n) for one, n in zip(given, first, strict=False)]),
        np.concatenate([one.worker for one in given]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([one.codes for one in given]),
        np.concatenate([one.attempt for one in given]),
    )
    crowd = Crowd(
        item_ids=pa.concat_arrays([one.item_ids for one in crowds]),
        tokens=pa.concat_arrays([one.tokens for one in crowds]),
        worker_ids=crowds[0].worker_ids,
        tagset=crowds[0].tagset,
        answers=answers,
    )
    return crowd.select_workers(np.bincount(answers.worker, minlength=crowd.n_workers) > 0)


# --------------------------------------------------------------------------------------------------
# The steps over partitions.


def _prepare(
    made: Variational, parts: Sequence[_Part], found: _Found, context: FitContext
) -> EngineInputs:
    """Number workers and rows of all partitions, lay their answers out, and count votes."""
    runner = context.runner
    crowd = _nothing(found)
    keys = runner.map_reduce(_lay_out, parts, (made, found.workers), np.union1d)
    _check_unique(parts, runner)
    n_previous = made.lay_out(crowd, None, None)[1].n_previous
    rows = Rows.of_keys(keys, len(found.workers), n_previous, len(found.tags))
    prior = given_prior(
        crowd, n_previous, off=made.alpha0, bonus=float(made.epsilon0),
        forbidden=made.forbidden_count, trusted=trusted_ids(made.trusted),
    )  # fmt: skip
    truth = made._truth(crowd.tagset)  # noqa: SLF001 - as above
    model = Model(made.worker_model(), rows, prior, truth)
    sums = runner.map_reduce(_number, parts, (keys, model), Sums.add)
    sums = replace(sums, truth=sums.truth * model.truth.allowed)
    shards = [
        Stored(str(part.evidence.absolute()), digest)
        for part, digest in zip(parts, found.digests, strict=True)
    ]
    return EngineInputs(
        crowd, cast("Sequence[Evidence]", shards), model, float(made.epsilon0), sums, ()
    )


def _describe(part: _Part, _: None) -> _Found:
    """Read who answered, and the tags, from a footer; and digest the file."""
    with part.path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    about = about_of(part.path)
    workers = pa.array(sorted(about["workers"]), pa.string())
    facts = dict(about.get("worker_facts") or {})
    place = tuple(about["partition"]) if "partition" in about else None
    return _Found(workers, tuple(about["tags"]), about["encoding"], (digest,), facts, (place,))


def _together(one: _Found, other: _Found) -> _Found:
    """Join what footers say."""
    if (one.tags, one.encoding) != (other.tags, other.encoding):
        raise InputError(
            f"the partitions have different tags, {' '.join(one.tags)} ({one.encoding}) and "
            f"{' '.join(other.tags)} ({other.encoding}): write them together"
        )
    workers = pc.unique(pa.concat_arrays([one.workers, other.workers])).sort()
    digests, facts = one.digests + other.digests, {**one.facts, **other.facts}
    return _Found(workers, one.tags, one.encoding, digests, facts, one.places + other.places)


def _nothing(found: _Found) -> Crowd:
    """Return a crowd with the workers and tags of all partitions, and no items."""
    return Crowd(
        item_ids=pa.array([], pa.string()),
        tokens=pa.array([], pa.list_(pa.string())),
        worker_ids=found.workers,
        tagset=Codec(found.tags, found.encoding),
        answers=Answers.none(),
    )


def _read(part: _Part, workers: pa.Array) -> Crowd:
    """Read a partition with the workers of all."""
    crowd = read_crowd(part.path, format="parquet").with_gold(None)
    place = pc.index_in(crowd.worker_ids, value_set=workers).to_numpy().astype(np.int32)
    answers = replace(crowd.answers, worker=place[crowd.answers.worker])
    return replace(crowd, worker_ids=workers, answers=answers)


def _lay_out(part: _Part, params: tuple[Variational, pa.Array]) -> Keys:
    """Lay out the answers of a partition in its own rows; return these, sorted."""
    made, workers = params
    crowd = _read(part, workers)
    evidence, rows, _ = made.lay_out(crowd, None, None)
    keys = rows.keys()
    shutil.rmtree(part.scratch, ignore_errors=True)  # of a task that was lost
    store(evidence, part.scratch)
    np.save(part.scratch.with_suffix(".keys.npy"), keys)
    np.save(part.scratch.with_suffix(".ids.npy"), np.sort(keys_of(crowd.item_ids)))
    return np.sort(keys)


def _check_unique(parts: Sequence[_Part], runner: Runner) -> None:
    """Raise `InputError` if two partitions have the same item."""
    # The hashes of the ids are compared by ranges, so that nobody holds all of them
    ranges = list(pairwise(2**64 * n // len(parts) for n in range(len(parts) + 1)))
    for pair in runner.map(_in_two, ranges, tuple(parts)):
        if pair is None:
            continue
        one, other = (read_crowd(path, format="parquet").item_ids for path in pair)
        both = one.filter(pc.is_in(one, value_set=other))
        if len(both):  # and not two ids with the same hash
            raise InputError(
                f"{pair[0]} and {pair[1]} have the same item, {both[0].as_py()}: all answers to an "
                "item belong in one partition; are these files of two exports?"
            )


def _in_two(bounds: tuple[int, int], parts: tuple[_Part, ...]) -> tuple[Path, Path] | None:
    """Return two partitions that have an id whose hash is in a range in common, if there are."""
    found, owner = [], []
    for number, part in enumerate(parts):
        every = load_array(part.scratch.with_suffix(".ids.npy"))
        last = np.uint64(min(bounds[1], 2**64 - 1))
        first, end = np.searchsorted(every, [np.uint64(bounds[0]), last])
        end = len(every) if bounds[1] == 2**64 else end
        found.append(np.asarray(every[first:end]))
        owner.append(np.full(end - first, number))
    keys, numbers = np.concatenate(found), np.concatenate(owner)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    for place in same.tolist():
        one, other = numbers[order[place]], numbers[order[place + 1]]
        if one != other:
            return parts[one].path, parts[other].path
    return None


def _number(part: _Part, params: tuple[Keys, Model]) -> Sums:
    """Number the rows of a partition as all do, write its evidence, and count votes."""
    every, model = params
    number = np.searchsorted(every, load_array(part.scratch.with_suffix(".keys.npy")))
    own = Stored(str(part.scratch), "").loaded()
    evidence = replace(own, row=number[own.row].astype(np.int32))
    shutil.rmtree(part.evidence, ignore_errors=True)
    (shard,) = compress([evidence], len(model.rows))
    store(shard, part.evidence)
    return vote_shard(evidence, model)


def _label(part: _Part, params: tuple[Any, Codec, str, str]) -> _Counts:
    """Label the items of a partition, and write them."""
    tables, codec, decode, method = params
    crowd = read_crowd(part.path, format="parquet").with_gold(None)
    evidence = Stored(str(part.evidence), "").loaded()
    posterior = Posterior([evidence], tables, codec, Serial())
    result = consensus_of(crowd, posterior, decode=decode, method=method)
    pq.write_table(result.to_arrow(), part.output, compression="zstd")
    active = evidence.active
    sure = float(result.confidence[active].sum(dtype=np.float64))
    return _Counts(crowd.n_items, int((~active).sum()), len(crowd.latest), sure)
