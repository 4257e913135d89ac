"""What a plan is about, read from its files: the pool, known labels, the truth of simulations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._arrays import count_in_rows, hash64
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import Labels
from goldspan.crowd import Crowd, CrowdBuilder, ReadOptions, read_crowd, read_layers
from goldspan.crowd.formats.texts import is_numbered
from goldspan.crowd.gold import attach_gold
from goldspan.crowd.layers import whole_ids
from goldspan.crowd.questions import AnsweredItem, answers_of_labels, crowds_of
from goldspan.errors import Fault, FaultsError, FormatError, InputError
from goldspan.money import from_micro
from goldspan.protocols import PoolItem
from goldspan.selection import Pool
from goldspan.selection.base import order_of
from goldspan.selection.files import read_pool
from goldspan.selection.pool import OnDemand
from goldspan.spans import (
    Codec,
    parse,
    to_tokens,
    write,
)
from goldspan.spans.text import to_chars


@dataclass(frozen=True, eq=False)
class CampaignInputs:
    """A plan with its files."""

    plan: Plan  # The plan
    folder: Path  # Where its files lie
    pool: Pool  # The items
    codec: Codec  # The tags
    control: dict[str, Any]  # Known labels of the gold questions by item id: tags, or by layer
    truth: Crowd | None = None  # The items with the gold that simulated workers know, or None
    # The same of a task of several layers, by layer
    truths: Mapping[str, Crowd] = field(default_factory=dict)
    # Items and their labels to measure the model on, or None
    test: tuple[Pool, Labels] | None = None
    notes: tuple[str, ...] = ()  # What was found out about the pool when it was read
    numbered: bool = False  # Whether items are known by their places in the file
    guideline: str = ""  # The instructions for annotators, in Markdown
    allow_code: tuple[str, ...] = ()  # Modules and files whose code its annotators may run

    @cached_property
    def ids(self) -> Sequence[str]:
        """The ids of all items."""
        return OnDemand.strings(self.pool.item_ids)

    @cached_property
    def daily_writes(self) -> int:
        """How many requests of one worker on one day may change something."""
        given = self.plan.page.daily_writes
        return min(500 + 10 * len(self.ids), 50_000) if given is None else given

    @cached_property
    def daily_joins(self) -> int:
        """How many new people may come in on one day where no provider says who they are."""
        given, plan = self.plan.page.daily_joins, self.plan
        most = min(100 + len(self.ids) * plan.redundancy.max, 10_000)
        return most if given is None else given

    @cached_property
    def costs(self) -> NDArray[np.int64]:
        """What an answer to every item costs, in millionths, int64 [n_items]."""
        if self.plan.is_single:
            return np.full(self.pool.n_items, self.plan.cost(1), np.int64)
        sizes, of = np.unique(self.pool.n_tokens, return_inverse=True)
        return np.array([self.plan.cost(n) for n in sizes.tolist()], np.int64)[of]

    @cached_property
    def words(self) -> Sequence[list[str]]:
        """The tokens to label of every item; a single label stands on the item's id."""
        if self.plan.is_single:
            return OnDemand(self.pool.n_items, self._own_id)
        return OnDemand(self.pool.n_items, self.pool.words)

    def tokens_of(self, item: int) -> tuple[list[str], list[int]]:
        """Return the tokens of an item of the pool, and their first characters in its text."""
        return self.words[item], [0] if self.plan.is_single else self.pool.starts_of(item)

    def _own_id(self, item: int) -> list[str]:
        return [self.ids[item]]

    @cached_property
    def key(self) -> str:
        """The campaign's id: its name, and a hash of the plan, if it has no other (`named`)."""
        text = json.dumps(self.plan.model_dump(mode="json"), sort_keys=True)
        return f"{self.plan.name}-{hash64(text) % 16**8:08x}"

    def named(self, key: str) -> CampaignInputs:
        """Return the same inputs under an id that stays when the plan changes."""
        found = copy(self)  # with all that was worked out
        vars(found)["key"] = key
        return found

    def ranks(self, use: str) -> NDArray[np.int64]:
        """Return the items in a random order, int64 [n_items]; other uses have other orders."""
        return order_of(self.pool.keys, self.plan.seed, use)

    def items(self) -> Iterator[PoolItem]:
        """Return the items as a ledger takes them, with their texts and the places of tokens."""
        pool, single = self.pool, self.plan.is_single
        documents = None if pool.crowd is None else pool.crowd.groups
        for n, (name, words) in enumerate(zip(self.ids, self.words, strict=True)):
            has_text = pool.text is not None
            yield PoolItem(
                name,
                tuple(words),
                int(self.costs[n]),
                None if documents is None else documents[n].as_py(),
                str(pool.given[n]) if has_text else None,
                tuple(pool.starts_of(n)) if has_text and not single else None,
                pool.cells(n),
            )


def read_inputs(
    plan: Plan, folder: str | Path = ".", *, allow_code: Sequence[str] = ()
) -> CampaignInputs:
    """Read the files of a plan.

    Args:
        plan: The plan.
        folder: Where its files lie: the folder of the plan's own file.
        allow_code: Modules, and paths of files, whose code its annotators may run.

    Raises:
        FaultsError: Files are missing or do not fit; all that is wrong is listed.
    """
    faults: list[Fault] = []
    base = Path(folder)
    read = _attempt("pool.file", faults, lambda: _pool(plan, base))
    if read is None:
        raise FaultsError(faults, "the plan's files are refused")
    pool, items = read
    facts = {
        "notes": items.import_report.notes,
        "numbered": is_numbered(items),
        "allow_code": tuple(allow_code),
    }
    bare = CampaignInputs(plan, base, pool, plan.codec, {}, **facts)
    items = items.unanswered(plan.codec, items.item_ids if plan.is_single else None)
    if items.texts is None and pool.crowd is not None:
        starts = None if plan.is_single else pool.crowd.token_start
        items = replace(items, texts=pool.crowd.texts, token_start=starts)
    control = _attempt("control.gold", faults, lambda: _control(bare, items)) or {}
    truth: Crowd | None = None
    truths: dict[str, Crowd] = {}
    if plan.task.layers:
        truths = _attempt("crowd.truth", faults, lambda: _truths(bare)) or {}
    else:
        truth = _attempt("crowd.truth", faults, lambda: _truth(bare, items))
    test = _attempt("evaluate.file", faults, lambda: _test(bare))
    guideline = _attempt("page.instructions", faults, lambda: _guideline(plan, base)) or ""
    found = replace(
        bare, control=control, truth=truth, truths=truths, test=test, guideline=guideline
    )
    faults += [Fault(message) for message in _too_little(found)]
    faults += [Fault(message) for message in _untrained(found)]
    if faults:
        raise FaultsError(faults, "the plan's files are refused")
    return found


def _attempt(key: str, faults: list[Fault], read: Callable[[], Any]) -> Any:
    try:
        return read()
    except InputError as error:
        faults.append(Fault(f"{key}: {error.message}"))


def _pool(plan: Plan, folder: Path) -> tuple[Pool, Crowd]:
    asked = plan.pool
    read = read_pool(
        str(folder / asked.file), asked.format, text=asked.text, id=asked.id,
        document=asked.document, tokens=plan.task.tokens,
    )  # fmt: skip
    pool = Pool.of(read)
    if pool.text is None and not plan.is_single:
        raise InputError("spans are found in texts, and this is a table of attributes")
    empty = [] if pool.text is None else np.flatnonzero(pool.n_tokens == 0).tolist()
    if empty or not pool.n_items:
        raise InputError(f"item {pool.item_ids[empty[0]]} has no words" if empty else "is empty")
    dots = pc.is_in(pool.item_ids, value_set=pa.array([".", ".."], pa.string()))
    if plan.crowd.is_served and pc.any(dots).as_py():
        raise InputError('an item that is called "." or ".." has no address: give it another id')
    return pool, read


def _guideline(plan: Plan, folder: Path) -> str:
    """Return the instructions: the plan's text, or that of the Markdown file it names."""
    given = plan.page.instructions
    if given is None or "\n" in given or not given.endswith(".md"):
        return given or ""
    try:
        return (folder / given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {given}: {error}") from None


def _gold(inputs: CampaignInputs, items: Crowd, file: str) -> Crowd:
    """Return the items with the gold of a file."""
    options = ReadOptions(encoding=inputs.codec.encoding)
    path = str(inputs.folder / file)
    try:
        found = attach_gold(items, path, options)
    except FormatError as error:
        if inputs.plan.is_single or any(fault.kind != "tokens" for fault in error.faults):
            raise
        # The same texts, cut in another way: spans are the same characters.
        known = _on_tokens_of(items, read_crowd(path, encoding=options.encoding))
        found = attach_gold(items, known, options)
    reject_other_labels(inputs, found, file)
    return found


def reject_other_labels(inputs: CampaignInputs, found: Crowd, file: str) -> None:
    """Reject a file with labels that the task has not."""
    more = set(found.tagset.tags) - set(inputs.codec.tags)
    if more:
        raise InputError(f"{file} has labels that the task has not: {', '.join(sorted(more))}")


def _on_tokens_of(items: Crowd, known: Crowd) -> Crowd:
    """Return the gold of texts on the tokens by which items have them; others stay as they are."""
    made = CrowdBuilder(ReadOptions(encoding=known.tagset.encoding))
    faults: list[Fault] = []
    place = items.item_ids.to_pylist()
    own = {
        name: (text, tokens, starts)
        for name, text, tokens, starts in zip(
            place, _texts(items), items.tokens_list, _starts(items), strict=True
        )
    }
    gold = known.tagged_by_id()
    rows = zip(gold, _texts(known), known.tokens_list, _starts(known), strict=True)
    for name, text, tokens, starts in rows:
        mine, tags = own.get(name), gold[name]
        complete = [tag for tag in tags if tag is not None]
        unknown = len(complete) < len(tags)
        if mine is None or text is None or mine[0] != text or not starts or unknown:
            made.add_item(name, tokens, text=text, gold=tags)
            continue
        bounds = [(a, a + len(word)) for a, word in zip(starts, tokens, strict=True)]
        to = [(a, a + len(word)) for a, word in zip(mine[2], mine[1], strict=True)]
        try:
            spans = to_chars(text, parse(complete, known.tagset.encoding), tokens=bounds)
            found = to_tokens(text, spans, tokens=to)
        except FaultsError as error:
            faults += [replace(fault, item=name) for fault in error.faults]
            continue
        made.add_item(name, mine[1], gold=write(found, len(to), known.tagset.encoding))
    if faults:
        raise FaultsError(faults)
    return made.build()


def _texts(crowd: Crowd) -> list[str | None]:
    return [None] * crowd.n_items if crowd.texts is None else crowd.texts.to_pylist()


def _starts(crowd: Crowd) -> list[list[int]]:
    bounds, starts = crowd.offsets.tolist(), crowd.token_start
    return [[] if starts is None else starts[a:b].tolist() for a, b in pairwise(bounds)]


def _truth(inputs: CampaignInputs, items: Crowd | None) -> Crowd | None:
    file = inputs.plan.crowd.truth
    if file is None or items is None:
        return None
    from goldspan.simulation.base import known_truth

    return known_truth(_gold(inputs, items, file))


def _gold_answers(inputs: CampaignInputs, file: str) -> dict[str, dict[str, Any]]:
    """Return the known labels of a file, in all layers, by item of the pool."""
    asked, pool = inputs.plan.task.questions, inputs.pool
    assert asked is not None
    path = str(inputs.folder / file)
    read = {  # one label each, also in a list, does not say that there could not be several
        one.name: read_layers(
            path, [one.name], several="labels" if one.kind == "labels" else "leave-out"
        )[one.name]
        for one in asked.each
    }
    faults: list[Fault] = []
    for crowd in read.values():
        for name, text in zip(crowd.item_ids.to_pylist(), _texts(crowd), strict=True):
            place = pool.place.get(name)
            if place is not None and text is not None and text != str(pool.given[place]):
                faults.append(Fault("has another text than in the pool", item=name))
    if faults:
        raise FaultsError(faults)
    layers = {name: crowd.select_items(_in_pool(crowd, pool)) for name, crowd in read.items()}
    codes = {name: crowd.gold_tagged.codes for name, crowd in layers.items()}
    known = answers_of_labels(layers, codes, lambda item: inputs.tokens_of(pool.place[item]))
    found = {}
    needed = {one.name for one in asked.each if one.required or one.kind != "label"}
    for name, answer in known.items():
        if not needed <= answer.keys():  # not all of it is known
            continue
        words = inputs.words[pool.place[name]]
        try:
            found[name] = asked.clean(answer, len(words), None if inputs.plan.is_single else words)
        except InputError as error:
            faults.append(Fault(error.message, item=name))
    if faults:
        raise FaultsError(faults)
    return found


def _in_pool(crowd: Crowd, pool: Pool) -> NDArray[np.bool_]:
    """Return which items of a crowd are, or are parts of, items of a pool, bool [n_items]."""
    found = pc.is_in(whole_ids(crowd), pa.array([*pool.place], pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _truths(inputs: CampaignInputs) -> dict[str, Crowd]:
    """Return the gold that simulated workers know, by layer."""
    file, asked = inputs.plan.crowd.truth, inputs.plan.task.questions
    if file is None or asked is None:
        return {}
    known = _gold_answers(inputs, file)
    missing = [name for name in inputs.ids if name not in known]
    if missing:
        raise InputError(f"{file} lacks {len(missing)} items of the pool, such as {missing[0]}")
    items = [
        AnsweredItem(one.id, one.tokens, (), one.group, one.text, one.token_start, known[one.id])
        for one in inputs.items()
    ]
    return crowds_of(asked, items, ())


def _control(inputs: CampaignInputs, items: Crowd | None) -> dict[str, Any]:
    control = inputs.plan.control
    if control is None or control.gold is None or items is None:
        return {}
    if inputs.plan.task.layers:
        known = _gold_answers(inputs, control.gold)
        order = [inputs.ids[n] for n in inputs.ranks("control").tolist()]
        names = [name for name in order if name in known]
        if len(names) < control.n:
            raise InputError(f"holds labels of {len(names)} items, and control.n is {control.n}")
        return {name: known[name] for name in names[: control.n]}
    every = _gold(inputs, items, control.gold)
    unknown = count_in_rows(every.gold_tagged.codes < 0, every.offsets)
    ranks = inputs.ranks("control")
    usable = ranks[unknown[ranks] == 0]
    if len(usable) < control.n:
        raise InputError(f"holds labels of {len(usable)} items, and control.n is {control.n}")
    chosen = every.select_items(usable[: control.n])
    tags = chosen.tagset.decode_complete(chosen.gold_tagged)
    return dict(zip(chosen.item_ids.to_pylist(), tags, strict=True))


def _test(inputs: CampaignInputs) -> tuple[Pool, Labels] | None:
    name = inputs.plan.evaluate.file
    if name is None:
        return None
    path = str(inputs.folder / name)
    if not inputs.plan.is_single:
        crowd = read_crowd(path, encoding=inputs.codec.encoding)
        return Pool.of(crowd), crowd.tagset.decode_complete(crowd.gold_tagged)
    read = read_pool(path)
    given = read.attributes
    labels = (
        [] if given is None or "label" not in given.column_names else given["label"].to_pylist()
    )
    if not labels or not {*map(str, labels)} <= set(inputs.codec.tags):
        raise InputError('a test of single labels is a .jsonl file with "text" and "label"')
    return Pool.of(read), [[str(label)] for label in labels]


def _untrained(inputs: CampaignInputs) -> Iterator[str]:
    from goldspan.campaign.model import model_faults  # loads what trains

    yield from model_faults(inputs.plan, inputs.pool, inputs.test)


def _too_little(inputs: CampaignInputs) -> Iterator[str]:
    plan, money = inputs.plan, inputs.plan.cap
    least = int(inputs.costs.min()) * plan.redundancy.min
    if money < least:
        yield (
            f"budget.money: {from_micro(money)} do not pay for the cheapest item, whose "
            f"{plan.redundancy.min} answers cost {from_micro(least)}"
        )
    if len(inputs.control) >= inputs.pool.n_items:
        yield "control.n: all items of the pool are gold questions, and none is left to label"
