"""Several campaigns on one server are strangers to each other; one list leads to all of them."""

from __future__ import annotations

import json
import re
import signal
from contextlib import ExitStack, closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from goldspan.errors import InputError
from goldspan.web import ServerSettings, create_app
from goldspan.web.app import Listed, create_list, find_plans, list_context, open_list
from web.desks import FREE
from web.played import URL, choose, code_of, field_of
from web.serving import KEYS, Clock, key, open_round, plan_file, serve

WORDS = "a sentence that only I would write"
HTTPS = "https://labels.example.org"


@pytest.fixture(scope="module", params=[URL, HTTPS])
def shelf(request, tmp_path_factory):
    """Two campaigns with the same workers and, at worst, the same secret; and a broken one."""
    url, folder = request.param, tmp_path_factory.mktemp("several")
    with ExitStack() as stack:
        settings = ServerSettings(KEYS, url, rates=FREE)
        listed, services = [], {}
        for name in ("cats", "dogs"):
            (folder / name).mkdir()
            title = {"name": f"{name}-plan", "page": {"title": f"About {name}"}}
            service = stack.enter_context(closing(serve(folder / name, clock=Clock(), **title)))
            open_round(service)
            app = create_app(service, replace(settings, prefix=f"/c/{name}"))
            listed.append(Listed(name, app))
            services[name] = service
        listed.append(Listed("fish", error="the pool is not there"))
        (folder / "out").mkdir()
        context = list_context(stack.enter_context(open_list(folder / "out")), settings)
        yield SimpleNamespace(
            app=create_list(context, listed), url=url, context=context, services=services,
            of={one.name: one for one in listed},
        )  # fmt: skip


def browser(shelf, cookies=None):
    made = TestClient(shelf.app, base_url=shelf.url, follow_redirects=False)
    made.cookies.update(cookies or {})
    return made


def worker(shelf, name, campaign="cats"):
    """Return the browser of an annotator of one campaign."""
    auth = shelf.of[campaign].context.auth
    ((link, token),) = auth.links.make([name], 30)
    made = browser(shelf)
    reply = made.get(f"/c/{campaign}/w/{token}")
    assert (reply.status_code, reply.headers["location"]) == (303, f"/c/{campaign}/label")
    (cookie,) = (value for name, value in made.cookies.items() if "worker" in name)
    session = auth.sessions.read("worker", cookie)
    made.headers["X-Goldspan-CSRF"] = auth.sessions.csrf(session)
    return SimpleNamespace(browser=made, token=token, link=link, cookie=cookie)


def requester(shelf):
    """Return the browser of who has chosen the list's password."""
    made = browser(shelf)
    reply = choose(made, shelf.context.auth.account.open_setup(), WORDS)
    assert (reply.status_code, reply.headers["location"]) == (303, "/desk")
    return made


def entered(made, name):
    """Open the desk of a campaign from the list."""
    csrf = field_of(made.get("/desk"), "csrf")
    return made.post(f"/open/{name}", data={"csrf": csrf})


def test_an_annotator_works_in_their_own_campaign(shelf):
    ann = worker(shelf, "ann")
    page = ann.browser.get("/c/cats/label")
    assert page.status_code == 200
    assert 'data-base="/c/cats"' in page.text
    assert 'href="/c/cats/help"' in page.text
    task = ann.browser.post("/c/cats/api/work/next", json={}).json()["task"]
    body = {"task": task["id"], "key": key(), "label": "rain"}
    assert ann.browser.post("/c/cats/api/work/answers", json=body).json()["status"] == "accepted"
    assert shelf.services["cats"].ledger.n_answers == 1
    assert shelf.services["dogs"].ledger.n_answers == 0


def test_every_file_that_a_page_names_is_there(shelf):
    ann = worker(shelf, "ann").browser
    page = ann.get("/c/cats/label").text
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert len(named) > 5
    assert {ann.get(path).status_code for path in named} == {200}


def test_a_link_is_nothing_in_another_campaign(shelf):
    ann = worker(shelf, "ann")
    made = browser(shelf)
    for path in (f"/c/dogs/w/{ann.token}", f"/w/{ann.token}"):
        reply = made.get(path)
        assert reply.status_code == 403
        assert not made.cookies


def test_a_cookie_is_nothing_in_another_campaign_under_any_name(shelf):
    ann = worker(shelf, "ann")
    assert ann.browser.get("/c/dogs/api/work/me").status_code == 401
    names = [shelf.of[one].context.cookie_name("worker") for one in ("cats", "dogs")]
    assert len(set(names)) == 2
    for name in (names[1], shelf.context.cookie_name("worker")):
        thief = browser(shelf, {name: ann.cookie})
        thief.headers.update(ann.browser.headers)
        for path in ("/c/dogs/api/work/me", "/api/work/me"):
            assert thief.get(path).status_code in {401, 404}
        assert thief.post("/c/dogs/api/work/next", json={}).status_code == 401


def test_a_task_is_nothing_in_another_campaign(shelf):
    ann, same = worker(shelf, "ann"), worker(shelf, "ann", "dogs")
    task = ann.browser.post("/c/cats/api/work/next", json={}).json()["task"]["id"]
    body = {"task": task, "key": key(), "label": "rain"}
    refused = same.browser.post("/c/dogs/api/work/answers", json=body)
    assert (refused.status_code, code_of(refused)) == (422, "invalid")
    assert shelf.services["dogs"].ledger.n_answers == 0


def test_a_desk_session_is_nothing_in_another_campaign_or_at_the_list(shelf):
    made = browser(shelf)
    mine = shelf.of["cats"].context
    session = mine.auth.sessions.begin_desk()
    cookie, csrf = mine.auth.sessions.cookie(session), mine.auth.sessions.csrf(session)
    for one in (*("cats", "dogs"), None):
        context = shelf.context if one is None else shelf.of[one].context
        made.cookies.set(context.cookie_name("desk"), cookie)
    assert made.get("/c/cats/api/desk/overview").status_code == 200
    headers = {"X-Goldspan-CSRF": csrf}
    assert made.get("/c/dogs/api/desk/overview").status_code == 401
    assert made.post("/c/dogs/api/desk/pause", headers=headers).status_code == 401
    assert made.get("/c/dogs/desk").headers["location"] == "/c/dogs/login"
    assert made.get("/desk").headers["location"] == "/login"
    assert made.post("/open/dogs", data={"csrf": csrf}).status_code == 401
    assert not shelf.services["dogs"].ledger.is_paused


def test_who_is_not_logged_in_learns_no_name_text_or_count(shelf):
    made = browser(shelf)
    other = worker(shelf, "ann", "cats").browser
    paths = ("/", "/login", "/c/cats/login", "/c/none/", "/c/fish/", "/c/", "/metrics")
    pages = [made.get(path) for path in (*paths, "/c/cats/api/openapi.json")]
    pages += [other.get(f"/c/{path}") for path in ("cats/label", "cats/help", "cats/", "dogs/")]
    for page in pages:
        for word in ("dogs", "fish"):
            assert word not in page.text.replace("/c/dogs", ""), page.url
    assert made.get("/c/none/label").status_code == made.get("/c/fish/label").status_code == 404


def test_an_unknown_campaign_and_a_broken_one_look_alike(shelf):
    made = browser(shelf)
    for path in ("label", "api/work/me", "w/token", ""):
        first, second = made.get(f"/c/none/{path}"), made.get(f"/c/fish/{path}")
        assert first.status_code == second.status_code == 404
        assert first.text == second.text


def test_the_list_shows_all_and_leads_to_each(shelf):
    made = requester(shelf)
    page = made.get("/desk").text
    assert "About cats" in page
    assert "About dogs" in page
    assert "fish is not served: the pool is not there" in page
    for name in ("cats", "dogs"):
        reply = entered(made, name)
        assert (reply.status_code, reply.headers["location"]) == (303, f"/c/{name}/desk")
        desk = made.get(f"/c/{name}/desk")
        assert desk.status_code == 200
        assert f"About {name}" in desk.text
        assert '<a href="/desk">All campaigns</a>' in desk.text
        now = made.get(f"/c/{name}/api/desk/overview").json()
        assert now["title"] == f"About {name}"
    assert entered(made, "fish").status_code == 404


def test_links_made_at_a_desk_lead_to_its_campaign(shelf):
    made = requester(shelf)
    entered(made, "dogs")
    csrf = json.loads(
        re.search(r'id="page">(.*?)</script>', made.get("/c/dogs/desk/links").text)[1]
    )["csrf"]
    body = {"workers": ["bob"], "days": 3}
    (row,) = made.post(
        "/c/dogs/api/desk/links", json=body, headers={"X-Goldspan-CSRF": csrf}
    ).json()
    assert row["url"].startswith(f"{shelf.url}/c/dogs/w/")
    assert browser(shelf).get(row["url"].removeprefix(shelf.url)).status_code == 303


def test_logging_out_at_the_list_ends_the_desks_too(shelf):
    made = requester(shelf)
    entered(made, "cats")
    cookies = dict(made.cookies)
    csrf = field_of(made.get("/desk"), "csrf")
    assert made.post("/logout", data={"csrf": "wrong"}).status_code == 403
    assert made.post("/logout", data={"csrf": csrf}).status_code == 200
    again = browser(shelf, cookies)
    assert again.get("/desk").headers["location"] == "/login"
    assert again.get("/c/cats/api/desk/overview").status_code == 401


def test_no_plan_is_entered_without_the_token_of_the_page(shelf):
    made = requester(shelf)
    assert made.post("/open/cats", data={"csrf": "x"}).status_code == 403


def test_plans_are_found_in_folders_and_named(tmp_path):
    hidden = ("._Cats & dogs.toml", ".#dogs.toml")  # which systems and editors leave
    for path in ("news/campaign.toml", "Cats & dogs.toml", "news/pool.csv", *hidden):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    assert list(find_plans([tmp_path])) == ["cats---dogs", "news"]
    with pytest.raises(InputError, match="would both be at /c/news"):
        find_plans([tmp_path, tmp_path / "news.toml"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no plan in"):
        find_plans([tmp_path / "empty"])


def test_a_folder_is_served_though_one_plan_is_broken(tmp_path, start):
    """The real command: two campaigns that compute in processes of their own, and a third."""
    plans = tmp_path / "plans"
    for name in ("cats", "dogs", "fish"):
        (plans / name).mkdir(parents=True)
        annotators = [f"{who} of {name}" for who in ("ann", "bob", "cid")]
        plan_file(plans / name, name=name, crowd={"source": "web", "annotators": annotators})
    (plans / "fish" / "pool.jsonl").unlink()
    process, said = start(plans, tmp_path / "out", "--json", until="\n}\n")
    facts = json.loads(said)
    assert [row["name"] for row in facts["campaigns"]] == ["cats", "dogs"]
    (lost,) = facts["not_served"]
    assert lost["name"] == "fish"
    assert "pool.jsonl" in lost["error"]
    for row in facts["campaigns"]:
        links = row["links"]
        assert set(links) == {f"{who} of {row['name']}" for who in ("ann", "bob", "cid")}
        assert all(f"/c/{row['name']}/w/" in url for url in links.values())
        assert (tmp_path / "out" / row["name"] / "campaign.sqlite").is_file()
    assert facts["setup"].startswith(f"{facts['url']}/setup/")
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "fish is not served" in log
    assert "Traceback" not in log
