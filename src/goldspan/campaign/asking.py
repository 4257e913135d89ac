"""Which answers a round buys, and of whom: what each is expected to gain for its price.

With `redundancy.by = "gain"` the first round asks a few answers about a few items. From then on
all items of the pool compete, also those that nobody was asked about, and all workers who can be
asked: models, people, recorded and simulated workers. An answer's value is

* the expected gain of this worker about this item: how many more tokens a label drawn from the
  posterior gets right (`goldspan.workers.stopping`),
* times what it adds to the effective number of answers of the worker's family,
* divided by its price.

A round buys the answers of largest value, one of an item; beside it the item may get one of a
model, which takes nobody's time. Where models have more to say than a round asks people, the round
is theirs alone: people are asked when the labels know what models said. The posterior is that of
the campaign's own method on the whole pool; no gold is looked at but that of gold questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan._draws import hash64
from goldspan.aggregation import Consensus
from goldspan.aggregation.families import Families
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.judging import GAIN
from goldspan.campaign.protocols import Label, Offers, Picks
from goldspan.crowd import Crowd
from goldspan.workers.redundancy import IDLE, FamilyAnswers
from goldspan.workers.stopping import (
    Floats,
    answer_counts,
    item_gain,
    learn_habits,
    pair_gain,
    posterior_of,
)

if TYPE_CHECKING:
    from goldspan.store import SqlLedger

CLOSER = 20_000
"""So many items, the most promising for the mean worker, are looked at worker by worker."""
_FREE = 1e-3
"""What costs nothing counts as this part of a millionth: the better of two is first."""
_NOTHING = 1e-9
"""An answer that is expected to gain no more is not bought."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AskingByGain:
    """Chooses the answers of a round; a function of its arguments and of what the ledger holds."""

    inputs: CampaignInputs
    ledger: SqlLedger

    def ask(self, crowd: Crowd, result: Consensus, label: Label, left: int) -> Picks:
        """Choose the answers that promise most for their price."""
        habits = learn_habits(result)
        probs = posterior_of(result, habits)
        promised = item_gain(probs, crowd.offsets, habits.mean)
        closed = pc.is_in(crowd.item_ids, pa.array([*self.inputs.control], pa.string()))
        promised[closed.to_numpy(zero_copy_only=False)] = 0
        told = answer_counts(crowd)
        promised[told >= self.inputs.plan.redundancy.max] = 0
        order = np.argsort(-promised, kind="stable")[:CLOSER]
        order = order[promised[order] > 0]

        names = crowd.item_ids.take(pa.array(order)).to_pylist()
        offers = label.offers(names)
        item = _coded(offers.items, crowd.item_ids)
        worker = _coded(offers.workers, crowd.worker_ids)
        tables = np.concatenate([habits.tables, habits.mean[None]])  # -1 is the mean worker
        gain = pair_gain(probs, crowd.offsets, tables, item, worker)
        if result.families is not None:
            added = _added(result.families, crowd, offers.workers, item)
            gain = np.where(added < IDLE, 0.0, gain * added)
        counts = dict(zip(names, told[order].tolist(), strict=True))
        return self._cheapest(offers, gain, counts, left)

    def _cheapest(
        self, offers: Offers, gain: Floats, counts: Mapping[str, int], left: int
    ) -> Picks:
        """Take the answers of largest gain per price as far as money reaches."""
        batch, most = self.inputs.plan.select.batch, self.inputs.plan.redundancy.max
        room, whom, models = dict(offers.room), dict[str, str](), dict[str, str]()
        is_dear = False
        for n in self._order(offers, gain):
            if len(whom) == batch:  # what models promise less than people wait for the next round
                break
            item, worker, price = offers.items[n], offers.workers[n], offers.prices[n]
            asked = models if worker in offers.models else whom
            n_asked = (item in models) + (item in whom)
            if item in asked or counts[item] + n_asked >= most or room.get(worker, 1) <= 0:
                continue
            if price > left:
                is_dear = True
                continue
            asked[item] = worker
            left -= price
            if worker in room:
                room[worker] -= 1
        if len(models) >= batch:
            whom = {}
        stopped = "" if models or whom else "money" if is_dear else GAIN
        return self._places(whom, models, stopped)

    def _places(self, whom: dict[str, str], models: dict[str, str], stopped: str) -> Picks:
        """Return the items of the answers, and how many each then wants."""
        before = {row["item"]: row["wanted"] for row in self.ledger.slots().to_pylist()}
        every = dict.fromkeys([*models, *whom])
        new = tuple(item for item in every if item not in before)
        wanted = {i: before.get(i, 0) + (i in models) + (i in whom) for i in every}
        more = {item: n for item, n in wanted.items() if item in before or n > 1}
        return Picks(new, (GAIN,) * len(new), stopped, more, whom, models)

    def _order(self, offers: Offers, gain: Floats) -> list[int]:
        """Sort the answers by value; those of equal value in an order that the seed decides."""
        kept = np.flatnonzero(gain > _NOTHING)
        prices = np.maximum(np.array(offers.prices, np.float64)[kept], _FREE)
        value = np.round(np.log(gain[kept] / prices), 9)  # equal but for the last bits: a tie
        seed = self.inputs.plan.seed
        drawn = [hash64(f"{seed}\0{offers.items[n]}\0{offers.workers[n]}") for n in kept.tolist()]
        order = np.lexsort((np.array(drawn, np.uint64), -value))
        return [int(n) for n in kept[order]]


def _coded(names: list[str], ids: pa.Array) -> Ints:
    """Return the places of names among ids, int64 [n], -1 for those that are not there."""
    place = pc.fill_null(pc.index_in(pa.array(names, pa.string()), value_set=ids), -1)
    return np.asarray(place.to_numpy(zero_copy_only=False), np.int64)


def _added(kin: Families, crowd: Crowd, workers: list[str], item: Ints) -> Floats:
    """Return what one more answer adds to the effective number of its family, float64 [n]."""
    known = crowd.worker_ids.to_pylist()
    ids = pa.array([*known, *sorted({*workers} - {*known})], pa.string())
    every = kin.on(ids)
    counted = FamilyAnswers.of(crowd, every)
    assert counted is not None
    return counted.added(item, every.number[_coded(workers, ids)])
