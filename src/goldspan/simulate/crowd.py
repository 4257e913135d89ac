"""Making a crowd: a truth, workers, who answers what, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan.crowd import Answers, Crowd, ImportReport
from goldspan.errors import InputError
from goldspan.protocols import Progress, Runner, Serial
from goldspan.simulate.allocation import Workload, allocate
from goldspan.simulate.base import Codes, Scene, SimulatedWorker
from goldspan.simulate.crf_noise import TruthTagger
from goldspan.simulate.team import Entry, read_team
from goldspan.simulate.truth import known_truth
from goldspan.spans import Tagged
from goldspan.tagger import CRF
from goldspan.tagger.base import legal_codes

BEGIN = 1_577_836_800_000
"""When courses begin, in milliseconds since 1970: 2020-01-01."""
COURSE = 7 * 24 * 3_600_000
"""How long they are: a week."""

Part = tuple[str, NDArray[np.int64]]


def simulate_crowd(
    truth: Any,
    workers: Sequence[Entry] | Mapping[str, Any],
    *,
    per_item: int | None = None,
    workload: Workload = "equal",
    seed: int = 0,
    legal: bool = False,
    times: bool = False,
    tagger: TruthTagger | CRF | None = None,
    runner: Runner | None = None,
    progress: Progress | None = None,
) -> Crowd:
    r"""Let simulated workers answer items whose truth is known.

    The answer of a worker to an item depends on the seed, the worker's id and the item's id, not on
    other items, their order, other workers or threads. Facts of the truth as a whole – the trained
    CRF, the most frequent label – are those of the truth given.

    Args:
        truth: A crowd with gold at every token, or what `read_crowd` reads.
        workers: Workers in text or as objects, see `read_team`: ["flip(0.1) x3", "ana=acc"], or
            {"flip(0.1)": 3}, or {"ana": "flip(0.1)"}.
        per_item: k, how many different workers answer every item; all by default.
        workload: How much work every worker wants: "equal", "zipf" (1, 1/2, 1/3, …), weights by id
            or in order. It is had as far as k different workers per item allow.
        seed: Of everything random.
        legal: Whether malformed answers are made well-formed, as conlleval reads them. By default
            they stay as they are: workers do give such tags.
        times: Whether answers have a time at which they were submitted, spread over a week.
        tagger: For `crf_noise` workers: a CRF, or a `TruthTagger` that was trained on this truth;
            by default one is trained.
        runner: Where to work.
        progress: Who is told of the steps of training the CRF.

    Returns:
        The items with their gold, the workers, and the answers by item and worker. The import
        report notes what every worker is.

    Raises:
        InputError: Some gold is not known, or a worker does not suit the truth.
        UnknownNameError: There is no such kind of worker, workload or label.

    >>> import goldspan
    >>> truth = goldspan.read_crowd(b"Ann B-PER\nsang O\n", format="conll")
    >>> simulate_crowd(truth, ["perfect", "misses(1)"]).answers_of(0)
    {'w1': ['B-PER', 'O'], 'w2': ['O', 'O']}
    """
    crowd, team = known_truth(truth), read_team(workers)
    if not isinstance(seed, int | np.integer):
        raise InputError(f"seed must be a whole number, not {seed!r}")
    scene = Scene(crowd, int(seed), team, runner=runner or Serial(), progress=progress)
    if tagger is not None:
        scene.taggers[""] = _fitting(tagger, crowd)
    for worker in team.values():
        worker.prepare(scene)
    ids = list(team)
    chosen = np.ones((crowd.n_items, len(ids)), np.bool_)
    if per_item is None and workload != "equal":
        raise InputError("workload needs per_item: without it every worker answers every item")
    if per_item is not None:
        chosen = allocate(scene.item_keys, ids, per_item, workload, scene.seed)
    parts = [(name, np.flatnonzero(column)) for name, column in zip(ids, chosen.T, strict=True)]
    codes = scene.runner.map(_answer, parts, (scene, legal))
    answers = _gather(scene, parts, codes, times=times)
    return replace(
        crowd,
        worker_ids=pa.array(ids, pa.string()),
        answers=answers,
        import_report=_report(answers, team),
    )


def _answer(part: Part, params: tuple[Scene, bool]) -> Codes:
    """Let one worker answer his items."""
    (name, items), (scene, legal) = part, params
    work = scene.assign(name, items)
    codes = np.asarray(scene.workers[name].answer(work), np.int16)
    if codes.shape != work.truth.shape:
        raise InputError(
            f"worker {name} gave labels of shape {codes.shape}, not {work.truth.shape}"
        )
    if not legal:
        return codes
    mended = legal_codes(Tagged(codes, work.offsets), scene.codec)[0]
    return np.where(codes < 0, codes, mended)


def _gather(scene: Scene, parts: list[Part], codes: list[Codes], *, times: bool) -> Answers:
    """Put the workers' answers into one table, by item and then by worker."""
    item = np.concatenate([items for _, items in parts])
    worker = np.repeat(np.arange(len(parts)), [len(items) for _, items in parts])
    offset = np.concatenate([[0], np.cumsum(np.diff(scene.truth.offsets)[item])])
    submitted = None
    if times:
        moments = np.concatenate([scene.assign(*part).moments for part in parts])
        submitted = BEGIN + np.floor(moments * COURSE).astype(np.int64)
    table = Answers(
        item.astype(np.int32),
        worker.astype(np.int32),
        offset.astype(np.int64),
        np.concatenate(codes),
        np.zeros(len(item), np.int16),
        submitted=submitted,
    )
    return table.take(np.argsort(item, kind="stable"))


def _fitting(tagger: TruthTagger | CRF, truth: Crowd) -> TruthTagger:
    found = tagger if isinstance(tagger, TruthTagger) else TruthTagger.of(tagger, truth)
    if found.tagset != truth.tagset or not np.array_equal(found.features.offsets, truth.offsets):
        raise InputError("the TruthTagger was made for other items: make one of this truth")
    return found


def _report(answers: Answers, team: Mapping[str, SimulatedWorker]) -> ImportReport:
    n_labels = int((answers.codes >= 0).sum())
    notes = tuple(f"{name}: {worker}" for name, worker in team.items())
    return ImportReport("<simulated>", "simulated", n_labels, n_labels, notes=notes)
