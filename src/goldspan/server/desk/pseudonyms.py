"""Names that stand for workers in downloads: the same everywhere, and nobody else's.

In a private campaign they are the store's random pseudonyms, which say nothing once somebody is
forgotten. In one of before they are keyed hashes: only who has the server's secret can tell whose
they are. The bill alone keeps the workers' own ids, for it pays people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from goldspan.aggregate import Consensus
from goldspan.campaign import CampaignRecord
from goldspan.campaign.findings import Findings
from goldspan.crowd import Crowd
from goldspan.server.security.secret import Keys


class Pseudonyms:
    """Gives workers other names.

    Args:
        keys: The server's; not needed with `known`.
        campaign: The campaign's id: a worker has another name in every campaign.
        known: Returns the store's pseudonyms by id; None where it has none.
    """

    def __init__(
        self, keys: Keys | None, campaign: str,
        known: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:  # fmt: skip
        self._key = b"" if keys is None else keys.of("pseudonym")
        self._campaign, self._known = campaign, known

    def __call__(self, worker: str) -> str:
        """Give the name of a worker.

        >>> names = Pseudonyms(Keys(bytes(range(32))), "weather-1")
        >>> names("ann") == names("ann"), names("ann") == names("bob"), len(names("ann"))
        (True, False, 14)
        """
        return self._now()(worker)

    def _now(self) -> Callable[[str], str]:
        """Return what gives names, as they are now."""
        if self._known is None:
            return self._hashed
        known = self._known()
        return lambda worker: known.get(worker, worker)  # who is not known was forgotten

    def _hashed(self, worker: str) -> str:
        words = f"{self._campaign}\0{worker}".encode()
        return f"w-{blake2b(words, key=self._key, digest_size=6).hexdigest()}"

    def crowd(self, crowd: Crowd) -> Crowd:
        """Give a crowd whose workers have these names."""
        names = list(map(self._now(), crowd.worker_ids.to_pylist()))
        return replace(crowd, worker_ids=pa.array(names, pa.string()))

    def result(self, result: Consensus) -> Consensus:
        """Give labels whose crowd has these names."""
        return replace(result, crowd=self.crowd(result.crowd))

    def record(self, record: CampaignRecord) -> CampaignRecord:
        """Give the record of a campaign with these names."""
        name = self._now()
        workers = {name(worker): facts for worker, facts in record.workers.items()}
        return replace(record, workers=dict(sorted(workers.items())))

    def findings(self, findings: Findings) -> Findings:
        """Give what a report tells with these names."""
        result, tested = findings.result, findings.tested
        return replace(
            findings,
            record=self.record(findings.record),
            result=None if result is None else self.result(result),
            tested=None if tested is None else self.result(tested),
        )

    def decode(self, shown: str, workers: Any) -> str | None:
        """Give the worker behind a name, of those that are known; None if it is nobody's."""
        name = self._now()
        return next((worker for worker in workers if name(worker) == shown), None)
