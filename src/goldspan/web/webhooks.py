"""Webhooks: signed messages to programs about what happens in a campaign.

A thread gathers messages from the campaign's log (`goldspan.store.programs`) and sends them, each
program's one after the other, with growing pauses while a program does not take them. Messages are
signed as Standard Webhooks has it (https://www.standardwebhooks.com): `webhook-id`,
`webhook-timestamp`, `webhook-signature`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any

from goldspan.campaign.clock import WallTimes, wall_of
from goldspan.client import sign_webhook
from goldspan.errors import GoldspanError, InputError, MissingExtraError
from goldspan.plugins import secret_of
from goldspan.store import programs
from goldspan.store.engine import LostError
from goldspan.store.programs import FAILED, SENT, WAITING, Message

if TYPE_CHECKING:
    import httpx2
    from sqlalchemy import Connection

    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.campaign.section import Webhook
    from goldspan.store import SqlLedger
    from goldspan.store.journal import Entry

log = logging.getLogger("goldspan.web.webhooks")
ROUND, END, ANSWER = "round.closed", "campaign.ended", "answer"
POLL = 1.0
"""Seconds between two looks at the log."""
SECONDS = 10.0
"""How long a program may take for all of its answer."""
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 3_600.0
"""Seconds before the second try, which double with each one, and most of them."""
GIVEN_UP = 3 * 86_400_000
"""Milliseconds after which a message that was not taken is given up."""
KEPT = 30 * 86_400_000
"""Milliseconds for which the deliveries that are over are kept."""
AT_ONCE = 20
"""Messages to a program between two looks at the log."""
LEAST_SECRET = 24
"""Bytes of the secret of a signature."""
GONE = 410
"""The status by which a program says that it wants no such message any more."""
SHOWN = 100
"""Deliveries that the desk shows."""
_NAT64, _UNICAST = IPv6Network("64:ff9b::/96"), IPv6Network("2000::/3")
_SPECIAL = tuple(map(ip_network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16", "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
    "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/3",
    "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)))  # fmt: skip
"""The registries of special-purpose addresses at IANA, multicast, and Azure's metadata service."""
Resolve = Callable[[str, int], list[str]]
"""Finds the addresses of a host."""


class Forbidden(GoldspanError):  # noqa: N818 - what the address is
    """An address to which nothing is sent."""


# --------------------------------------------------------------------------------------------------
# Where messages go


def is_public(address: str) -> bool:
    """Whether an address is one of the internet, also by what is embedded in it."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address):
        inner = IPv4Address(found.packed[12:]) if found in _NAT64 else found.ipv4_mapped
        if inner is None and found not in _UNICAST:
            return False
        found = inner or found
    return not any(found in network for network in _SPECIAL)


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def secret_for(hook: Webhook) -> str:
    """Return the secret of a webhook's signature."""
    secret = secret_of(hook.secret)
    if secret is None:
        raise InputError(
            f"webhook {hook.called}: set {hook.secret}, or {hook.secret}_FILE, to the secret of "
            'the signature, for example what `echo "whsec_$(openssl rand -base64 32)"` writes'
        )
    sign_webhook(secret, "", "", b"")  # rejects what is not Base64
    if len(secret) < LEAST_SECRET:
        raise InputError(
            f"webhook {hook.called}: {hook.secret} must hold {LEAST_SECRET} characters or more"
        )
    return secret


# --------------------------------------------------------------------------------------------------
# What messages say


class Gathering:
    """Makes messages of what the log says."""

    def __init__(
        self, inputs: CampaignInputs, ledger: SqlLedger, clock: Callable[[], int],
        names: Callable[[str], str],
    ) -> None:  # fmt: skip
        self._inputs, self._ledger, self._clock, self._names = inputs, ledger, clock, names
        self._seen, self._pruned, self._later = -1, -KEPT, False

    def begin(self) -> None:
        """Note where the log ends, for programs that are new: they are told what comes.

        What waits for programs that are no longer in the plan is given up.
        """
        hooks = [hook.called for hook in self._inputs.plan.webhooks]

        def act(entry: Entry) -> None:
            programs.forget_others(entry, hooks)
            self._gather(entry)

        self._ledger.transact(self._clock(), act)

    def look(self) -> int:
        """Make the messages that are due to be made; count them."""
        now, n_events = self._clock(), self._ledger.n_events
        if n_events == self._seen and not self._later:
            return 0
        made: int = self._ledger.transact(now, self._gather)
        self._seen = n_events
        return made

    def _gather(self, entry: Entry) -> int:
        made, self._later = 0, False
        wall = WallTimes(self._ledger)
        for hook in self._inputs.plan.webhooks:
            name = hook.called
            for event, kind in ((ROUND, "round"), (END, "stop")):
                if event in hook.events:
                    read = partial(self._records, name, event, kind, wall)
                    made += programs.gather(entry, name, event, read)
            if ANSWER in hook.events:
                is_due, n = self._is_due(entry, hook), 0
                if is_due:
                    n = programs.gather(entry, name, ANSWER, partial(self._answers, name, wall))
                made += n
                self._later |= bool(n) or not is_due  # there may be more of them
        if entry.now - self._pruned >= KEPT // 720:  # once an hour
            self._pruned = entry.now
            programs.drop_sent(entry, entry.now - KEPT)
        return made

    def _is_due(self, entry: Entry, hook: Webhook) -> bool:
        """Whether answers are to be told: not too soon, and not before the last were taken."""
        last, is_waiting = programs.last_made(entry.connection, hook.called, ANSWER)
        return not is_waiting and (
            last is None or entry.now - last >= round(1000 * hook.answers_every)
        )

    def _records(
        self, hook: str, event: str, kind: str, wall: WallTimes, connection: Connection, after: int
    ) -> tuple[int, Iterator[tuple[str, str]]]:
        upto, found = programs.records_since(connection, after, kind)
        rows = [
            (one, self._round(facts) if event == ROUND else {"why": facts["why"]})
            for one, _, facts in found
            if event == ROUND or facts["stop"]
        ]
        return upto, (
            self._message(hook, event, one.number, wall(one.time), data) for one, data in rows
        )

    def _answers(
        self, hook: str, wall: WallTimes, connection: Connection, after: int
    ) -> tuple[int, Iterator[tuple[str, str]]]:
        upto, came = programs.answers_since(connection, after)
        if not came:
            return upto, iter(())
        private = self._ledger.is_private
        rows = [
            {"item": one.item, "worker": one.worker if private else self._names(one.worker),
             "status": one.status, "time": wall(one.time)}
            for one in came
        ]  # fmt: skip
        last = came[-1]
        return upto, iter([
            self._message(hook, ANSWER, last.number, wall(last.time), {"answers": rows})
        ])  # fmt: skip

    @staticmethod
    def _round(facts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: facts.get(name) for name in ("round", "items", "answers", "score", "control")}

    def _message(
        self, hook: str, event: str, number: int, when: int, data: Mapping[str, Any]
    ) -> tuple[str, str]:
        """Return name and body of a message; both follow from the log."""
        words = f"{self._inputs.key}\0{hook}\0{event}\0{number}".encode()
        name = f"msg_{blake2b(words, digest_size=16).hexdigest()}"
        body = {"type": event, "campaign": self._inputs.key, "time": when, "data": data}
        return name, json.dumps(body, ensure_ascii=False, separators=(",", ":"))


# --------------------------------------------------------------------------------------------------
# Sending


class Webhooks:
    """The webhooks of a campaign: a thread that collects and sends, and its desk view."""

    def __init__(
        self, inputs: CampaignInputs, ledger: SqlLedger, clock: Callable[[], int],
        names: Callable[[str], str], *, resolve: Resolve = resolve,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:  # fmt: skip
        self.hooks = inputs.plan.webhooks
        self.gathering = Gathering(inputs, ledger, clock, names)
        self._ledger, self._clock, self._wall = ledger, clock, wall_of(clock)
        self._resolve, self._transport = resolve, transport
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None
        self._secrets: dict[str, str] = {}

    def start(self) -> None:
        """Begin, if the plan has webhooks."""
        self._secrets = {hook.called: secret_for(hook) for hook in self.hooks}
        self.gathering.begin()
        if not self.hooks:
            return
        self._thread = threading.Thread(target=self._run, name="goldspan webhooks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; what is not sent is sent after the next start."""
        self._halt.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * SECONDS)

    def abandon(self) -> None:
        """Send nothing more; nothing is waited for."""
        self._halt.set()

    # ---- what the desk shows ----

    def deliveries(self) -> list[Message]:
        """Return the last messages, the newest first."""
        return self._ledger.database.query(programs.last_messages, SHOWN)

    def counts(self) -> dict[tuple[str, str], int]:
        """Count the messages by program and state."""
        return self._ledger.database.query(programs.counts)

    def send_again(self, number: int) -> bool:
        """Let a message that was not taken be sent now; False if there is none."""
        hooks = [hook.called for hook in self.hooks]
        found: bool = self._ledger.transact(
            self._clock(), lambda entry: programs.send_again(entry, number, hooks)
        )
        return found

    # ---- the thread ----

    def _run(self) -> None:
        try:
            asyncio.run(self._send_all())
        except LostError:  # told where it was found
            return
        except Exception as error:  # noqa: BLE001 - it must be seen that nothing is sent any more
            log.error("no webhook is sent any more: %s", type(error).__name__)  # noqa: TRY400

    async def _send_all(self) -> None:
        """Gather and send until the server ends; a program that is slow delays no other."""
        import httpx2

        told, sending = "", dict[str, asyncio.Task[None]]()
        async with httpx2.AsyncClient(
            timeout=SECONDS, follow_redirects=False, trust_env=False, transport=self._transport
        ) as client:
            while not self._halt.is_set():
                try:
                    await asyncio.to_thread(self.gathering.look)
                    told = ""
                except LostError:
                    raise
                except Exception as error:  # noqa: BLE001 - it is tried again
                    # What is not foreseen may quote what people wrote.
                    is_told = isinstance(error, GoldspanError)
                    words = str(error) if is_told else type(error).__name__
                    if words != told:
                        log.warning("webhooks wait: %s", words)
                    told = words
                for hook in self.hooks:
                    task = sending.get(hook.called)
                    if task is None or task.done():
                        sending[hook.called] = asyncio.create_task(self._send_due(hook, client))
                await asyncio.to_thread(self._halt.wait, POLL)
            for task in sending.values():
                task.cancel()
            await asyncio.gather(*sending.values(), return_exceptions=True)

    async def _send_due(self, hook: Webhook, client: httpx2.AsyncClient) -> None:
        """Send a program's messages until one is not taken."""
        try:
            found = await asyncio.to_thread(
                self._ledger.database.query, programs.due, hook.called, self._clock(), AT_ONCE
            )
            for message in found:
                if self._halt.is_set() or not await self._send(hook, message, client):
                    return
        except LostError:
            self._halt.set()
        except GoldspanError as error:
            log.debug("webhook %s waits: %s", hook.called, error)
        except Exception as error:  # noqa: BLE001 - what one message breaks must not end the others
            log.error("webhook %s: %s", hook.called, type(error).__name__)  # noqa: TRY400

    async def _send(self, hook: Webhook, message: Message, client: httpx2.AsyncClient) -> bool:
        """Send a message once, and keep what became of it; return whether it was taken."""
        status, why, told = await self._post(hook, message, client)
        is_taken = 200 <= status < 300
        now = self._clock()
        state, next_due = SENT if is_taken else WAITING, now
        if not is_taken:
            pause = min(FIRST_PAUSE * 2.0 ** min(message.tries, 20), LONGEST_PAUSE)
            pause = max(pause * random.uniform(0.75, 1.25), min(told, LONGEST_PAUSE))  # noqa: S311
            next_due = now + round(1000 * pause)
            if status == GONE or next_due - message.made > GIVEN_UP:
                state = FAILED
            log.warning(
                "webhook %s: a message was not taken (%s), %s", hook.called, why,
                "given up" if state == FAILED else f"again in {pause:.0f} seconds",
            )  # fmt: skip
        await asyncio.to_thread(
            self._ledger.transact, now,
            lambda entry: programs.note_try(
                entry, message.number, state, next_due, status, "" if is_taken else why
            ),
        )  # fmt: skip
        return is_taken

    async def _post(
        self, hook: Webhook, message: Message, client: httpx2.AsyncClient
    ) -> tuple[int, str, float]:
        """Return the status of a program's answer, why it did not take it, and when it may."""
        try:
            async with asyncio.timeout(SECONDS):  # of all: a program may answer byte by byte
                address = await self._address(hook)
                return await self._post_to(address, hook, message, client)
        except TimeoutError:
            return 0, f"no answer in {SECONDS:.0f} seconds", 0.0
        except Forbidden as error:
            return 0, str(error), 0.0
        except Exception as error:  # noqa: BLE001 - whatever it is, this try is over
            # Its words may hold the address, which may hold something secret.
            return 0, type(error).__name__, 0.0

    async def _post_to(
        self, address: str, hook: Webhook, message: Message, client: httpx2.AsyncClient
    ) -> tuple[int, str, float]:
        import httpx2

        url, host = httpx2.URL(hook.url), str(hook.place.hostname)
        sent, body = str(self._wall() // 1000), message.body.encode()
        headers = {
            "Host": url.netloc.decode("ascii"),
            "Content-Type": "application/json",
            "User-Agent": "goldspan-webhooks",
            "webhook-id": message.name,
            "webhook-timestamp": sent,
            "webhook-signature": sign_webhook(self._secrets[hook.called], message.name, sent, body),
        }
        # The address that was checked is the one that is used: a second look-up of the name could
        # find another. The certificate must still be that of the name.
        request = client.build_request(
            "POST", url.copy_with(host=address), headers=headers, content=body,
            extensions={"sni_hostname": host},
        )  # fmt: skip
        answer = await client.send(request, stream=True)
        try:
            told = answer.headers.get("Retry-After", "")
            pause = float(told[:9]) if told.isascii() and told.isdigit() else 0.0
            return answer.status_code, f"status {answer.status_code}", pause
        finally:
            await answer.aclose()  # what else it says is not read

    async def _address(self, hook: Webhook) -> str:
        place = hook.place
        port = place.port or (443 if place.scheme == "https" else 80)
        found = await asyncio.to_thread(self._resolve, str(place.hostname), port)
        if not found:
            raise Forbidden("the host has no address")
        if not hook.local and not all(map(is_public, found)):
            raise Forbidden(
                "the host's address is of this machine or a private network: if that is meant, set "
                "local = true in the plan"
            )
        return found[0]


def check_webhooks(inputs: CampaignInputs) -> None:
    """Reject webhooks whose secrets are missing, or that cannot be sent."""
    if not inputs.plan.webhooks:
        return
    try:
        import httpx2  # noqa: F401 - whether it is there
    except ImportError:  # pragma: no cover - the extra is installed where the tests run
        raise MissingExtraError("httpx2", "server", "a webhook") from None
    for hook in inputs.plan.webhooks:
        secret_for(hook)
