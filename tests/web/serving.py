"""Tiny campaigns that are served, and workers who know the truth."""

from __future__ import annotations

import itertools
from pathlib import Path

from campaign.tiny import plan_of, toml, write_files, write_spans
from goldspan.spans import parse
from goldspan.web.service import Service, open_service
from goldspan.web.settings import Keys

KEYS = Keys(bytes(range(32)))
WEB = {
    "crowd": {"source": "web"},
    "control": {"n": 6, "gold": "truth.csv", "share": 0.25, "first": 2, "least": 0.5},
    "page": {"training": 1, "lease_minutes": 5},
    "redundancy": {"min": 2, "max": 3},
    "select": {"by": "random", "batch": 5},
    "stop": {"most_rounds": 2},
}
SPANS = {
    "task": {"types": ["LOC"]},
    "pool": {"file": "gold.conll"},
    "control": {"gold": "gold.conll"},
    "aggregate": {"method": "ibcc"},
    "model": {"name": "hmm"},
}
_count = itertools.count()


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.time = now

    def __call__(self) -> int:
        return self.time

    def pass_seconds(self, seconds: float) -> None:
        self.time += round(1000 * seconds)


def plan_file(folder: Path, *, spans: bool = False, **sections) -> Path:
    """Write the files of a campaign of single labels or of spans, and give its plan."""
    (write_spans if spans else write_files)(folder)
    plan = plan_of(WEB)
    plan["crowd"] = {"source": "web"}
    changes = SPANS if spans else {}
    for name, section in [*changes.items(), *sections.items()]:
        plan[name] = {**plan.get(name, {}), **section} if isinstance(section, dict) else section
    if spans:
        plan["task"].pop("labels")
    path = folder / "campaign.toml"
    path.write_text(toml({k: v for k, v in plan.items() if v is not None}))
    return path


def serve(folder: Path, *, clock: Clock | None = None, spans: bool = False, **sections) -> Service:
    """Open a campaign's service without starting its loop."""
    options = {} if clock is None else {"clock": clock}
    return open_service(plan_file(folder, spans=spans, **sections), folder / "out", KEYS, **options)


def open_round(service: Service) -> None:
    """Run the loop once, so that there is something to do."""
    service.campaign.run()


def key() -> str:
    return f"key-{next(_count):08d}"


def truth_of(service: Service) -> dict[str, list[str]]:
    """Return the labels that the files know."""
    from goldspan.campaign.inputs import _gold, _pool

    plan = service.inputs.plan
    _, items = _pool(plan, service.inputs.folder)
    items = items.unanswered(plan.codec, items.item_ids if plan.is_single else None)
    return _gold(
        service.inputs, items, "truth.csv" if plan.is_single else "gold.conll"
    ).tagged_by_id()


def right_answer(service: Service, item: str):
    """Return the right answer in the form in which a page sends it."""
    tags = truth_of(service)[item]
    return tags[0] if service.inputs.plan.is_single else list(parse(tags, "BIO"))


def answer(service: Service, worker: str, *, wrong: bool = False):
    """Do the next task; None if there is none."""
    got = service.work.next(worker)
    if got["state"] != "task":
        return None
    task = got["task"]["id"]
    item = service.work.tasks.item(worker, task)
    said = right_answer(service, item)
    if wrong:
        said = {"rain": "sun", "sun": "rain"}[said] if isinstance(said, str) else []
    return item, service.work.submit(worker, task, key(), said)
