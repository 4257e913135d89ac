"""A page whose rounds are chosen by gain: the desk counts what was answered."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest

from goldspan.campaign import Decision
from goldspan.web import open_service
from web.serving import KEYS

PLAN = """
name = "gain"
[task]
labels = ["rain", "sun"]
[pool]
file = "pool.csv"
[crowd]
source = "web"
annotators = ["ann", "ben", "cy"]
[redundancy]
by = "gain"
min = 1
max = 3
[select]
by = "random"
first = 4
batch = 3
[aggregate]
method = "one-coin"
[model]
name = "none"
"""


@pytest.fixture
def opened(tmp_path):
    """Opens a campaign of so many texts, with changes of the plan."""
    with ExitStack() as stack:

        def go(n, *changes):
            rows = "".join(f"t{k},day {k}\n" for k in range(n))
            (tmp_path / "pool.csv").write_text("id,text\n" + rows)
            plan = PLAN
            for old, new in changes:
                plan = plan.replace(old, new)
            (tmp_path / "plan.toml").write_text(plan)
            service = open_service(tmp_path / "plan.toml", tmp_path / "out", KEYS)
            return stack.enter_context(closing(service))

        yield go


def answer(service, worker, labels):
    for n, label in enumerate(labels):
        task = service.work.next(worker)["task"]
        service.work.submit(worker, task["id"], f"key-{worker}-{n:08d}", label)


def test_the_desk_counts_what_was_answered_not_the_pool(opened):
    service = opened(12)
    assert service.campaign.run().answers == 4
    answer(service, "ann", ["sun", "rain"] * 2)
    assert service.campaign.run().answers == 3
    service.engine.look()
    items = service.desk.overview().items
    assert (items.pool, items.answered) == (12, 4)
    assert service.desk.agreement().n_answers == 4


def test_nobody_is_waited_for_where_no_named_person_can_answer_any_more(opened):
    names = ('"ann", "ben", "cy"', '"ann", "ben"')
    service = opened(3, names, ("max = 3", "max = 2"), ("first = 4", "first = 3"))
    assert service.campaign.run().answers == 3
    answer(service, "ann", ["sun", "rain", "sun"])
    assert service.campaign.run().answers == 3  # ben alone can give a second answer
    service.ledger.record("bar", "ben", {"why": "careless"}, 1)
    service.ledger.bar("ben", 1)
    ended = service.campaign.run()
    assert isinstance(ended, Decision)
    assert ended.rule == "gain"


def test_what_every_named_person_has_answered_is_not_chosen_again(opened):
    names = ('"ann", "ben", "cy"', '"ann"')
    service = opened(3, names, ("max = 3", "max = 1"), ("first = 4", "first = 2"))
    assert service.campaign.run().answers == 2
    answer(service, "ann", ["sun", "rain"])
    service.campaign.run()
    given = service.ledger.crowd().item_ids.to_pylist()
    later = service.ledger.records("picks")["r002"]
    assert not {*later["items"], *later["more"]} & {*given}
