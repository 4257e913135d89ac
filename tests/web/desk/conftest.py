"""A campaign with a few answers, seen from the desk."""

from __future__ import annotations

import atexit
import shutil
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from campaign.test_layers import layered as layered_plan
from campaign.test_layers import write_items
from campaign.tiny import toml
from goldspan.web import open_service
from web.serving import KEYS, Clock, answer, key, open_round, serve


def worked(folder, *, spans=False, **sections):
    """Open a campaign in which three people have answered, one of them often wrong."""
    if sections:
        service = play(folder, spans=spans, **sections)
    else:
        made, now = played(spans)
        shutil.copytree(made, folder, dirs_exist_ok=True)
        service = open_service(folder / "campaign.toml", folder / "out", KEYS, clock=Clock(now))
    service.engine.look()
    return service


def play(folder, **options):
    service = serve(folder, clock=Clock(), **options)
    open_round(service)
    for turn in range(6):
        for worker in ("ann.k", "bob.k", "cat.k"):
            service.clock.pass_seconds(3)
            answer(service, worker, wrong=worker == "cat.k" and turn > 2)
    return service


@cache
def played(spans):
    """Play once per process what many tests begin with; return the folder and the time."""
    folder = Path(mkdtemp(prefix="goldspan-played-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with closing(play(folder, spans=spans)) as service:
        return folder, service.clock.time


TOLD = {"places": [{"start": 1, "end": 5, "type": "ORG"}, {"start": 3, "end": 5, "type": "LOC"}],
        "mood": "fair", "topics": ["art", "law"]}  # fmt: skip
OTHER = {"places": [{"start": 1, "end": 5, "type": "LOC"}], "mood": "bad", "topics": []}


def layered(folder, n=6, **options):
    """Open a campaign of several layers; two people say one thing, and one another."""
    write_items(folder)
    plan = layered_plan(redundancy={"min": 3, "max": 3}) | {"crowd": {"source": "web"}}
    (folder / "campaign.toml").write_text(toml(plan))
    service = open_service(folder / "campaign.toml", folder / "out", KEYS, **options)
    open_round(service)
    for _ in range(n):
        for worker in ("ann.k", "bob.k", "cat.k"):
            if (got := service.work.next(worker))["state"] == "task":
                said = OTHER if worker == "cat.k" else TOLD
                service.work.submit(worker, got["task"]["id"], key(), said)
    service.engine.look()
    return service


@pytest.fixture(scope="module", params=[False, True], ids=["single", "spans"])
def service(request, tmp_path_factory):
    """A campaign that tests only look at."""
    made = worked(tmp_path_factory.mktemp("desk"), spans=request.param)
    yield made
    made.close()


@pytest.fixture
def fresh(tmp_path):
    """A campaign that a test changes."""
    made = worked(tmp_path)
    yield made
    made.close()
