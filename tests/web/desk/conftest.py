"""A campaign with a few answers, seen from the desk."""

from __future__ import annotations

import pytest

from web.serving import Clock, answer, open_round, serve


def worked(folder, *, spans=False, **sections):
    """Open a campaign in which three people have answered, one of them often wrong."""
    service = serve(folder, spans=spans, clock=Clock(), **sections)
    open_round(service)
    for turn in range(6):
        for worker in ("ann.k", "bob.k", "cat.k"):
            service.clock.pass_seconds(3)
            answer(service, worker, wrong=worker == "cat.k" and turn > 2)
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
