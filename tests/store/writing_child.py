"""A process that works through a fixed list of answers at PLACE, to be killed.

Every answer that the ledger acknowledged is named on standard output. Started again, it begins with
the first: what is done already changes nothing.
"""

from __future__ import annotations

import os
import sys

from goldspan.protocols import PoolItem
from goldspan.spans import Codec
from goldspan.store import create_ledger

N_ITEMS, WORKERS = 15, ("u", "v", "w")


def main(place: str) -> None:
    """Do it."""
    tags = Codec.from_types(["no", "yes"], "PLAIN")
    ledger = create_ledger(place, name="k", cap=10_000, currency="EUR", tagset=tags, now=0)
    names = [f"i{n}" for n in range(N_ITEMS)]
    ledger.add_items([PoolItem(name, ("t",), 10) for name in names], 1)
    ledger.open_batch("b", names, 3, 2)
    for n, (item, worker) in enumerate((i, w) for i in names for w in WORKERS):
        key = f"{worker}-{item}"
        ledger.lease(worker, 10 + n, 60, n=1, items=[item])
        receipt = ledger.submit(key, worker, item, [("no", "yes", None)[n % 3]], 10 + n)
        assert receipt.status == "accepted", receipt
        if n % 3 == 0:  # and changes it
            changed = ledger.change(f"{key}-again", worker, item, ["yes"], 10 + n)
            assert changed.status == "changed", changed
        os.write(1, f"{key}\n".encode())
    ledger.close()


if __name__ == "__main__":
    main(sys.argv[1])
