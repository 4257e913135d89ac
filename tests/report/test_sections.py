"""What the sections say where there is too much to say."""

from __future__ import annotations

from dataclasses import replace

from goldspan.report.sections import (
    MAX_FLAGGED,
    MAX_TYPES,
    score_types,
    spammers_lead,
    workers_lead,
)
from goldspan.report.workers import worker_table
from goldspan.spans.scoring import Rates


def test_of_too_many_types_the_most_frequent_are_listed(score):
    types = {f"T{n}": Rates.of(0, 0, n) for n in range(MAX_TYPES + 50)}
    listed = score_types(replace(score, types=types))
    assert [name for name, _ in listed] == [f"T{n}" for n in range(MAX_TYPES + 49, 49, -1)]


def test_a_type_that_does_not_occur_is_not_listed(score):
    types = {"PER": Rates.of(1, 1, 1), "LOC": Rates.of(0, 0, 0)}
    assert [name for name, _ in score_types(replace(score, types=types))] == ["PER"]


def test_of_many_workers_far_below_the_worst_are_named(consensus, agreement):
    names = tuple(f"w{n}" for n in range(MAX_FLAGGED + 3))
    table = replace(worker_table(consensus, agreement), far_below=names, n_workers=40)
    before, named, after = workers_lead(table)
    assert before.endswith("Far below the others are 11 of 40 workers: ")
    assert named == names[:MAX_FLAGGED]
    assert after.startswith(" and 3 more (under two thirds")


def test_nobody_far_below_is_told_as_well(consensus, agreement):
    table = replace(worker_table(consensus, agreement), far_below=())
    assert workers_lead(table)[0].endswith("Nobody is far below the others.")


def test_without_any_rate_there_is_nothing_to_compare(consensus):
    bare = replace(
        consensus, make_workers=lambda _: consensus.workers.select(["worker", "answers"])
    )
    assert workers_lead(worker_table(bare, None)) == (
        "There is nothing to compare them by.",
        (),
        "",
    )


def test_of_many_spammers_some_are_named(consensus, agreement):
    table = worker_table(consensus, agreement)
    assert spammers_lead(table) == ("", (), "")
    names = tuple(f"w{n}" for n in range(MAX_FLAGGED + 2))
    before, named, after = spammers_lead(replace(table, spammers=names))
    assert (before, named) == ("The labels of ", names[:MAX_FLAGGED])
    assert after.startswith(" and 2 more tell next to nothing")
