"""A page whose rounds are chosen by gain: the desk counts what was answered."""

from __future__ import annotations

from goldspan.web import open_service
from goldspan.web.security.secret import Keys

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
