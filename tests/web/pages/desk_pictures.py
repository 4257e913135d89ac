"""Draw the pictures of docs/desk.md: run `python tests/web/pages/desk_pictures.py`."""

from __future__ import annotations

import random
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

TESTS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS))

from campaign.tiny import toml  # noqa: E402
from goldspan.spans import Span, parse  # noqa: E402
from goldspan.web.service import open_service  # noqa: E402
from web.desk.test_audit import check  # noqa: E402
from web.desks import as_json, running  # noqa: E402
from web.pages.conftest import FLAGS, LOOKS  # noqa: E402
from web.pages.test_desk import log_in  # noqa: E402
from web.serving import KEYS, Clock, key, truth_of  # noqa: E402

INTO = TESTS.parent / "docs" / "img"
SHOTS = {
    "desk-overview": ("", "desktop", "light"),
    "desk-overview-dark": ("", "desktop", "dark"),
    "desk-phone": ("/workers", "phone", "light"),
    "desk-workers": ("/workers", "desktop", "light"),
    "desk-review": ("/review", "desktop", "light"),
    "desk-items": ("/items", "desktop", "light"),
    "desk-item": ("/items/{item}", "desktop", "light"),
}
"""Path, look and colours of every picture."""
SKILLS = {"ann": 0.97, "bob": 0.95, "carla": 0.93, "emre": 0.86, "fatima": 0.8, "gus": 0.45}
FRAMES = """
{P} flew from {L} to {L} to meet the head of {O} .
In {L} , {O} said on Friday that {P} would leave .
{O} opens a second office in {L} , led by {P} .
Ferries between {L} and {L} were late again on Monday .
The price of steel fell , and {O} cut its forecast .
{P} of {O} won the race around {L} for the third time .
The minister spoke about {A} for an hour on Monday .
{A} was praised , but {A} was not .
Many had heard of {A} before .
On Friday {A} came up again , with {A} .
Nobody was hurt when the old station in {L} burned down .
""".strip().splitlines()
TYPES = {"P": "PER", "L": "LOC", "O": "ORG"}
PLAN = {
    "name": "names-in-the-news",
    "seed": 4,
    "task": {"types": list(TYPES.values())},
    "pool": {"file": "gold.conll"},
    "crowd": {"source": "web"},
    "control": {"n": 10, "gold": "gold.conll", "share": 0.1, "first": 2, "least": 0.3},
    "page": {"title": "Names in the news"},
    "redundancy": {"min": 3, "max": 4},
    "prices": {"per_answer": "0.04", "currency": "EUR"},
    "budget": {"money": "40", "hours": 48},
    "select": {"by": "random", "batch": 16},
    "aggregate": {"method": "bsc-seq"},
    "model": {"name": "hmm"},
    "stop": {"target": 0.99},
}
ROUNDS = 5


class World:
    """Names, sentences and workers, the same every time."""

    def __init__(self):
        self.rng = random.Random(5)
        parts = ["ba", "ke", "li", "mo", "nu", "ra", "sel", "tor", "vin", "dal", "fen"]
        first = ["Ann", "Bo", "Mary", "Omar", "Eva", "Tariq", "Lena", "Hugo"]

        def made(*shapes):
            word = "".join(self.rng.choice(parts) for _ in range(self.rng.choice([2, 2, 3])))
            return self.rng.choice(shapes).format(word.title(), self.rng.choice(first)).split()

        self.names = {
            "P": [made("{1} {0}") for _ in range(60)],
            "L": [made("{0}", "{0}", "Port {0}", "{0} Bay") for _ in range(60)],
            "O": [made("{0} Ferries", "{0} Bank", "{0}", "{0} Trust") for _ in range(60)],
        }

    def sentence(self, number):
        """Return the lines of a sentence with its tags."""
        lines = []
        for word in FRAMES[number % len(FRAMES)].split():
            if not word.startswith("{"):
                lines.append(f"{word}\tO")
                continue
            kind = word[1] if word[1] in TYPES else self.rng.choice("PLO")
            name = self.names[kind][min(59, int(self.rng.expovariate(0.09)))]
            lines += [f"{part}\t{'I' if n else 'B'}-{TYPES[kind]}" for n, part in enumerate(name)]
        return "\n".join(lines) + "\n\n"

    def answer(self, spans, skill):
        """Return what a worker makes of the truth."""
        found = []
        for span in spans:
            kind, start, end = span.type, span.start, span.end
            luck = self.rng.random() if self.rng.random() > skill else 1.0
            if luck < 0.35:
                continue
            if luck < 0.7:
                kind = self.rng.choice([one for one in TYPES.values() if one != kind])
            elif luck < 1 and end - start > 1:
                end -= 1
            found.append(Span(kind, start, end))
        return found


def main() -> None:
    """Draw all pictures."""
    world, clock = World(), Clock()
    with TemporaryDirectory() as place:
        folder = Path(place)
        sentences = "".join(world.sentence(n) for n in range(400))
        (folder / "gold.conll").write_text(sentences, encoding="utf-8")
        (folder / "campaign.toml").write_text(toml(PLAN), encoding="utf-8")
        service = open_service(folder / "campaign.toml", folder / "out", KEYS, clock=clock)
        truth = truth_of(service)
        for _ in range(ROUNDS):
            service.campaign.run()
            while sum(act(world, service, truth, worker) for worker in SKILLS):
                pass
        service.campaign.run()
        for worker in [*SKILLS, *SKILLS]:
            act(world, service, truth, worker)
        for worker in SKILLS:
            service.work.next(worker)
        service.start()
        time.sleep(5)
        service.desk.draw_audit(60)
        for _ in range(60):
            check(service, "a")
        time.sleep(5)
        draw(service)
        service.close()


def act(world, service, truth, worker) -> bool:
    """Do a worker's next task, if there is one."""
    if world.rng.random() < 0.2 and worker != "ann":
        return True
    got = service.work.next(worker)
    if got["state"] != "task":
        return False
    task = got["task"]["id"]
    service.clock.pass_seconds(world.rng.uniform(6, 30))
    if world.rng.random() < 0.012:
        service.work.flag(worker, task, key(), "The text is garbled or cut off", "ends early")
        return True
    spans = parse(truth[service.work.tasks.item(worker, task)], "BIO")
    service.work.submit(worker, task, key(), world.answer(spans, SKILLS[worker]))
    return True


def draw(service) -> None:
    """Visit the pages as the requester."""
    item = next(one["item"] for one in as_json(service.desk.uncertain(50)) if one["answers"] > 2)
    with running(service) as served, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        state = log_in(browser, served)
        for name, (path, look, colours) in SHOTS.items():
            context = browser.new_context(**LOOKS[look], color_scheme=colours, storage_state=state)
            page = context.new_page()
            page.goto(f"{served.url}/desk{path.format(item=item)}")
            page.wait_for_timeout(3_000)
            page.screenshot(path=INTO / f"{name}.png")
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
