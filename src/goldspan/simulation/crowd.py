"""A simulated crowd: teams in words, who answers what, and the answers."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goldspan._arrays import Keys, keys_of, rows_of
from goldspan.crowd import Answers, Crowd
from goldspan.crowd.layers import whole_index
from goldspan.crowd.source import ImportReport
from goldspan.errors import InputError, UnknownNameError
from goldspan.params import IsA, Number, Parameter, parameters
from goldspan.plugins import load, plugins
from goldspan.protocols import Progress, Runner, Serial
from goldspan.simulation.base import (
    Codes,
    Draws,
    Floats,
    Habit,
    Perfect,
    SimulatedWorker,
    SimulationContext,
    TruthTagger,
    known_truth,
)
from goldspan.simulation.registry import WORKERS
from goldspan.spans import Tagged
from goldspan.spans.scoring import score_codes
from goldspan.tagger import CRF
from goldspan.tagger.base import legal_codes

# --------------------------------------------------------------------------------------------------
# Workers in text: `crf_noise(0.05)`, `drift(flip(0.05), flip(0.4))`, `flip(0.05) + misses(0.3)`.


def parse_worker(text: str) -> SimulatedWorker:
    """Read a worker.

    Raises:
        InputError: It is not written like one, or an argument is wrong.
        UnknownNameError: There is no such kind of worker.

    >>> parse_worker("flip(0.05) + misses(0.3, type=PER)")
    Misses(base=Flip(base=Perfect(), p=0.05, labels='all'), p=0.3, type='PER')
    """
    source = text.strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd literals: their values are checked anyhow
            tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"worker {text!r}: {_HINT}") from None
    return _worker(tree, source)


def get_worker(name: str) -> type[SimulatedWorker]:
    """Import a kind of worker."""
    place = WORKERS[name][0] if name in WORKERS else plugins("goldspan.workers").get(name)
    if place is None:
        raise UnknownNameError("kind of worker", name, [*WORKERS, *plugins("goldspan.workers")])
    found: type[SimulatedWorker] = load(place)
    return found


def signature(kind: type[SimulatedWorker]) -> str:
    """Write the arguments of a kind of worker with their defaults."""
    words = [
        one.name if one.is_required else f"{one.name}={one.default}" for one in arguments(kind)
    ]
    return f"{kind.name}({', '.join(words)})" if words else kind.name


_HINT = (
    "it must look like flip(0.1), drift(flip(0.05), flip(0.4)) or flip(0.05) + misses(0.3); ids "
    "and labels that are not words must be in quotes, copier('001')"
)


def arguments(kind: type[SimulatedWorker]) -> list[Parameter]:
    """Return the parameters that text can set, also by place."""
    not_in_text = {one.name for one in fields(kind) if one.kw_only}
    return [one for one in parameters(kind) if one.name not in not_in_text]


def _worker(node: ast.expr, source: str) -> SimulatedWorker:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _chained(_worker(node.left, source), _worker(node.right, source))
    if isinstance(node, ast.Name):
        return _build(node.id, [], [], source)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        named = [(keyword.arg or "**", keyword.value) for keyword in node.keywords]
        return _build(node.func.id, node.args, named, source)
    raise InputError(f"worker {ast.get_source_segment(source, node)!r}: {_HINT}")


def _chained(base: SimulatedWorker, habit: SimulatedWorker) -> SimulatedWorker:
    if not isinstance(habit, Habit) or habit.base != Perfect():
        raise InputError(f"{habit} cannot follow a plus: only a habit can, such as misses(0.3)")
    return replace(habit, base=base)


def _build(
    name: str, placed: list[ast.expr], named: list[tuple[str, ast.expr]], source: str
) -> SimulatedWorker:
    kind = get_worker(name)
    known = {one.name: one for one in arguments(kind)}
    usage = f"it is written {signature(kind)}"
    if len(placed) > len(known):
        raise InputError(f"{name} takes {len(known)} arguments, not {len(placed)}: {usage}")
    given = dict(zip(known, placed, strict=False))
    for key, node in named:
        if key not in known:
            raise InputError(f"{name} has no argument {key!r}: {usage}")
        if key in given:
            raise InputError(f"{name}: argument {key!r} appears twice: {usage}")
        given[key] = node
    missing = [key for key, one in known.items() if one.is_required and key not in given]
    if missing:
        raise InputError(f"{name} needs {' and '.join(missing)}: {usage}")
    return kind(**{key: _value(node, known[key], source) for key, node in given.items()})


def _value(node: ast.expr, parameter: Parameter, source: str) -> Any:
    """Read an argument as what its field holds: a worker, a number or a string."""
    kinds = [kind for rule in parameter.rules if isinstance(rule, IsA) for kind in rule.classes]
    if SimulatedWorker in kinds:
        return _worker(node, source)
    text = ast.get_source_segment(source, node) or ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if parameter.may_be_none and text.lower() == "none":
        return None
    if any(isinstance(rule, Number) for rule in parameter.rules):
        try:
            return ast.literal_eval(node)
        except ValueError:
            return text
    return text


# --------------------------------------------------------------------------------------------------
# From a list of workers, in text or as objects, to workers by id.


Entry = str | SimulatedWorker

MOST_WORKERS = 1_000_000
"""Larger teams are refused: each worker has a row of answers and random numbers."""

_ENTRY = re.compile(
    r"\s*(?:(?P<id>[\w.-]+)\s*=)?\s*(?P<worker>.*?)\s*(?:\s[x×]\s*(?P<count>\d+))?\s*", re.DOTALL
)


def read_team(workers: Sequence[Entry] | Mapping[str, Any]) -> dict[str, SimulatedWorker]:
    """Read the workers of a crowd.

    Args:
        workers: A list of workers in text or as objects; in text a worker may have an id, `ana =
            flip(0.1)`, and a number of workers alike, `flip(0.1) x3`. Or a mapping from an id to a
            worker. Workers without an id are w1, w2, … by their place; several of one id are ana1,
            ana2, ….

    Raises:
        InputError: There is no worker, an id appears twice, a number is not one, or there are more
            than a million workers.
        UnknownNameError: There is no such kind of worker.

    >>> {name: str(worker) for name, worker in read_team(["flip(.1) x2", "ana = acc"]).items()}
    {'w1': 'flip(0.1)', 'w2': 'flip(0.1)', 'ana': 'acc'}
    """
    if isinstance(workers, str | SimulatedWorker):
        workers = [workers]
    if isinstance(workers, Mapping):
        entries = [(str(name), _team_member(one), 1) for name, one in workers.items()]
    else:
        entries = [*map(_read, workers)]
    team: dict[str, SimulatedWorker] = {}
    place = 0
    for name, worker, count in entries:
        if place + count > MOST_WORKERS:
            raise InputError(f"there are more than {MOST_WORKERS:,} workers: simulate fewer")
        for n in range(1, count + 1):
            place += 1
            own = f"w{place}" if not name else f"{name}{n}" if count > 1 else name
            if own in team:
                raise InputError(f"two workers have the id {own!r}: give them different ones")
            team[own] = worker
    if not team:
        raise InputError('there is no worker: give at least one, such as "flip(0.1)"')
    return team


def _read(entry: Entry) -> tuple[str, SimulatedWorker, int]:
    if not isinstance(entry, str):
        return "", _team_member(entry), 1
    parts = _ENTRY.fullmatch(entry)
    assert parts is not None  # every part may be empty
    digits = parts["count"] or "1"
    # Of a very long number it is enough that it is too large
    count = int(digits) if len(digits) < 20 else MOST_WORKERS + 1
    worker = parse_worker(parts["worker"])
    if count < 1:
        raise InputError(f"the number of workers {worker} must be at least 1, not {count}")
    return parts["id"] or "", worker, count


def _team_member(value: Any) -> SimulatedWorker:
    if isinstance(value, str):
        return parse_worker(value)
    if not isinstance(value, SimulatedWorker):
        raise InputError(f"a worker must be text such as 'flip(0.1)' or an object, not {value!r}")
    return value


# --------------------------------------------------------------------------------------------------
# Who answers what: every item exactly k different workers, the workloads as wished.


Workload = str | Mapping[str, float] | Sequence[float]
WORKLOADS = ("equal", "zipf")
_SURE = 1 - 1e-9
_BLOCK = 1 << 20
"""Numbers of (item, worker) that are in memory at once."""


def allocate(
    item_keys: Keys, workers: Sequence[str], per_item: int, workload: Workload, seed: int
) -> NDArray[np.bool_]:
    """Choose the workers of every item."""
    # item_keys uint64 [n_items]; returns bool [n_items, n_workers], k in every row
    weights = weights_of(workload, workers)
    n_able = int((weights > 0).sum())
    if isinstance(per_item, bool) or not 1 <= per_item <= n_able:
        raise InputError(
            f"per_item must lie in 1 … {n_able}, the number of workers who want work, not "
            f"{per_item}: every item is answered by that many different workers"
        )
    wanted = shares(weights, per_item)
    size = max(1, _BLOCK // len(workers))
    blocks = [item_keys[a : a + size] for a in range(0, len(item_keys), size)]
    chosen = [_choose(keys, workers, wanted, seed) for keys in blocks]
    return np.concatenate([np.zeros((0, len(workers)), np.bool_), *chosen])


def weights_of(workload: Workload, workers: Sequence[str]) -> Floats:
    """Return how much work every worker wants, float64 [n_workers], in any unit."""
    if isinstance(workload, str):
        if workload not in WORKLOADS:
            raise UnknownNameError("workload", workload, WORKLOADS, "or give weights")
        rank = np.arange(1, len(workers) + 1)
        return np.ones(len(workers)) if workload == "equal" else 1 / rank
    if isinstance(workload, Mapping):
        for name in workload:
            if name not in workers:
                raise UnknownNameError("worker in workload", name, workers)
        workload = [workload.get(name, 1.0) for name in workers]
    weights = np.asarray(workload, np.float64)
    if weights.shape != (len(workers),):
        raise InputError(f"workload must be {len(workers)} numbers, one per worker")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError(f"workload must be numbers of at least 0, not {workload}")
    if not weights.any():
        raise InputError("every workload is 0: at least one worker must want work")
    return weights


def shares(weights: Floats, per_item: int) -> Floats:
    """Return the share of items that every worker answers, float64 [n_workers], summing up to k.

    Who would have to answer more than all items answers all, and leaves the rest to the others.
    """
    found = np.zeros(len(weights))
    open_ = weights > 0
    left = float(per_item)
    while open_.any():
        found[open_] = left * weights[open_] / weights[open_].sum()
        full = open_ & (found >= _SURE)
        if not full.any():
            break
        found[full] = 1.0
        left -= full.sum()
        open_ &= ~full
    return found


def _choose(
    item_keys: Keys, workers: Sequence[str], wanted: Floats, seed: int
) -> NDArray[np.bool_]:
    """Choose for a block of items."""
    n_items = len(item_keys)
    single = np.arange(n_items + 1)
    chosen = np.repeat((wanted == 1.0)[None], n_items, axis=0)
    drawn = np.flatnonzero((wanted > 0) & (wanted < 1.0))
    if not len(drawn):
        return chosen
    k = round(float(wanted[drawn].sum()))
    of_worker = [
        Draws(seed, workers[w], item_keys, single).per_item("turn") for w in drawn.tolist()
    ]
    order = np.argsort(np.stack(of_worker, axis=1), axis=1, kind="stable")
    reach = np.minimum(np.cumsum(wanted[drawn][order], axis=1), k)
    reach[:, -1] = k
    start = Draws(seed, "", item_keys, single).per_item("start")[:, None]
    passed = np.ceil(reach - start)
    hit = np.diff(passed, axis=1, prepend=0.0) > 0
    rows = np.broadcast_to(np.arange(n_items)[:, None], order.shape)
    chosen[rows[hit], drawn[order[hit]]] = True
    return chosen


# --------------------------------------------------------------------------------------------------
# How good every worker is against the gold: what a simulation made, or a real crowd with gold.


class WorkerRates(NamedTuple):
    """One worker against the gold.

    Attributes:
        worker: Id.
        n_answers: Items answered.
        n_tokens: Tokens labelled whose gold is known.
        accuracy: Share of these tokens with the right label; NaN without any.
        f1: Of spans; NaN for PLAIN labels, or if neither side has a span.
    """

    worker: str
    n_answers: int
    n_tokens: int
    accuracy: float
    f1: float


def measure_workers(crowd: Crowd) -> list[WorkerRates]:
    """Measure all workers, in the order of the crowd.

    Raises:
        InputError: The crowd has no gold.

    >>> from goldspan.simulation import draw_truth, simulate_crowd
    >>> measure_workers(simulate_crowd(draw_truth(10), ["perfect"]))[0].accuracy
    1.0
    """
    codes = crowd.gold_tagged.codes
    return [_measure(crowd, codes, w) for w in range(crowd.n_workers)]


def _measure(crowd: Crowd, gold: NDArray[np.int16], w: int) -> WorkerRates:
    own = crowd.by_worker[w]
    answers = crowd.latest.take(own)
    truth = gold[rows_of(crowd.offsets, answers.item)[1]]
    known = (truth >= 0) & (answers.codes >= 0)
    n_known = int(known.sum())
    n_right = int(((truth == answers.codes) & known).sum())
    f1 = np.nan
    if not crowd.tagset.rules.is_plain:
        none = np.int16(-1)
        left = Tagged(np.where(known, truth, none), answers.offset)
        right = Tagged(np.where(known, answers.codes, none), answers.offset)
        found = score_codes(left, right, crowd.tagset)
        if found.micro.n_predicted + found.micro.n_true:
            f1 = found.f1
    accuracy = n_right / n_known if n_known else np.nan
    n_answers = len(crowd.whole_items.by_worker[w])
    return WorkerRates(crowd.worker_ids[w].as_py(), n_answers, n_known, accuracy, f1)


# --------------------------------------------------------------------------------------------------
# Making a crowd: a truth, workers, who answers what, and their answers.


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
            {"ana": "flip(0.1)"}.
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
    context = SimulationContext(
        crowd, int(seed), team, runner=runner or Serial(), progress=progress
    )
    if tagger is not None:
        own = tagger if isinstance(tagger, TruthTagger) else TruthTagger.of(tagger, crowd)
        if own.tagset != crowd.tagset or not np.array_equal(own.features.offsets, crowd.offsets):
            raise InputError("the TruthTagger was made for other items: make one of this truth")
        context.taggers[""] = own
    for worker in team.values():
        worker.prepare(context)
    ids = list(team)
    chosen = np.ones((crowd.n_items, len(ids)), np.bool_)
    if per_item is None and workload != "equal":
        raise InputError("workload needs per_item: without it every worker answers every item")
    if per_item is not None:
        whole_keys = keys_of(crowd.whole_items.item_ids)
        chosen = allocate(whole_keys, ids, per_item, workload, context.seed)[whole_index(crowd)[1]]
    legal = legal or crowd.wholes is not None  # of overlapping spans only well-formed ones are told
    parts = [(name, np.flatnonzero(column)) for name, column in zip(ids, chosen.T, strict=True)]
    # A worker knows of no runner and tells nobody: it may be on another machine.
    alone = replace(context, runner=Serial(), progress=None)
    codes = context.runner.map(_answer, parts, (alone, legal))
    answers = _gather(context, parts, codes, times=times)
    n_labels = int((answers.codes >= 0).sum())
    notes = tuple(f"{name}: {worker}" for name, worker in team.items())
    report = ImportReport("<simulated>", "simulated", n_labels, n_labels, notes=notes)
    worker_ids = pa.array(ids, pa.string())
    return replace(crowd, worker_ids=worker_ids, answers=answers, import_report=report)


def _answer(part: Part, params: tuple[SimulationContext, bool]) -> Codes:
    """Let one worker answer their items."""
    (name, items), (context, legal) = part, params
    work = context.assign(name, items)
    codes = np.asarray(context.workers[name].answer(work), np.int16)
    if codes.shape != work.truth.shape:
        raise InputError(
            f"worker {name} gave labels of shape {codes.shape}, not {work.truth.shape}"
        )
    if not legal:
        return codes
    repaired = legal_codes(Tagged(codes, work.offsets), context.codec)[0]
    return np.where(codes < 0, codes, repaired)


def _gather(
    context: SimulationContext, parts: list[Part], codes: list[Codes], *, times: bool
) -> Answers:
    """Put the workers' answers into one table, by item and then by worker."""
    item = np.concatenate([items for _, items in parts])
    worker = np.repeat(np.arange(len(parts)), [len(items) for _, items in parts])
    offset = np.concatenate([[0], np.cumsum(np.diff(context.truth.offsets)[item])])
    submitted = None
    if times:
        moments = np.concatenate([context.assign(*part).moments for part in parts])
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
