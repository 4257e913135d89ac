"""What one worker, or somebody with a link only, can make the store grow by: over real HTTP."""

from __future__ import annotations

from contextlib import closing, contextmanager
from hashlib import blake2b

import pytest

from goldspan.store.answers import MOST_CHANGES
from goldspan.store.schema import usage
from goldspan.web.desk.desk import ROWS
from goldspan.web.models import LONGEST_NOTE
from goldspan.web.security.sessions import DAILY
from goldspan.web.service import open_service
from web.desks import Served
from web.played import code_of
from web.serving import KEYS, Clock, key, open_round, plan_file

DAY = 86_400
WRITES = 30
PROVIDER = (
    '[provider]\nname = "prolific"\n[provider.options]\nstudy = "{s}"\ncode = "D1"\ncheck = false\n'
)
STUDY = "5f0000000000000000000001"


class Site(Served):
    """A server over a real campaign, in which nobody is slowed down."""

    def __post_init__(self):
        super().__post_init__()
        self.ledger = self.service.ledger

    def size(self):
        return self.ledger.n_events


@contextmanager
def site_of(path, clock, place=None):
    with closing(open_service(path, path.parent / "out", KEYS, place, clock=clock)) as service:
        if not service.ledger.records("picks"):
            open_round(service)
        yield Site(service=service)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def site(tmp_path, clock, new_place):
    with site_of(plan_file(tmp_path), clock, new_place()) as made:
        yield made


def post(browser, what, **body):
    return browser.post(f"/api/work/{what}", json=body)


def next_task(browser):
    return post(browser, "next").json()["task"]["id"]


def done(browser, n=1):
    """Answer so many tasks, and give the last one."""
    for _ in range(n):
        task = next_task(browser)
        assert post(browser, "answers", task=task, key=key(), label="rain").status_code == 200
    return task


def test_one_report_of_a_worker_on_an_item_is_kept_however_many_come(site):
    browser = site.worker()
    task = next_task(browser)
    first = post(browser, "flag", task=task, key=key(), reason="garbled", note="the end is gone")
    size = site.size()
    for n in range(50):
        again = post(browser, "flag", task=task, key=key(), reason="garbled", note=f"note {n}")
        assert again.json() == first.json()
    assert site.size() == size
    (flag,) = site.ledger.records("flag").values()
    assert flag["note"] == "the end is gone"
    other = site.worker("bob")
    post(other, "flag", task=next_task(other), key=key(), reason="garbled", note="")
    assert site.ledger.count("flag") == 2


def test_one_answer_that_does_not_count_is_kept_per_worker_and_item(site):
    browser = site.worker()
    task = done(browser, 2)
    sent = {"task": task, "label": "sun"}
    assert post(browser, "answers", key=key(), **sent).json()["status"] == "duplicate"
    size = site.size()
    for label in ["rain", "sun"] * 20:
        got = post(browser, "answers", task=task, key=key(), label=label).json()
        assert got["status"] == "duplicate"
        assert browser.get("/api/work/me").json()["drafts"] == 1
        assert "this one is not kept" in got["message"]
    assert site.size() == size
    assert len(site.ledger.given()) == 3


def test_what_is_sent_again_gets_the_same_reply_to_the_letter(site):
    browser, other, sent = site.worker(), site.worker("bob"), []

    def send(path, **body):
        sent.append((path, {"key": key(), **body}))
        return post(browser, path, **sent[-1][1]).content

    told = [send("answers", task=(task := next_task(browser)), label="rain"),
            send("change", task=task, label="sun"), send("answers", task=task, label="rain"),
            send("skip", task=next_task(browser), reason="too hard"),
            send("flag", task=next_task(browser), reason="garbled", note="")]  # fmt: skip
    for one in (browser, other):
        done(one, 2)
        assert [post(browser, path, **body).content for path, body in sent] == told


def test_an_answer_can_be_changed_so_many_times(site):
    browser = site.worker()
    task = done(browser, 2)
    for n in range(MOST_CHANGES):
        change = {"task": task, "key": key(), "label": ["rain", "sun"][n % 2]}
        assert post(browser, "change", **change).status_code == 200
    size = site.size()
    refused = post(browser, "change", task=task, key=key(), label="rain")
    assert (refused.status_code, code_of(refused)) == (409, "closed")
    assert f"{MOST_CHANGES} times" in refused.json()["error"]["message"]
    assert post(browser, "change", **change).json()["status"] == "changed"  # the last, again
    assert site.size() == size


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("flag", {"reason": "x", "note": "n" * (LONGEST_NOTE + 1)}),
        ("flag", {"reason": "x" * 201, "note": ""}),
        ("skip", {"reason": "x" * 201}),
        ("answers", {"label": "x" * 201}),
        ("change", {"label": "x" * 201}),
    ],
)
def test_texts_that_are_too_long_are_refused_with_their_bound(site, what, body):
    browser = site.worker()
    task, size = next_task(browser), site.size()
    refused = post(browser, what, task=task, key=key(), **body)
    assert refused.status_code == 422
    bound = LONGEST_NOTE if "n" * 9 in body.get("note", "") else 200
    assert f"at most {bound} characters" in refused.json()["error"]["message"]
    assert site.size() == size


def test_a_worker_changes_something_so_often_a_day_whatever_process_is_asked(
    tmp_path, clock, new_place
):
    path, place = plan_file(tmp_path, page={"training": 1, "daily_writes": WRITES}), new_place()
    with site_of(path, clock, place) as one, site_of(path, clock, place) as two:
        browsers = [one.worker("ann"), two.worker("ann")]
        for _ in range(WRITES // 2):
            task = next_task(browsers[0])
            assert post(browsers[1], "release", task=task).status_code == 200
        size = one.size()
        for n in range(10):
            refused = post(browsers[n % 2], "next")
            assert (refused.status_code, code_of(refused)) == (429, "daily")
            assert 0 < int(refused.headers["Retry-After"]) <= DAY
            assert f"({WRITES} requests)" in refused.json()["error"]["message"]
            assert post(browsers[n % 2], "release", task=task).status_code == 200  # holds none
        assert one.size() == size
        assert browsers[0].get("/api/work/me").status_code == 200
        assert post(two.worker("bob"), "next").status_code == 200
        clock.pass_seconds(int(refused.headers["Retry-After"]))
        assert post(browsers[0], "next").status_code == 200


def test_what_is_sent_again_is_not_counted(tmp_path, clock):
    path = plan_file(tmp_path, page={"training": 1, "daily_writes": WRITES})
    with site_of(path, clock) as site:
        browser = site.worker()
        body = {"task": next_task(browser), "key": key(), "label": "rain"}
        for _ in range(3 * WRITES):
            assert post(browser, "answers", **body).status_code == 200
        assert post(browser, "next").json()["state"] == "task"


def test_new_people_who_make_names_up_are_bounded_a_day(tmp_path, clock, new_place):
    path, place = plan_file(tmp_path, page={"training": 0, "daily_joins": 3}), new_place()
    path.write_text(path.read_text() + PROVIDER.format(s=STUDY))
    with site_of(path, clock, place) as one, site_of(path, clock, place) as two:

        def come(site, n, address):
            words = {
                "PROLIFIC_PID": f"{n:024x}",
                "STUDY_ID": STUDY,
                "SESSION_ID": f"{n + 999:024x}",
            }
            return site.browser(address).get("/join/prolific", params=words)

        for n in range(3):
            assert come([one, two][n % 2], n, f"192.0.2.{n}").status_code == 303
        with one.service.ledger.database.read() as connection:
            counted = {row.name for row in connection.execute(usage.select())}
        plain = {blake2b(f"192.0.2.{n}".encode(), digest_size=12).hexdigest() for n in range(3)}
        assert counted
        assert not plain & counted  # an address is found from a plain hash of it
        size = one.size()
        words = {"PROLIFIC_PID": f"{0:024x}", "STUDY_ID": STUDY, "SESSION_ID": f"{5:024x}"}
        again = one.browser().get("/join/prolific", params=words)  # the same person, once more
        assert again.status_code == 429
        for n in range(3, 9):
            refused = come([one, two][n % 2], n, f"192.0.2.{n}")
            assert refused.status_code == 429
            assert int(refused.headers["Retry-After"]) > 0
            assert "try again tomorrow" in refused.text
        assert one.size() == size
        assert come(two, 0, "192.0.2.9").status_code == 303  # who was here before comes in
        clock.pass_seconds(DAY)
        assert come(one, 4, "192.0.2.9").status_code == 303


def test_sessions_of_a_link_are_bounded_a_day_and_so_is_what_their_ends_write(site, clock):
    path, before = site.link(), site.size()
    for _ in range(DAILY):
        browser = site.browser()
        assert browser.get(path).status_code == 303
        csrf = site.csrf(browser, "worker")
        assert browser.post("/logout", headers={"X-Goldspan-CSRF": csrf}).status_code == 200
    assert site.size() == before + DAILY
    refused = site.browser().get(path)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    clock.pass_seconds(DAY)
    assert site.browser().get(path).status_code == 303


def test_what_does_not_hold_writes_nothing(site):
    browser, size = site.browser(), site.size()
    for n in range(5):
        assert browser.get(f"/w/{n}{site.link()[4:]}").status_code == 403
    size = site.size()  # the links were made
    for n in range(5):
        browser.get(f"/w/nothing-{n}")
        browser.get("/login")
        browser.post("/login", data={"csrf": "x", "password": f"guess {n}"})
        browser.get(f"/setup/nothing-{n}")
        browser.post("/api/hooks/prolific", content=b"{}")
        post(browser, "next")
    assert site.size() == size


def test_the_page_about_an_item_stays_small(site):
    item = site.service.inputs.ids[0]
    for n in range(2 * ROWS + 1):
        facts = {"item": item, "worker": "ann", "reason": "garbled", "note": f"n{n}"}
        site.ledger.record("flag", f"report {n}", facts, site.clock())
    browser = site.requester()
    pages = [browser.get(f"/api/desk/items/{item}?page={n}").json() for n in (1, 2, 3, 4)]
    assert [len(one["flags"]) for one in pages] == [ROWS, ROWS, 1, 0]
    assert {(one["n_flags"], one["pages"]) for one in pages} == {(2 * ROWS + 1, 3)}
    notes = [row["note"] for one in pages for row in one["flags"]]
    assert notes == [f"n{n}" for n in range(2 * ROWS + 1)]
    assert browser.get(f"/api/desk/items/{item}").json() == pages[0]
    assert browser.get(f"/api/desk/items/{item}?page=0").status_code == 422
