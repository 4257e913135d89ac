"""Which answers a round buys, and of whom: what each is expected to gain for its price.

With `redundancy.by = "gain"` the first round asks a few answers about a few items. From then on
all items of the pool compete, also those that nobody was asked about, and all workers who can be
asked: models, people, recorded and simulated workers. An answer's value is

* the expected gain of this worker about this item: how many more tokens a label drawn from the
  posterior gets right (`goldspan.workers.stopping`),
* times what it adds to the effective number of answers of the worker's family,
* divided by its price.

A round buys the answers of largest value, one of an item. The posterior is that of the campaign's
own method on the whole pool; no gold is looked at but that of gold questions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goldspan.aggregation import Consensus
from goldspan.aggregation.families import Families
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.judging import GAIN
from goldspan.campaign.protocols import Label, Offers, Picks
from goldspan.crowd import Crowd
from goldspan.protocols import Ledger
from goldspan.tagger.features import hash64
from goldspan.workers.redundancy import IDLE, FamilyAnswers
from goldspan.workers.stopping import (
    Floats,
    answer_counts,
    item_gain,
    learn_habits,
    pair_gain,
    posterior_of,
)

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
    ledger: Ledger

    def ask(self, crowd: Crowd, result: Consensus, label: Label, left: int) -> Picks:
        """Choose the answers that promise most for their price.

        Args:
            crowd: The whole pool, with the answers so far.
            result: What they say.
            label: Who asks.
            left: Money, in millionths.
        """
        habits = learn_habits(result)
        probs = posterior_of(result, habits)
        promised = item_gain(probs, crowd.offsets, habits.mean)
        closed = pc.is_in(crowd.item_ids, pa.array([*self.inputs.control], pa.string()))
        promised[closed.to_numpy(zero_copy_only=False)] = 0
        promised[answer_counts(crowd) >= self.inputs.plan.redundancy.max] = 0
        order = np.argsort(-promised, kind="stable")[:CLOSER]
        order = order[promised[order] > 0]

        offers = label.offers(crowd.item_ids.take(pa.array(order)).to_pylist())
        item = _coded(offers.items, crowd.item_ids)
        worker = _coded(offers.workers, crowd.worker_ids)
        tables = np.concatenate([habits.tables, habits.mean[None]])  # -1 is the mean worker
        gain = pair_gain(probs, crowd.offsets, tables, item, worker)
        if result.families is not None:
            added = _added(result.families, crowd, offers.workers, item)
            gain = np.where(added < IDLE, 0.0, gain * added)
        return self._cheapest(offers, gain, left)

    def _cheapest(self, offers: Offers, gain: Floats, left: int) -> Picks:
        """Take the answers of largest gain per price, one of an item, as far as money reaches."""
        wanted = {row["item"]: row["wanted"] for row in self.ledger.slots().to_pylist()}
        room, asked, n_counted = dict(offers.room), dict[str, str](), 0
        is_dear = False
        for n in self._order(offers, gain):
            item, worker, price = offers.items[n], offers.workers[n], offers.prices[n]
            if n_counted == self.inputs.plan.select.batch and worker not in offers.models:
                continue
            if item in asked or room.get(worker, 1) <= 0:
                continue
            if price > left:
                is_dear = True
                continue
            asked[item] = worker
            n_counted += worker not in offers.models
            left -= price
            if worker in room:
                room[worker] -= 1
        new = tuple(item for item in asked if item not in wanted)
        stopped = "" if asked else "money" if is_dear else GAIN
        more = {item: wanted[item] + 1 for item in asked if item in wanted}
        return Picks(new, (GAIN,) * len(new), stopped, more, asked)

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
