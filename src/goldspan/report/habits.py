"""What every worker does with spans, in words, for the report."""

from __future__ import annotations

from goldspan.aggregate import Consensus
from goldspan.report.workers import WorkerTable

MAX_WORKERS = 60
MAX_HABITS = 5


def worker_habits(consensus: Consensus, table: WorkerTable) -> list[tuple[str, list[str]]]:
    """List workers with their most frequent habits, in the order of the table of workers.

    Args:
        consensus: The result that habits are seen against; votes have none in the report.
        table: The workers to look at; at most 60 of them.

    Returns:
        Ids and sentences; workers without a habit are left out.
    """
    if not consensus.trace or consensus.tagset.rules.is_plain:
        return []
    found = []
    for row in table.rows[:MAX_WORKERS]:
        said = [str(habit) for habit in consensus.habits(row.worker)[:MAX_HABITS]]
        if said:
            found.append((row.worker, said))
    return found
