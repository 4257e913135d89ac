"""Whatever is sent, the answers are those of the OpenAPI document, and nothing breaks."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import schemathesis

# Loaded now: Python 3.11 cannot parse what is imported after a browser's greenlets have run.
import schemathesis.specs.openapi.schemas
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from goldspan.web import ServerSettings, create_app
from goldspan.web.settings import Rate, Rates
from web.played import KEYS, Played
from web.serving import open_round, serve

EXAMPLES = 60 if settings.default.max_examples > 1000 else 15
WIDE = Rate(1e6, 1_000_000)
CHECKS = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "negative_data_rejection", "unsupported_method",
]  # fmt: skip


SETTINGS = ServerSettings(KEYS, "http://testserver", rates=Rates(WIDE, WIDE, WIDE, WIDE, WIDE))
ENDLESS = "/api/desk/live"
"""A stream of events."""


def operations():
    """Return method and path of every operation of the document."""
    paths = Played(settings=SETTINGS).app.openapi()["paths"]
    found = [(method.upper(), path) for path, one in paths.items() for method in one]
    return [one for one in found if one[1] != ENDLESS]


def without_persons(document):
    """Leave out cookies and tokens: the right ones are always sent here."""
    made = copy.deepcopy(document)
    for one in (one for methods in made["paths"].values() for one in methods.values()):
        del one["security"]
        kept = [part for part in one.pop("parameters") if part["name"] != "X-Goldspan-CSRF"]
        one.update({"parameters": kept} if kept else {})
    del made["components"]["securitySchemes"]
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Give a server over a real campaign, of which a round is open."""
    service = serve(tmp_path_factory.mktemp("openapi"))
    open_round(service)
    yield SimpleNamespace(app=create_app(service, SETTINGS))
    service.close()


@pytest.fixture(scope="module")
def schema(server):
    found = schemathesis.openapi.from_dict(without_persons(server.app.openapi()))
    # A request that is too large is refused before it is read, whatever else is wrong with it.
    found.config.checks.negative_data_rejection.expected_statuses.append("413")
    return found


@pytest.fixture(scope="module")
def people(server):
    """Return who may ask what: cookies and token by the beginning of a path."""
    auth = server.app.state.context.auth
    ((link, _),) = auth.links.make(["ann"], 30)
    sessions = {"/api/work": auth.sessions.begin_work(link), "/api": auth.sessions.begin_desk()}
    return {
        start: {
            "headers": {"X-Goldspan-CSRF": auth.sessions.csrf(one)},
            "cookies": {f"goldspan_{one.role}": auth.sessions.cookie(one)},
        }
        for start, one in sessions.items()
    }


@pytest.mark.torture(
    "made-up requests are sent to every operation",
    "each answer is one that is described, none is a fault",
)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), operations())
def test_whatever_is_sent_the_answer_is_one_that_is_described(
    server, schema, people, method, path, mode, tortured
):
    person = next(one for start, one in people.items() if path.startswith(start))
    checks = schemathesis.checks.CHECKS.get_by_names(CHECKS)

    cases = schema[path][method].as_strategy(generation_mode=mode)

    @given(case=cases)
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    def ask(case):
        case.call_and_validate(
            base_url="http://testserver", app=server.app, checks=checks, **person
        )

    try:
        ask()
        tortured(EXAMPLES)
    except Unsatisfiable:  # nothing wrong can be sent to a route that takes nothing
        assert mode is GenerationMode.NEGATIVE


def test_every_operation_says_what_it_does_and_what_it_may_refuse(server):
    for path, methods in server.app.openapi()["paths"].items():
        for method, one in methods.items():
            where = f"{method} {path}"
            assert one["description"], where
            assert one["security"], where
            assert {"200", "400", "401", "403", "413", "422", "429", "503"} <= set(one["responses"])
