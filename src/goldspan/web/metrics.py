"""The server's metrics in Prometheus text, on a port of this machine alone (docs/security.md).

They are not offered on the port that people use: behind a reverse proxy every request seems to
come from the proxy's address, which is often this machine's, and the header that says otherwise can
be made up by anybody. A port of its own that listens on the loopback address is not forwarded by
the proxy, whatever a request says.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    make_wsgi_app,
    start_http_server,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from goldspan import __version__
from goldspan.errors import GoldspanError, InputError
from goldspan.store.schema import leases

if TYPE_CHECKING:
    from goldspan.web.service import Service

HOST = "127.0.0.1"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Upper bounds of the histograms' buckets."""
LAST, TRIES = 65535, 20
"""The last port that there is, and how often free ones next to each other are looked for."""


class Metrics:
    """Counts what happens, and reads from a campaign how it stands.

    No label holds an id, an address or a text: routes are given by their templates.
    """

    def __init__(self, service: Service | None = None) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "goldspan_requests", "Requests.", ["route", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "goldspan_request_seconds", "Seconds until the reply begins.", ["route"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self._replies = Histogram(
            "goldspan_reply_seconds", "Seconds until the whole reply is written, without streams.",
            ["route"], buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.refused_answers = Counter(
            "goldspan_answers_refused", "Answers that were refused.", ["reason"],
            registry=self.registry,
        )  # fmt: skip
        self.faults = Counter(
            "goldspan_request_faults", "Requests that failed by a fault of the server.",
            registry=self.registry,
        )  # fmt: skip
        version = Gauge("goldspan_info", "The version.", ["version"], registry=self.registry)
        version.labels(__version__).set(1)
        if service is not None:
            writes = Histogram(
                "goldspan_store_write_seconds",
                "Seconds of a write transaction, with the wait for its turn.",
                buckets=SECONDS, registry=self.registry,
            )  # fmt: skip
            service.ledger.database.on_write.append(writes.observe)
            self.registry.register(_CampaignCollector(service))

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request whose reply has begun after so many seconds."""
        self._requests.labels(route, method if method in METHODS else "other", status).inc()
        self._seconds.labels(route).observe(seconds)

    def count_reply(self, route: str, seconds: float) -> None:
        """Count a reply that was written whole after so many seconds."""
        self._replies.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _CampaignCollector(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the campaign is not read before it is asked."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the campaign's numbers; without those of the store if it cannot be read."""
        engine, payments = self._service.engine, self._service.payments
        yield GaugeMetricFamily(
            "goldspan_loop_failing", "Whether the campaign's loop is stopped by a failure.",
            bool(engine.live.error),
        )  # fmt: skip
        faults = {"loop": engine.live.n_faults}
        if payments is not None:
            faults["payments"] = payments.n_faults
        words = "Failures of threads beside the requests."
        yield _by(CounterMetricFamily, "goldspan_loop_faults", words, "part", faults)
        if engine.live.looked is not None:
            end, seconds = engine.live.looked
            yield GaugeMetricFamily(
                "goldspan_loop_look_age_seconds", "Seconds since the answers were last aggregated.",
                time.monotonic() - end,
            )  # fmt: skip
            yield GaugeMetricFamily(
                "goldspan_loop_look_seconds", "Seconds that the last aggregation took.", seconds
            )
        yield _by(
            CounterMetricFamily, "goldspan_answers",
            "Answers that were taken, by what became of them.", "outcome",
            self._service.work.outcomes(),
        )  # fmt: skip
        try:
            made, readable = list(self._store()), 1
        except GoldspanError:
            made, readable = [], 0
        yield GaugeMetricFamily(
            "goldspan_store_readable", "Whether the store can be read.", readable
        )
        yield from made

    def _store(self) -> Iterator[Metric]:
        service = self._service
        counts = service.desk.item_counts()
        # Count the items with all answers that they need
        slots, control = self._service.ledger.slots(), self._service.inputs.control
        done = slots.filter(pc.greater_equal(slots["filled"], slots["wanted"]))["item"].to_pylist()
        items = {"done": sum(item not in control for item in done), **counts.to_dict()}
        words = "Items to label, without gold questions."
        yield _by(GaugeMetricFamily, "goldspan_items", words, "state", items)
        with service.ledger.database.read() as connection:
            is_open = leases.c.expires > service.clock()
            query = select(func.count()).select_from(leases).where(is_open)
            n_open = connection.execute(query).scalar_one()
        yield GaugeMetricFamily("goldspan_open_assignments", "Tasks that workers hold.", n_open)
        money = service.desk.money()
        if money is not None:
            amounts = GaugeMetricFamily(
                "goldspan_money", "Money: cap = spent + reserved + left.", None,
                ["kind", "currency"],
            )  # fmt: skip
            for kind in ("cap", "spent", "reserved", "left"):
                amounts.add_metric([kind, money.currency], float(Decimal(getattr(money, kind))))
            yield amounts


def _by(
    kind: type[CounterMetricFamily | GaugeMetricFamily], name: str, words: str, label: str,
    values: Mapping[str, int],
) -> Metric:  # fmt: skip
    """Return a metric with a value for each value of a label."""
    found = kind(name, words, labels=[label])
    for value, n in values.items():
        found.add_metric([value], n)
    return found


# --------------------------------------------------------------------------------------------------
# The port


def free_ports(port: int, n: int = 1) -> list[int]:
    """Return a port and the next ones, one for each of n processes; port 0: any that are free."""
    for _ in range(0 if port else TRIES):
        with suppress(InputError):  # what follows a free port may be taken
            return _free_from(port, n)
    return _free_from(port, n)


def _free_from(port: int, n: int) -> list[int]:
    found: list[int] = []
    with ExitStack() as stack:
        for _ in range(n):
            at = found[-1] + 1 if found else port
            try:
                if at > LAST:
                    raise OSError(errno.EINVAL, f"the last port is {LAST}")  # noqa: TRY301
                made = stack.enter_context(socket.create_server((HOST, at)))
            except OSError as error:
                each = (
                    "" if n == 1 else f" (the {n} web processes have a port each, from {port} on)"
                )
                raise InputError(
                    f"cannot offer metrics on port {at}: {error.strerror}{each}; choose another "
                    "with --metrics-port"
                ) from None
            found.append(made.getsockname()[1])
    return found


def address_of(port: int) -> str:
    """Return the address of the metrics that are offered at a port."""
    return f"http://{HOST}:{port}/metrics"


@contextmanager
def offer_metrics(metrics: Mapping[str, Metrics], port: int) -> Iterator[str]:
    """Offer metrics to this machine meanwhile; yields their address."""
    apps = {
        f"/metrics/{name}".rstrip("/"): make_wsgi_app(one.registry) for name, one in metrics.items()
    }

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        # Another name in Host is that of a foreign page whose name leads to this machine.
        app, host = apps.get(environ["PATH_INFO"]), environ.get("HTTP_HOST", "").partition(":")[0]
        if app is None or host not in {HOST, "localhost"}:
            start("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"Metrics are at {', '.join(apps)}, for this machine alone.\n".encode()]
        return app(environ, start)

    server, _ = start_http_server(port, HOST, CollectorRegistry())
    server.set_app(answer)
    try:
        yield address_of(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
