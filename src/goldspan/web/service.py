"""A campaign that is served: its ledger, its loop in a thread, what workers and requesters do."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from goldspan.campaign import (
    Campaign,
    Steps,
    read_inputs,
    read_plan,
    write_exports,
)
from goldspan.campaign.clock import CampaignClock, Keeper, wall_clock
from goldspan.campaign.inputs import CampaignInputs
from goldspan.campaign.outlook import CampaignStopping
from goldspan.campaign.plan import Plan
from goldspan.campaign.protocols import CampaignEvent, WorkerDropped
from goldspan.campaign.results import ReportData
from goldspan.campaign.workforce import Workforce
from goldspan.crowd.atomic import NewPlaces
from goldspan.errors import InputError
from goldspan.store import SqlLedger
from goldspan.store.engine import LostError
from goldspan.web.desk import Desk
from goldspan.web.desk.downloads import Report
from goldspan.web.engine import Ending, Engine, TroubleFile, Watcher
from goldspan.web.opening import open_store, with_id
from goldspan.web.people import People
from goldspan.web.providers.payments import PaymentQueue, PaymentThread
from goldspan.web.providers.registry import open_provider
from goldspan.web.settings import Keys
from goldspan.web.webhooks import Webhooks, check_webhooks
from goldspan.web.work import Completion, Work

log = logging.getLogger("goldspan.web")
TROUBLE = "trouble.json"
"""The file in the campaign's folder that says what stops its loop, while a server runs."""


class Service:
    """A campaign that is served; `InputError` where the plan is for another crowd."""

    def __init__(
        self,
        inputs: CampaignInputs,
        ledger: SqlLedger,
        keys: Keys,  # The server's secret
        out: str | Path = "out",  # The folder of what comes out
        *,
        clock: Callable[[], int] | None = None,
        completion: Completion = lambda _: None,  # What a worker who is finished is given
        payments: PaymentThread | None = None,  # Sends letters to a provider
        report: Report | None = None,  # Writes the campaign's report
        watcher: Watcher | None = None,  # Stands for the loop where another process runs it
    ) -> None:
        check_web(inputs.plan)
        clock = clock or CampaignClock(ledger)
        self.inputs, self.ledger, self.keys, self.out = inputs, ledger, keys, Path(out)
        self.clock, self.report, self.payments = clock, report, payments
        self._keeper = Keeper(clock)
        steps = Steps.of(
            inputs, ledger, label=Workforce(inputs, ledger, clock, load=False),
            stop=Ending(CampaignStopping(inputs.plan), inputs.plan, ledger),
        )  # fmt: skip
        self.campaign = Campaign(inputs, ledger, steps, on_event=self._log_event)
        self.people = People(inputs, ledger)
        trouble = TroubleFile(self.out / TROUBLE)
        self.engine = watcher or Engine(self.campaign, self._export, trouble)
        self.loop = self.engine if isinstance(self.engine, Engine) else None
        self.work = Work(
            inputs, ledger, self.people, keys, clock, self.engine.is_over, self.engine.notify,
            completion, lambda: self.engine.live,
        )  # fmt: skip
        self.desk = Desk(
            inputs, ledger, self.people, self.engine, self.work.tasks, clock, keys, report
        )
        self.webhooks = Webhooks(inputs, ledger, clock, self.desk.names)
        ledger.database.held.told.append(self._abandon)

    @property
    def deployment(self) -> str:
        """What processes have in common that may serve the campaign together: plan and secret."""
        plan = json.dumps(self.inputs.plan.model_dump(mode="json"), sort_keys=True)
        key = self.keys.of("deployment")
        return blake2b(plan.encode(), key=key, digest_size=16).hexdigest()

    def begin(self) -> None:
        """Check plan and pool against the store and put them in force, as `goldspan run` does.

        Raises:
            InputError: The store holds another campaign, or this one with a plan that changed in
                more than its limits; or the secret of a webhook is missing.
            StoreError: Another process steers the campaign, or the store is damaged.
        """
        check_webhooks(self.inputs)
        self.campaign.begin()

    def start(self, *, loop: bool = True, keep: bool = True) -> None:
        """Start in this process what keeps the time, and the loop with what sends letters."""
        if keep:
            self._keeper.start()
        if loop:
            self.webhooks.start()
            if self.loop is not None:
                self.loop.start()
            if self.payments is not None:
                self.payments.start()

    def stop(self) -> None:
        """Stop what `start` began: while the role of the server is held, as all of it writes."""
        if self.payments is not None:
            self.payments.stop()
        self.webhooks.stop()
        if self.loop is not None:
            self.loop.stop()
        self._keeper.stop()

    def close(self) -> None:
        """Stop the loop and let go of the store."""
        self.stop()
        self.ledger.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _abandon(self, error: LostError) -> None:
        """Stop, as another process has taken over; called in any thread."""
        log.error("this server ends: %s", error)
        if self.loop is not None:
            self.loop.abandon()
        self.webhooks.abandon()
        if self.payments is not None:
            self.payments.abandon()

    def _log_event(self, event: CampaignEvent) -> None:
        """Log what the loop tells; a worker whom it is about is named by pseudonym."""
        if isinstance(event, WorkerDropped):
            event = replace(event, worker=self.desk.names(event.worker))
        for line in event.lines():
            log.info("%s", line.strip())

    def _export(self, campaign: Campaign) -> None:
        write_exports(campaign, self.out, self.desk.names.record)
        if self.report is not None:
            findings = ReportData.of(self.ledger, campaign.progress.result)
            self.report(self.desk.names.findings(findings), self.out / "report.html")


def check_web(plan: Plan) -> None:
    """Reject the plan of another crowd."""
    if not plan.crowd.is_served:
        raise InputError(
            f'crowd.source is {plan.crowd.source!r}: people in a browser are "web"; campaigns of '
            "other crowds are run by `goldspan run`"
        )


def open_service(
    plan: str | Path | CampaignInputs, out: str | Path, keys: Keys, store: str | None = None, *,
    new: NewPlaces | None = None, moment: tuple[int, int] | None = None, **options: Any,
) -> Service:  # fmt: skip
    """Open a campaign to be served; the same call goes on where it was.

    Nothing is asked of anybody yet: `Service.begin` puts the plan in force, `Service.start` starts
    the loop.

    Args:
        plan: Path of the plan, or the plan with its files.
        out: The folder of what comes out; the store is there if no other is named.
        keys: The server's secret.
        store: Path or address of the store.
        new: As for `open_store`.
        moment: Of the clock of the process that handed the campaign over: see `CampaignClock`.
        options: As for `Service`.

    Raises:
        InputError: The plan or its files are faulty, or the store holds another campaign.
    """
    if isinstance(plan, CampaignInputs):
        inputs = plan
        check_web(inputs.plan)
    else:
        read = read_plan(plan)
        check_web(read)
        inputs = read_inputs(read, Path(plan).parent)
    begin = options.get("clock") or wall_clock
    ledger = open_store(inputs, out, store, begin(), new=new)
    try:
        clock = options.setdefault("clock", None) or CampaignClock(ledger, moment=moment)
        options["clock"] = clock
        inputs = with_id(inputs, ledger, clock())
        provider = open_provider(inputs.plan, ledger, clock)
        options.setdefault("completion", provider.completion)
        sender = provider.sender() if provider.sends_requests else None
        payments = None if sender is None else PaymentThread(PaymentQueue(ledger, clock), sender)
        options.setdefault("payments", payments)
        return Service(inputs, ledger, keys, out, **options)
    except BaseException:
        ledger.close()
        raise
