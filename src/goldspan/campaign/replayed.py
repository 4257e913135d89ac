"""The source "replay": a recorded crowd answers again, each worker what he answered then.

What the answers of a crowd would have cost with another plan, and how good the labels had been, can
so be tried on real answers before anybody is paid. Only answers that were recorded can be had: an
item has no more workers than it had then. Who is asked next is a seeded hash of item and worker,
and the clock is the number of answers times what one takes, one after the other, so that the same
ledger is always continued in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from goldspan.archives import RAISE
from goldspan.campaign.keys import key_of
from goldspan.campaign.protocols import Waiting
from goldspan.campaign.setting import Setting
from goldspan.campaign.simulated import LEASE_SECONDS, time_after
from goldspan.crowd import Crowd, read_crowd
from goldspan.crowd.gold import recode
from goldspan.errors import InputError
from goldspan.protocols import Ledger
from goldspan.tagger.features import hash64


class Replayed:
    """A recorded crowd.

    Args:
        setting: The campaign; `crowd.answers` of its plan is the record.
        ledger: Where it is kept.

    Raises:
        InputError: The record cannot be read, or its tags or items are not those of the campaign.
    """

    def __init__(self, setting: Setting, ledger: Ledger) -> None:
        self.setting, self.ledger = setting, ledger
        self.recorded = read_record(setting)
        self._n_answers = ledger.n_answers
        self._asked: set[tuple[str, str]] = set()
        self._barred: set[str] = set()

    def now(self) -> int:
        """Give the time that the answers took so far."""
        return time_after(self.setting, self._n_answers)

    def collect(self, name: str, items: Sequence[str]) -> Waiting | None:
        """Fill the open places with recorded answers, as far as there are any."""
        del name
        self._read()
        rows = self.ledger.slots().to_pylist()
        missing = {row["item"]: row["wanted"] - row["filled"] for row in rows}
        for item in items:
            self._fill(item, missing[item])
        return None

    def _fill(self, item: str, n: int) -> None:
        for worker in self._order(item):
            if n <= 0:
                return
            if worker not in self._barred and (item, worker) not in self._asked:
                n -= self._ask(item, worker)

    def _ask(self, item: str, worker: str) -> bool:
        """Get one answer; False where there is no place or no money for it."""
        if not self.ledger.lease(worker, self.now(), LEASE_SECONDS, 1, [item]):
            return False
        labels, given = self._answers[item][worker], time_after(self.setting, self._n_answers + 1)
        receipt = self.ledger.submit(key_of(item, worker), worker, item, labels, given)
        self._asked.add((item, worker))
        self._n_answers += not receipt.repeated
        return receipt.counts

    def _read(self) -> None:
        """Read from the ledger who has answered what, and who is asked nothing more."""
        crowd = self.ledger.crowd()
        names, people = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
        pairs = zip(crowd.latest.item.tolist(), crowd.latest.worker.tolist(), strict=True)
        self._asked = {(names[item], people[worker]) for item, worker in pairs}
        self._n_answers = len(crowd.latest)
        self._barred = set(self.ledger.records("bar"))

    def _order(self, item: str) -> list[str]:
        seed, known = self.setting.plan.seed, self._answers.get(item, {})
        return sorted(known, key=lambda worker: hash64(f"{seed}\0{item}\0{worker}"))

    @cached_property
    def _answers(self) -> dict[str, dict[str, list[str | None]]]:
        """The recorded labels by item and worker; None where a token was skipped."""
        crowd, answers = self.recorded, self.recorded.latest
        names, people = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
        tags, codes = [*crowd.tagset.tags, None], answers.codes.tolist()
        found: dict[str, dict[str, list[str | None]]] = {}
        offset = answers.offset.tolist()
        for n, (item, worker) in enumerate(zip(answers.item, answers.worker, strict=True)):
            labels = [tags[code] for code in codes[offset[n] : offset[n + 1]]]
            found.setdefault(names[item], {})[people[worker]] = labels
        return found


def read_record(setting: Setting) -> Crowd:
    """Read the recorded answers of a plan, in the tags of its task.

    Items that the pool lacks are passed over; items of the pool that nobody answered then find
    nobody now.

    Raises:
        InputError: The record cannot be read, has other tags, no item of the pool, or other tokens.
    """
    plan = setting.plan
    assert plan.crowd.answers is not None  # the plan was checked
    path, key = setting.folder / plan.crowd.answers, f"crowd.answers: {plan.crowd.answers}"
    # Single labels have no encoding that could be named.
    try:
        found = read_crowd(path, encoding=None if plan.is_single else plan.task.encoding)
    except InputError as error:
        raise InputError(str(error).replace(RAISE, "")) from None
    more = set(found.tagset.tags) - set(setting.codec.tags)
    if more:
        raise InputError(f"{key} has labels that the task has not: {', '.join(sorted(more))}")
    places, shared = setting.pool.place, 0
    for name, words in zip(found.item_ids.to_pylist(), found.tokens_list, strict=True):
        if name not in places:
            continue
        shared += 1
        if len(words) != len(setting.words[places[name]]):
            own = len(setting.words[places[name]])
            raise InputError(f"{key}: item {name} has {len(words)} tokens, and {own} in the pool")
    if not shared or not len(found.latest):
        raise InputError(f"{key} has no answer to an item of the pool: do the ids agree?")
    return recode(found, setting.codec)
