"""A page whose rounds are chosen by gain: the desk counts what was answered."""

from __future__ import annotations

from goldspan.campaign import Decision
from goldspan.web import open_service
from goldspan.web.settings import Keys

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


def test_the_desk_counts_what_was_answered_not_the_pool(tmp_path):
    rows = "".join(f"t{n},day {n}\n" for n in range(12))
    (tmp_path / "pool.csv").write_text("id,text\n" + rows)
    (tmp_path / "plan.toml").write_text(PLAN)
    service = open_service(tmp_path / "plan.toml", tmp_path / "out", Keys(bytes(range(32))))
    try:
        assert service.campaign.run().answers == 4
        for n in range(4):
            task = service.work.next("ann")["task"]
            service.work.submit("ann", task["id"], f"key-{n:08d}", ["sun", "rain"][n % 2])
        assert service.campaign.run().answers == 3
        service.engine.look()
        items = service.desk.overview().items
        assert (items.pool, items.answered) == (12, 4)
        assert service.desk.agreement().n_answers == 4
    finally:
        service.close()


def test_nobody_is_waited_for_where_no_named_person_can_answer_any_more(tmp_path):
    rows = "".join(f"t{n},day {n}\n" for n in range(3))
    (tmp_path / "pool.csv").write_text("id,text\n" + rows)
    small = PLAN.replace('"ann", "ben", "cy"', '"ann", "ben"').replace("max = 3", "max = 2")
    (tmp_path / "plan.toml").write_text(small.replace("first = 4", "first = 3"))
    service = open_service(tmp_path / "plan.toml", tmp_path / "out", Keys(bytes(range(32))))
    try:
        assert service.campaign.run().answers == 3
        answer(service, "ann", ["sun", "rain", "sun"])
        assert service.campaign.run().answers == 3  # ben alone can give a second answer
        service.ledger.record("bar", "ben", {"why": "careless"}, 1)
        service.ledger.bar("ben", 1)
        ended = service.campaign.run()
        assert isinstance(ended, Decision)
        assert ended.rule == "gain"
    finally:
        service.close()


def test_what_every_named_person_has_answered_is_not_chosen_again(tmp_path):
    rows = "".join(f"t{n},day {n}\n" for n in range(3))
    (tmp_path / "pool.csv").write_text("id,text\n" + rows)
    small = PLAN.replace('"ann", "ben", "cy"', '"ann"').replace("max = 3", "max = 1")
    (tmp_path / "plan.toml").write_text(small.replace("first = 4", "first = 2"))
    service = open_service(tmp_path / "plan.toml", tmp_path / "out", Keys(bytes(range(32))))
    try:
        assert service.campaign.run().answers == 2
        answer(service, "ann", ["sun", "rain"])
        service.campaign.run()
        given = service.ledger.crowd().item_ids.to_pylist()
        later = service.ledger.records("picks")["r002"]
        assert not {*later["items"], *later["more"]} & {*given}
    finally:
        service.close()


def answer(service, worker, labels):
    for n, label in enumerate(labels):
        task = service.work.next(worker)["task"]
        service.work.submit(worker, task["id"], f"key-{worker}-{n:08d}", label)
