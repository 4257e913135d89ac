"""Downloads: labels in every format, answers, the bill, the record, the report.

Workers' ids are replaced by pseudonyms, unless the requester asks for names.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from goldspan.aggregation import Consensus
from goldspan.aggregation.layered import Joint
from goldspan.campaign import CampaignRecord
from goldspan.campaign.auditing import CHECK, write_audit
from goldspan.campaign.clock import WallTimes
from goldspan.campaign.results import ReportData, bill_of
from goldspan.campaign.suggestions import SUGGESTED, listed
from goldspan.campaign.workforce import MODEL
from goldspan.crowd import Crowd, write_crowd
from goldspan.crowd.atomic import write_text
from goldspan.crowd.layers import whole_ids
from goldspan.crowd.registry import FORMATS
from goldspan.errors import InputError
from goldspan.store import export_partitions
from goldspan.web.desk.models import Export
from goldspan.web.errors import Refused
from goldspan.web.people import GOLD, decided_labels
from goldspan.web.settings import Keys, new_id

if TYPE_CHECKING:
    from goldspan.campaign.inputs import CampaignInputs
    from goldspan.store import SqlLedger
    from goldspan.web.engine import Engine, Watcher


# --------------------------------------------------------------------------------------------------
# Pseudonyms of workers


class Pseudonyms:
    """Gives workers other names."""

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
        return _over(result, self.crowd)

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


def people_of(ledger: SqlLedger) -> dict[str, str]:
    """Return the pseudonyms of the people of a private campaign: models keep their names."""
    models = {one["worker"] for one in ledger.records(MODEL).values()}
    return {who: name for who, name in ledger.pseudonyms().items() if name not in models}


# --------------------------------------------------------------------------------------------------
# Files


@dataclass(frozen=True)
class Download:
    """A file that was made."""

    name: str
    media: str
    content: bytes
    lost: tuple[str, ...] = ()  # What the format cannot hold of the labels and answers, in words


class Shown(NamedTuple):
    """What a file shows: the workers' own ids, what their answers cost, and one of several layers.

    Without a layer it shows the only question, or all of them.
    """

    names: bool
    money: bool
    layer: str | None = None


class File(NamedTuple):
    """A file that can be made."""

    what: str
    media: str
    make: Make
    layer: str | None = None


ALL = Shown(names=True, money=True)
Report = Callable[[ReportData, Path], None]
"""Writes the report of a campaign."""
NAMED = "named-download"
"""Kind of the records of files that named the workers."""
TEXT, JSON, ZIP = "text/plain; charset=utf-8", "application/json", "application/zip"
CSV, BINARY = "text/csv; charset=utf-8", "application/octet-stream"


class Downloads:
    """Makes the files of a campaign."""

    def __init__(
        self, inputs: CampaignInputs, ledger: SqlLedger, engine: Engine | Watcher,
        names: Pseudonyms, clock: Callable[[], int], report: Report | None,
    ) -> None:  # fmt: skip
        self._setting, self._ledger, self._engine = inputs, ledger, engine
        self._names, self._clock, self.report = names, clock, report

    def listed(self) -> list[Export]:
        """Return the files that can be made now."""
        found = self._all().items()
        return [Export(name=name, what=one.what, layer=one.layer) for name, one in found]

    def make(self, name: str, *, names: bool = False, money: bool = True, by: str = "") -> Download:
        """Make a file; with `names` it names the workers, and the log keeps who asked: `by`.

        Without `money` its answers have no costs. Files that are about money are made all the same.
        """
        known = self._all()
        if name not in known:
            raise Refused("unknown", f"There is no file {name!r}: {', '.join(known)}.", 404)
        _, media, make, layer = known[name]
        file = name if layer is None else name.removeprefix(f"{layer}-")
        with tempfile.TemporaryDirectory(prefix="goldspan-") as folder:
            path = Path(folder) / (file.removesuffix(".zip") if media == ZIP else file)
            try:
                lost = make(self, path, Shown(names, money, layer)) or []
            except InputError as error:
                raise Refused("invalid", f"{name} cannot be made: {error}", 422) from None
            content = _zipped(path) if path.is_dir() else path.read_bytes()
        if names:
            self._keep_named(name, by)
        return Download(name, media, content, tuple(lost))

    def make_partitions(self, folder: Path, n: int, *, names: bool = False, by: str = "") -> int:
        """Write all answers that count as so many files of a new folder; return how many."""
        if names:
            self._keep_named(folder.name, by)
        times = WallTimes(self._ledger)

        def shown(crowd: Crowd) -> Crowd:
            return times.crowd(crowd if names else self._names.crowd(crowd))

        return export_partitions(self._ledger, folder, n, shown)

    def _keep_named(self, file: str, by: str) -> None:
        """Keep who asked for names, before anybody has them."""
        self._ledger.record(NAMED, new_id(), {"file": file, "by": by}, self._clock())

    def _all(self) -> dict[str, File]:
        """Return every file by name; those of a layer have its name before their own."""
        plan = self._setting.plan
        asked = plan.task.questions
        found = _files(single=plan.is_single) if asked is None else _LAYERS
        found = found | {name: File(*facts) for name, facts in _ALWAYS.items()}
        for one in () if asked is None else asked.each:
            found |= _files(one.name, single=one.kind != "spans")
        if self.report is None:
            found.pop("report.html")
        if not plan.is_paid:
            found.pop("bill.csv")
        for kind, name in ((SUGGESTED, "suggestions.jsonl"), (CHECK, "audit.zip")):
            if not self._ledger.count(kind):
                found.pop(name)
        return found

    def _result(self, shown: Shown) -> Consensus:
        """Return the consensus, with pseudonyms of its workers and without costs if need be."""
        result = self._engine.live.result
        if result is None:
            raise Refused("unknown", "There are no answers yet.", 404)
        if not shown.money:
            result = _over(result, _without_costs)
        if not shown.names:
            result = self._names.result(result)
        if not isinstance(result, Joint) or shown.layer is None:
            return result
        if shown.layer not in result.layers:
            raise Refused("unknown", f"Nobody has answered {shown.layer!r} yet.", 404)
        return result.layers[shown.layer]

    def write_layers(self, path: Path, shown: Shown) -> None:
        """Write the consensus of all layers."""
        result = self._result(shown)
        assert isinstance(result, Joint)
        result.layers.write(path)

    def write_label_studio(self, path: Path, shown: Shown) -> list[str]:
        """Write all layers as one file of Label Studio, whose controls are called like them."""
        result, lost, tasks = self._result(shown), list[str](), dict[str, dict[str, Any]]()
        assert isinstance(result, Joint)
        each = result.layers
        # The tokens are those of the layer of spans, where there is one
        for layer in sorted(each, key=lambda name: each[name].crowd.is_classification):
            own = self.write_crowd_with_gold(path, shown._replace(layer=layer))
            lost += [f"{layer}: {what}" for what in own]
            for task in json.loads(path.read_bytes()):
                none: dict[str, Any] = {"annotations": [], "predictions": []}
                known = tasks.setdefault(task["data"]["item"], task | none)
                for kind in none:
                    _join(known[kind], task.get(kind, []), layer)
        annotations = (one for task in tasks.values() for one in task["annotations"])
        for number, one in enumerate(annotations, 1):
            one["id"] = number
        path.write_text(json.dumps([*tasks.values()], ensure_ascii=False), encoding="utf-8")
        return lost

    def write_labels(self, path: Path, shown: Shown) -> list[str]:
        """Write the consensus."""
        lost: list[str] = self._result(shown).write(path, _format(path))
        audited = self._engine.live.certificate
        if path.name == "dataset" and audited is not None:
            lines = [audited["text"], audited["design"], audited["goal"], *audited["notes"]]
            said = "".join(f"- {line}\n" for line in lines if line)
            card = (
                f"# {self._setting.plan.name}\n\nHow right the labels are, by an audit:\n\n{said}"
            )
            (path / "README.md").write_text(card, encoding="utf-8")
        return lost

    def write_answers(self, path: Path, shown: Shown) -> list[str]:
        """Write all answers that count, with wall-clock times."""
        crowd = WallTimes(self._ledger).crowd(self._result(shown).crowd)
        return write_crowd(crowd, path, format=_format(path))

    def write_crowd_with_gold(self, path: Path, shown: Shown) -> list[str]:
        """Write labels in a format of another tool: gold where the requester reviewed them."""
        result = self._result(shown)
        crowd = WallTimes(self._ledger).crowd(result.crowd).with_gold(result.codes)
        reviewed = decided_labels(self._ledger.records(GOLD))
        columns = crowd.item_ids, whole_ids(crowd), result.confidence
        scores = zip(*(column.tolist() for column in columns), strict=True)
        predicted = {item: score for item, whole, score in scores if whole not in reviewed}
        form = _format(path)
        return write_crowd(crowd, path, format=form, predicted=predicted, soft=result.soft)

    def write_bill(self, path: Path, shown: Shown) -> None:
        """Write what every worker earned."""
        del shown  # it pays people
        bill_of(self._setting.plan, self._ledger, self._result(ALL).crowd).write(path)

    def write_record(self, path: Path, shown: Shown) -> None:
        """Write the record of the campaign."""
        record = CampaignRecord.of(self._ledger, self._engine.live.result)
        facts = (record if shown.names else self._names.record(record)).to_dict()
        words = json.dumps(facts, ensure_ascii=False, indent=1) + "\n"
        path.write_text(words, encoding="utf-8")

    def write_suggestions(self, path: Path, shown: Shown) -> None:
        """Write what was suggested and what was answered, an answer per line."""
        crowd = self._result(ALL).crowd
        rows = list(listed(self._ledger, crowd))
        if not shown.names:
            rows = [{**row, "worker": self._names(row["worker"])} for row in rows]
        write_text(path, [json.dumps(row, ensure_ascii=False) + "\n" for row in rows])

    def write_audited(self, path: Path, shown: Shown) -> None:
        """Write what the certificate was computed from."""
        write_audit(path, self._ledger, self._result(shown))

    def write_report(self, path: Path, shown: Shown) -> None:
        """Write the report."""
        assert self.report is not None  # or it is not in the list
        findings = ReportData.of(self._ledger, self._engine.live.result)
        self.report(findings if shown.names else self._names.findings(findings), path)


Make = Callable[[Downloads, Path, Shown], list[str] | None]
"""Writes a file, and returns what is lost."""
ANSWERS = Downloads.write_answers
LABELS = Downloads.write_labels
BOTH = Downloads.write_crowd_with_gold
_FILES: dict[str, tuple[str, str, str, Make]] = {
    "gold.conll": ("conll", "labels with a confidence per token", TEXT, LABELS),
    "gold.csv": ("", "labels with a confidence", CSV, LABELS),
    "spans.jsonl": ("", "an item per line with its spans and their confidence", TEXT, LABELS),
    "gold.parquet": ("", "labels with every label's probability", BINARY, LABELS),
    "spans.csv": ("span-table", "a row per span with its confidence", CSV, LABELS),
    "label-studio.json": ("label-studio", "answers and labels for Label Studio", JSON, BOTH),
    "doccano.jsonl": ("doccano", "answers and labels for doccano", TEXT, BOTH),
    "prodigy.jsonl": ("prodigy", "answers and labels for Prodigy", TEXT, BOTH),
    "brat.zip": ("brat", "answers and labels for brat", ZIP, BOTH),
    "webanno.zip": ("webanno", "labels for INCEpTION (WebAnno TSV)", ZIP, LABELS),
    "xmi.zip": ("xmi", "labels with confidences for INCEpTION and DKPro (UIMA XMI)", ZIP, LABELS),
    "cas-json.zip": ("cas-json", "labels with confidences as UIMA CAS JSON", ZIP, LABELS),
    "dataset.zip": (
        "datasets", "labels, probabilities and answers for Hugging Face datasets", ZIP, LABELS,
    ),
    "gold.spacy": ("docbin", "labels for spaCy", BINARY, LABELS),
    "gliner.json": ("gliner", "labels for fine-tuning GLiNER", JSON, LABELS),
    "cleanlab.npz": ("cleanlab", "labels, probabilities and answers for cleanlab", BINARY, LABELS),
    "answers.tsv": ("wide", "all answers that count, a column per worker", TEXT, ANSWERS),
    "answers.csv": ("long", "all answers that count, a row per label", CSV, ANSWERS),
    "answers.jsonl": ("spans", "all answers that count, an item per line", TEXT, ANSWERS),
    "answers.parquet": ("parquet", "all answers that count, in columns", BINARY, ANSWERS),
    "folder.zip": ("folder", "all answers that count, a CoNLL file per worker", ZIP, ANSWERS),
}  # fmt: skip
"""Labels and answers by the name of their file: format ("" for that of a file of labels, which the
ending of its name tells), description, media type, maker."""
_SPANS_ALONE = {
    "gold.conll", "spans.jsonl", "spans.csv", "brat.zip", "webanno.zip", "xmi.zip", "cas-json.zip",
    "gliner.json", "folder.zip",
}  # fmt: skip
_SINGLE_ALONE = {"gold.csv"}
_LAYERS = {
    "layers.jsonl": File("an item per line with the labels of all layers", TEXT,
                         Downloads.write_layers),
    "label-studio.json": File("answers and labels of all layers for Label Studio", JSON,
                              Downloads.write_label_studio),
}  # fmt: skip
"""Labels of several layers together."""
_MODULES = {"spacy": "spacy", "uima": "cassis"}
"""What the extras of formats install."""
_ALWAYS: dict[str, tuple[str, str, Make]] = {
    "bill.csv": ("what every worker gets, under their own ids", CSV, Downloads.write_bill),
    "suggestions.jsonl": (
        "answers for which labels were suggested, shown or not, and what was changed",
        TEXT,
        Downloads.write_suggestions,
    ),
    "audit.zip": ("what the certificate is computed from", ZIP, Downloads.write_audited),
    "record.json": ("the campaign in plain values", JSON, Downloads.write_record),
    "report.html": ("the report", "text/html; charset=utf-8", Downloads.write_report),
}


def _files(layer: str | None = None, *, single: bool) -> dict[str, File]:
    """Return the files of labels and answers of a question."""
    other, head = _SPANS_ALONE if single else _SINGLE_ALONE, "" if layer is None else f"{layer}-"
    return {
        f"{head}{name}": File(what, media, make, layer)
        for name, (kind, what, media, make) in _FILES.items()
        if name not in other and _is_installed(kind)
    }


def _over(result: Consensus, change: Callable[[Crowd], Crowd]) -> Consensus:
    """Return the same labels over a changed crowd."""
    if isinstance(result, Joint):
        return result.over(change)
    return replace(result, crowd=change(result.crowd))


def _without_costs(crowd: Crowd) -> Crowd:
    return replace(crowd, answers=replace(crowd.answers, cost=None))


def _join(known: list[dict[str, Any]], more: list[dict[str, Any]], layer: str) -> None:
    """Add a layer's annotations or predictions of a task to those of the same people."""
    by = ("completed_by", "ground_truth", "model_version")
    for one in more:
        results = [{**result, "from_name": layer} for result in one["result"]]
        same = (other for other in known if all(one.get(key) == other.get(key) for key in by))
        if (other := next(same, None)) is None:
            known.append({**one, "result": results})
        else:
            other["result"] += results
            if "score" in other:
                other["score"] = round(other["score"] * one["score"], 4)


def _format(path: Path) -> str | None:
    """Return the format of a file, or of the folder that becomes an archive."""
    found = _FILES.get(path.name) or _FILES[f"{path.name}.zip"]
    return found[0] or None


def _is_installed(format_: str) -> bool:
    """Return whether what a format takes is here; it is not imported to find out."""
    extra = FORMATS[format_].extra if format_ else ""
    return not extra or find_spec(_MODULES[extra]) is not None


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return buffer.getvalue()
