"""Downloads, with pseudonyms in place of workers' ids."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from goldspan.aggregation import Consensus
from goldspan.campaign import CampaignRecord
from goldspan.campaign.clock import WallTimes
from goldspan.campaign.results import ReportData
from goldspan.crowd import Crowd
from goldspan.errors import InputError
from goldspan.web.errors import Refused
from goldspan.web.security.secret import Keys, new_id
from goldspan.workers import PayPlan, make_bill

if TYPE_CHECKING:
    from goldspan.web.service import Service


# --------------------------------------------------------------------------------------------------
# Names that stand for workers in downloads: the same everywhere, and nobody else's.


class Pseudonyms:
    """Gives workers other names.

    Args:
        keys: The server's; not needed with `known`.
        campaign: The campaign's id: a worker has another name in every campaign.
        known: Returns the store's pseudonyms by id; None where it has none.
    """

    def __init__(
        self, keys: Keys | None, campaign: str,
        known: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:  # fmt: skip
        self._key = b"" if keys is None else keys.of("pseudonym")
        self._campaign, self._known = campaign, known

    def __call__(self, worker: str) -> str:
        """Return the name of a worker.

        >>> names = Pseudonyms(Keys(bytes(range(32))), "weather-1")
        >>> names("ann") == names("ann"), names("ann") == names("bob"), len(names("ann"))
        (True, False, 14)
        """
        return self._now()(worker)

    def _now(self) -> Callable[[str], str]:
        """Return what gives names, as they are now."""
        if self._known is None:
            return self._hashed
        known = self._known()
        return lambda worker: known.get(worker, worker)  # who is not known was forgotten

    def _hashed(self, worker: str) -> str:
        words = f"{self._campaign}\0{worker}".encode()
        return f"w-{blake2b(words, key=self._key, digest_size=6).hexdigest()}"

    def crowd(self, crowd: Crowd) -> Crowd:
        """Return a crowd whose workers have these names."""
        names = list(map(self._now(), crowd.worker_ids.to_pylist()))
        return replace(crowd, worker_ids=pa.array(names, pa.string()))

    def result(self, result: Consensus) -> Consensus:
        """Return labels whose crowd has these names."""
        return replace(result, crowd=self.crowd(result.crowd))

    def record(self, record: CampaignRecord) -> CampaignRecord:
        """Return the record of a campaign with these names."""
        name = self._now()
        workers = {name(worker): facts for worker, facts in record.workers.items()}
        return replace(record, workers=dict(sorted(workers.items())))

    def findings(self, findings: ReportData) -> ReportData:
        """Return what a report tells with these names."""
        result, tested = findings.result, findings.tested
        return replace(
            findings,
            record=self.record(findings.record),
            result=None if result is None else self.result(result),
            tested=None if tested is None else self.result(tested),
        )

    def decode(self, shown: str, workers: Any) -> str | None:
        """Return the worker behind a name, of those that are known; None if it is nobody's."""
        name = self._now()
        return next((worker for worker in workers if name(worker) == shown), None)


# --------------------------------------------------------------------------------------------------
# Files to take away: labels in every format, answers, the bill, the record, the report.


@dataclass(frozen=True)
class Download:
    """A file that was made.

    Attributes:
        name: Of the file.
        media: Its media type.
        content: Its bytes.
        lost: What the file does not give back of the labels and answers, in words.
    """

    name: str
    media: str
    content: bytes
    lost: tuple[str, ...] = ()


Make = Callable[["Service", Path, bool], list[str] | None]
"""Writes a file, with the workers' own names if the last argument is true; returns what is lost."""
NAMED = "named-download"
"""Kind of the records of files that named the workers."""
TEXT, JSON, ZIP = "text/plain; charset=utf-8", "application/json", "application/zip"
CSV, BINARY = "text/csv; charset=utf-8", "application/octet-stream"


def _labels(service: Service, path: Path, names: bool) -> list[str]:
    lost: list[str] = _result(service, names).write(path)
    return lost


def _answers(service: Service, path: Path, names: bool) -> list[str]:
    from goldspan.crowd import write_crowd

    crowd = WallTimes(service.ledger).crowd(_result(service, names).crowd)
    return write_crowd(crowd, path, format=_format(path))


def _gold_as_crowd(service: Service, path: Path, names: bool) -> list[str]:
    """Write the labels found, as gold of the items, in a format of other tools."""
    from goldspan.crowd import write_crowd

    result = _result(service, names)
    lost = write_crowd(
        WallTimes(service.ledger).crowd(result.crowd).with_gold(result.codes),
        path,
        format=_format(path),
    )
    # A crowd has no place for it, so that reading the file again cannot tell.
    n_spans = len(result.span_array)
    return [*lost, f"the confidence of {n_spans:,} spans"] if n_spans else lost


def _bill(service: Service, path: Path, names: bool) -> None:
    del names  # it pays people
    prices = service.inputs.plan.prices
    plan = PayPlan(
        per_answer=prices.per_answer, per_token=prices.per_token, currency=prices.currency
    )
    make_bill(_result(service, names=True).crowd, plan, recorded="use").write(path)


def _record(service: Service, path: Path, names: bool) -> None:
    record = CampaignRecord.of(service.ledger)
    shown = (record if names else service.desk.names.record(record)).to_dict()
    path.write_text(json.dumps(shown, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _report(service: Service, path: Path, names: bool) -> None:
    if service.report is None:
        raise Refused("unknown", "This server makes no reports.", 404)
    findings = ReportData.of(service.ledger, service.engine.live.result)
    service.report(findings if names else service.desk.names.findings(findings), path)


_FORMAT = {
    "answers.jsonl": "spans", "label-studio.json": "label-studio", "doccano.jsonl": "doccano",
    "prodigy.jsonl": "prodigy",
    "brat.zip": "brat", "answers.csv": "long", "answers.tsv": "wide",
}  # fmt: skip
_SPANS: dict[str, tuple[str, str, Make]] = {
    "gold.conll": ("labels with a confidence per token", TEXT, _labels),
    "spans.jsonl": ("an item per line with its spans and their confidence", TEXT, _labels),
    "gold.parquet": ("labels with every tag's probability", BINARY, _labels),
    "label-studio.json": ("answers and labels for Label Studio", JSON, _gold_as_crowd),
    "doccano.jsonl": ("answers and labels for doccano", TEXT, _gold_as_crowd),
    "prodigy.jsonl": ("answers and labels for Prodigy", TEXT, _gold_as_crowd),
    "brat.zip": ("answers and labels for brat", ZIP, _gold_as_crowd),
    "answers.tsv": ("all answers that count, a column per worker", TEXT, _answers),
    "answers.jsonl": ("all answers that count, as spans", TEXT, _answers),
}
_SINGLE: dict[str, tuple[str, str, Make]] = {
    "gold.csv": ("labels with a confidence", CSV, _labels),
    "gold.parquet": ("labels with every label's probability", BINARY, _labels),
    "answers.csv": ("all answers that count", CSV, _answers),
}
_BOTH: dict[str, tuple[str, str, Make]] = {
    "bill.csv": ("what every worker gets, under their own ids", CSV, _bill),
    "record.json": ("the campaign in plain values", JSON, _record),
    "report.html": ("the report", "text/html; charset=utf-8", _report),
}


def _format(path: Path) -> str | None:
    return _FORMAT.get(path.name) or _FORMAT.get(f"{path.name}.zip")


def listed(service: Service) -> list[dict[str, str]]:
    """Name what can be downloaded."""
    return [{"name": name, "what": what} for name, (what, _, _) in _all(service).items()]


def made(service: Service, name: str, *, names: bool = False, by: str = "") -> Download:
    """Make a file.

    Args:
        service: The campaign.
        name: Of the file.
        names: Whether it names the workers; the log then keeps that it was made.
        by: Who asked for it, for the log.

    Raises:
        Refused: There is no such file, or nothing for it yet.
    """
    if name not in _all(service):
        raise Refused("unknown", f"There is no file {name!r}: {', '.join(_all(service))}.", 404)
    _, media, make = _all(service)[name]
    with tempfile.TemporaryDirectory(prefix="goldspan-") as folder:
        path = Path(folder) / (name.removesuffix(".zip") if media == ZIP else name)
        try:
            lost = make(service, path, names) or []
        except InputError as error:
            raise Refused("invalid", f"{name} cannot be made: {error}", 422) from None
        content = _zipped(path) if path.is_dir() else path.read_bytes()
    if names:  # kept before anybody has it
        service.ledger.record(NAMED, new_id(), {"file": name, "by": by}, service.clock())
    return Download(name, media, content, tuple(lost))


def _all(service: Service) -> dict[str, tuple[str, str, Make]]:
    found = {**(_SINGLE if service.inputs.plan.is_single else _SPANS), **_BOTH}
    if service.report is None:
        found.pop("report.html")
    if not service.inputs.plan.is_paid:
        found.pop("bill.csv")
    return found


def _result(service: Service, names: bool) -> Any:
    """Return the labels; their crowd's workers have pseudonyms unless `names` is true."""
    result = service.engine.live.result
    if result is None:
        raise Refused("unknown", "There are no answers yet.", 404)
    return result if names else service.desk.names.result(result)


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return buffer.getvalue()
