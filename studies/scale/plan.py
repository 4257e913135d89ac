"""What a billion answered tokens would take on N machines, from what was measured on one.

Nothing here is measured: times and bytes are products of the constants that the study measures, and
of the assumptions below, which the page names. The sums follow what the code does: every machine
holds the whole table of the workers (`Tables`, and its logarithm) once, every process adds its
shards' statistics to a table of its own, and the driver turns the sum of all into new parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from studies.table import Table

TOKENS, WORKERS = 10**9, 10**6
CORES, MEMORY, NETWORK = 16, 64e9, 1.25e9
"""Of a machine, assumed: cores, bytes of memory, bytes per second (10 Gbit/s)."""
MACHINES = (1, 4, 16, 64)
TASKS = 4
"""Tasks of a process in a step, as `goldspan.runners.Ray` cuts them at least."""
SHARED, OWN, DRIVER = 2, 2, 6
"""Tables: on every machine (of logarithms and not), in every process (its statistics and those that
it merges), on the driver (sums, posterior, prior, both tables, scratch)."""
INT32 = 2**31
GB = 1e9


@dataclass(frozen=True)
class Constants:
    """What was measured on one machine with J tags.

    Attributes:
        n_tags: J.
        labels: Answered tokens of the crowd that this was measured on.
        seconds: Of the E-step per answered token, one core.
        update: Seconds of an update per row of the table and tag, one core.
        rows: Rows of the table per worker.
        held: Bytes of the evidence per answered token.
    """

    n_tags: int
    labels: float
    seconds: float
    update: float
    rows: float
    held: float


@dataclass(frozen=True)
class Needs:
    """What a step needs.

    Attributes:
        n_rows: Rows of the table of all workers.
        table: Bytes of the table.
        compute: Seconds of the E-step.
        update: Seconds of the update, on the driver's one core.
        sent: Bytes that leave or enter the driver's machine at least: the parameters to every
            other machine, the merged statistics of each of them back.
        shuffled: Bytes of the statistics of all tasks, which cross the network at most.
        evidence: Bytes of evidence per machine.
        tables: Bytes of tables per machine.
        waiting: Bytes of statistics per machine that wait to be merged; Ray puts them on the disk.
        driver: Bytes of tables on the driver.
    """

    n_rows: float
    table: float
    compute: float
    update: float
    sent: float
    shuffled: float
    evidence: float
    tables: float
    waiting: float
    driver: float

    @property
    def network(self) -> float:
        """Seconds on the driver's link at least."""
        return self.sent / NETWORK

    @property
    def step(self) -> float:
        """Seconds of a step if nothing waits for anything else than its turn."""
        return self.compute + self.update + self.network

    @property
    def machine(self) -> float:
        """Bytes of memory of a machine, without what is on the disk."""
        return self.evidence + self.tables


def needs(known: Constants, n_machines: int) -> Needs:
    """Return what a step needs on some machines."""
    n_rows = known.rows * WORKERS
    table = n_rows * known.n_tags * 8
    processes, others = n_machines * CORES, n_machines - 1
    return Needs(
        n_rows=n_rows,
        table=table,
        compute=TOKENS * known.seconds / processes,
        update=n_rows * known.n_tags * known.update,
        sent=others * (SHARED + 1) * table,
        shuffled=TASKS * processes * table if others else 0.0,
        evidence=TOKENS * known.held / n_machines,
        tables=(SHARED + OWN * CORES) * table,
        waiting=TASKS * CORES * table,
        driver=DRIVER * table,
    )


def breaks(known: Constants) -> list[str]:
    """Say what breaks with a tag set, the first first."""
    one, most = needs(known, 1), needs(known, MACHINES[-1])
    words = []
    if one.tables > MEMORY:
        words.append(
            f"the tables of the workers: {one.table / GB:.1f} GB each, and "
            f"{SHARED + OWN * CORES} of them on a machine of {CORES} processes take "
            f"{one.tables / GB:,.0f} GB, however many machines there are"
        )
    if one.driver > MEMORY:
        words.append(f"the driver, whose {DRIVER} tables take {one.driver / GB:,.0f} GB")
    if one.n_rows >= INT32:
        words.append(f"the number of rows, {one.n_rows:.1e}, which is an int32")
    if one.update > most.compute:
        words.append(
            f"the update on one core, {one.update:,.0f} s: more than the E-step "
            f"({most.compute:,.1f} s) on {MACHINES[-1]} machines"
        )
    if most.network > most.compute:
        words.append(
            f"the driver's link: {most.sent / GB:,.0f} GB a step are {most.network:,.0f} s with "
            f"{MACHINES[-1]} machines"
        )
    return words


def plan_table(every: Sequence[Constants]) -> Table:
    """Show a step by tags and machines."""
    columns = (
        "tags", "machines", "E-step, s", "update, s", "driver's link, s", "driver's link, GB",
        "all statistics, GB", "evidence of a machine, GB", "tables of a machine, GB",
        "waiting on its disk, GB", "tables of the driver, GB",
    )  # fmt: skip
    rows = []
    for known in every:
        for n in MACHINES:
            one = needs(known, n)
            sizes = (one.sent, one.shuffled, one.evidence, one.tables, one.waiting, one.driver)
            seconds = (one.compute, one.update, one.network)
            rows.append((known.n_tags, n, *seconds, *(size / GB for size in sizes)))
    digits = dict.fromkeys(columns[2:], ",.1f")
    return Table(
        f"A step of bsc-seq on {TOKENS:.0e} answered tokens of {WORKERS:.0e} workers, reckoned",
        columns, tuple(rows), digits,
    )  # fmt: skip


def constants_table(every: Sequence[Constants]) -> Table:
    """Show what was measured."""
    columns = (
        "tags", "answered tokens measured", "ns of the E-step per token",
        "ns of an update per row and tag", "rows per worker", "bytes of evidence per token",
    )  # fmt: skip
    rows = tuple(
        (one.n_tags, one.labels, 1e9 * one.seconds, 1e9 * one.update, one.rows, one.held)
        for one in every
    )
    digits: dict[str, int | str]
    digits = {columns[1]: ",.0f", columns[2]: 0, columns[3]: 1, columns[4]: 1, columns[5]: 1}
    return Table("The constants, of one core of this machine", columns, rows, digits)
