"""Names that stand for workers in downloads: the same everywhere, and nobody else's.

Only who has the server's secret can tell whose they are; the bill alone keeps the workers' own ids,
for it pays people.
"""

from __future__ import annotations

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
        keys: The server's.
        campaign: The campaign's id: a worker has another name in every campaign.
    """

    def __init__(self, keys: Keys, campaign: str) -> None:
        self._key, self._campaign = keys.of("pseudonym"), campaign

    def __call__(self, worker: str) -> str:
        """Give the name of a worker.

        >>> names = Pseudonyms(Keys(bytes(range(32))), "weather-1")
        >>> names("ann") == names("ann"), names("ann") == names("bob"), len(names("ann"))
        (True, False, 14)
        """
        words = f"{self._campaign}\0{worker}".encode()
        return f"w-{blake2b(words, key=self._key, digest_size=6).hexdigest()}"

    def crowd(self, crowd: Crowd) -> Crowd:
        """Give a crowd whose workers have these names."""
        names = [self(worker) for worker in crowd.worker_ids.to_pylist()]
        return replace(crowd, worker_ids=pa.array(names, pa.string()))

    def result(self, result: Consensus) -> Consensus:
        """Give labels whose crowd has these names."""
        return replace(result, crowd=self.crowd(result.crowd))

    def record(self, record: CampaignRecord) -> CampaignRecord:
        """Give the record of a campaign with these names."""
        workers = {self(worker): facts for worker, facts in record.workers.items()}
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
        return next((worker for worker in workers if self(worker) == shown), None)
