"""The requester's desk, without HTTP: how far it is, who works, what is doubtful, and decisions.

What costs time is worked out by the engine, which the desk only reads: a page of a pool of a
million items is as quick as one of ten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goldspan.web.desk import downloads
from goldspan.web.desk import views as acts
from goldspan.web.desk import views as items
from goldspan.web.desk.downloads import Pseudonyms
from goldspan.web.desk.views import Finder, agreement, doubts, overview, workers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from goldspan.spans import Span
    from goldspan.web.desk.downloads import Download
    from goldspan.web.service import Service

__all__ = ["Desk"]


class Desk:
    """What the requester sees and does; every method gives plain values for JSON.

    Args:
        service: The campaign.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        known = service.ledger.pseudonyms if service.ledger.is_private else None
        self.names = Pseudonyms(service.keys, service.inputs.key, known)
        self.finder = Finder(service)

    def mark(self) -> tuple[int, int]:
        """Return what grows with every change of what the desk shows."""
        return self.service.engine.live.version, self.service.ledger.n_events

    def overview(self) -> dict[str, Any]:
        """Return how far it is: state, money, time, rounds, the forecast."""
        return overview(self.service)

    def workers(self) -> list[dict[str, Any]]:
        """Return everybody who works: answers, money, verdict, whether they are asked."""
        return workers(self.service)

    def agreement(self) -> dict[str, Any]:
        """Return how well the workers agree."""
        return agreement(self.service)

    def doubts(self, limit: int = 20) -> list[dict[str, Any]]:
        """Return the items whose labels are least certain, with what else they may be."""
        return doubts(self.service, limit)

    def items(
        self, after: str = "", find: str = "", state: str = "all", limit: int = 50
    ) -> dict[str, Any]:
        """Return a page of the items that were asked about, in their order.

        Raises:
            Refused: There is no such state.
        """
        return items.page(self.service, after, find, state, limit)

    def item(self, item: str, page: int = 1) -> dict[str, Any]:
        """Return an item: its words, answers, what they say together, what was said of it.

        Raises:
            Refused: There is no such item.
        """
        return items.one(self.service, item, page)

    def check_item(self, item: str) -> None:
        """Reject an item that is not there.

        Raises:
            Refused: There is no such item.
        """
        items.number_of(self.service, item)

    def adjudicate(self, item: str, answer: Sequence[Span] | str) -> dict[str, Any]:
        """Decide what an item's labels are: from now on they are gold.

        Raises:
            Refused: There is no such item, or the labels do not fit it.
        """
        return acts.adjudicate(self.service, item, answer)

    def judge(self, worker: str, verdict: str, why: str = "") -> dict[str, Any]:
        """Keep a worker, drop them, or ask them more control questions.

        Raises:
            Refused: There is no such worker or verdict.
        """
        return acts.judge(self.service, worker, verdict, why)

    def pause(self, *, paused: bool = True) -> dict[str, Any]:
        """Hand out no new tasks, or again; answers are still taken."""
        return acts.pause(self.service, paused=paused)

    def stop(self) -> dict[str, Any]:
        """End the campaign with what there is."""
        return acts.stop(self.service)

    def exports(self) -> list[dict[str, str]]:
        """Name what can be downloaded."""
        return downloads.listed(self.service)

    def export(self, name: str, *, names: bool = False, by: str = "") -> Download:
        """Make a file; with `names` it names the workers, and the log keeps that `by` asked so.

        Raises:
            Refused: There is no such file, or nothing for it yet.
        """
        return downloads.made(self.service, name, names=names, by=by)
