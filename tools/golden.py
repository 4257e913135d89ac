"""Golden outputs: what every command says and writes is frozen, and compared again after each step.

    python tools/golden.py --check                 # compare everything with the frozen files
    python tools/golden.py --check --only run      # one case, or several: a glob
    python tools/golden.py --write --only NEW      # freeze a new case
    python tools/golden.py --check --bits FILE     # also the same bits as when FILE was written

A case is a call of the command line on small inputs that this file makes without the package. Its
frozen form is `tests/golden/CASE.json`: what `--json` printed, and the files that were written. The
frozen files are not rewritten while the code is rebuilt. What changes on purpose is listed in
`tools/golden_renames.toml`: renamed keys and words, and changed values, each with its reason.

Numbers agree within 1e-9 (relative for those above 1), or as the table says of a case; numbers that
are kept as float32 also if they are neighbours there. All other values, among them labels, texts
and the order of rows, agree exactly. `MASKS` lists what is not compared. With `--bits FILE` the
digests of the unmasked probabilities are written to FILE, or compared with it if it exists: for one
machine, not committed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import random
import re
import sys
import tempfile
import time
import tomllib
import zlib
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
FROZEN = ROOT / "tests" / "golden"
TABLE = ROOT / "tools" / "golden_renames.toml"
TOLERANCE = 1e-9
MASK = "(masked)"
NOW = 1_700_000_000
"""The time at which everything happens, in seconds since 1970: the system's clock is replaced."""
LATER = NOW + 3600
"""The time at which a campaign that was served is looked at."""

MASKS = {
    # "case/path", as globs: what differs from machine to machine or from run to run, and why.
    "*/json.result.seconds": "how long it took",
    "*/*versions.*": "versions of the packages",
    "desk-*/json.campaign": "holds a digest of the plan",
    "*/json.id": "holds a digest of the plan",
    "*/files.*record.json.id": "holds a digest of the plan",
    "links-*/json.*.id": "drawn at random",
    "links-*/json.*.url": "signed with the server's secret",
    "tokens-*/json.*id": "drawn at random",
    "tokens-add/json.token": "drawn at random",
    "backup-json/json.head": "a hash of the whole log, with the versions of the packages",
    "verify/json.head": "a hash of the whole log, with the versions of the packages",
    "forget*/json.people.*.pseudonym": "drawn at random",
    "format-*/json.remarks": "what readers could not use, which the tests of the formats compare",
}
"""What is not compared, and why."""
MASKED_TEXTS = {
    ("*/files.*.html.*", r"[0-9.e-]+ seconds"): "how long it took",
    ("*/files.*.html.*", r"^[a-z-]+ \d+\.\d+\S*$"): "versions of the packages",
    ("*/files.*.html.*", r"(?<=-)[0-9a-f]{8,16}\b"): "a digest of the plan",
    ("backup/said.*", r"(?<=log: )[0-9a-f]{64}"): "a hash of the whole log",
}
"""The same of parts of texts."""

WITHOUT_JSON = {
    "serve": "runs until it is ended; what it serves is tested in tests/web",
    "payments": "needs an account of a provider; tests/web/providers play one",
    "tokens revoke": "needs an id that is drawn at random; tests/cli/test_tokens.py",
    "train encoder": "needs torch; tests/cli/test_train_encoder.py",
    "train project": "writes for other libraries; tests/models/test_projects.py trains with them",
    "tagger export": "needs torch; tests/tagger/test_encoder.py exports a tiny encoder",
}
"""Commands without a case, and why."""


# The places at which this file touches the package's Python names.


def command_names() -> dict[str, bool]:
    """List the commands ("desk overview" with its group), and whether each has --json."""
    import typer

    from goldspan.cli import app

    def leaves(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
        for name, one in getattr(command, "commands", {}).items():
            if not one.hidden:
                yield from leaves(one, (*words, name))
        if not hasattr(command, "commands"):
            options = [option for param in command.params for option in param.opts]
            yield " ".join(words), "--json" in options

    return dict(leaves(typer.main.get_command(app), ()))


def run_command(words: list[str]) -> tuple[int, str, str]:
    """Run a command in this process: its exit code, standard output and standard error."""
    from goldspan.cli import main

    said, told = io.StringIO(), io.StringIO()
    code = 0
    argv = mock.patch.object(sys, "argv", ["goldspan", *words])
    with argv, redirect_stdout(said), redirect_stderr(told):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return code, said.getvalue(), told.getvalue()


def method_names() -> list[str]:
    """Return every registered method, with a text model too if that needs no extra."""
    from goldspan.aggregation.registry import METHODS, TEXTS

    own = [text for text in TEXTS if text != "encoder"]
    texts = [f"{name}+{text}" for name in METHODS if name.startswith("bsc-") for text in own]
    return [*(name for name in METHODS if name != "ordinal"), *texts]  # its labels are numbers


def format_names() -> list[str]:
    """Return every registered format that is written without an extra."""
    from pkgutil import resolve_name

    from goldspan.crowd.registry import FORMATS

    return [
        name
        for name, home in FORMATS.items()
        if hasattr(resolve_name(home.module), "write") and not home.extra
    ]


@contextmanager
def served(plan: Path, out: Path, now: Callable[[], int]) -> Iterator[tuple[Any, Any]]:
    """Open a campaign's service and its application, as `goldspan serve` does, without a socket."""
    from goldspan.web import ServerSettings, create_app, load_keys, open_service

    keys = load_keys(out)
    service = open_service(plan, out, keys, clock=now)
    try:
        yield service, create_app(service, ServerSettings(keys, clock=now))
    finally:
        service.close()


def run_loop(service: Any) -> None:
    """Let the loop of a served campaign go on until it waits for answers or is over."""
    service.campaign.run()


def write_gold(service: Any, out: Path) -> None:
    """Write the files of a served campaign, as its loop does when it ends."""
    from goldspan.campaign import write_exports

    write_exports(service.campaign, out, service.desk.names.record)


# The inputs: made here, so that they never change with the package.

WORDS = {"rain": ["wet", "cloud", "grey", "storm"], "sun": ["warm", "bright", "blue", "dry"]}
ANNOTATORS = {"ann": 0.9, "bob": 0.8, "cid": 0.75, "dee": 0.6, "eve": 0.35}
TEXTS = [
    ("Ann  sang in Köln.", [(0, 3, "PER"), (13, 17, "LOC")]),
    ('Bob\u00a0Lee, "the rock" 😀, left Rome', [(0, 7, "PER"), (28, 32, "LOC")]),
    ("東京 is bigger than Kiel", [(0, 2, "LOC"), (18, 22, "LOC")]),
    ("Nobody was here", []),
]


def write_inputs(folder: Path) -> None:
    """Write every file that cases read."""
    rng = random.Random(20_261_122)  # noqa: S311 - the same numbers everywhere
    rows = (ROOT / "examples" / "crowd.tsv").read_text("utf-8").splitlines()
    _write(folder / "names.tsv", rows[: _end_of_item(rows, 10)])
    _write(folder / "more" / "crowd.tsv", rows[: _end_of_item(rows, 24)])
    pool = [row.split("\t")[2] if row else "" for row in rows[1 : _end_of_item(rows, 40)]]
    _write(folder / "pool.txt", " ".join(w or "\n" for w in pool).split("\n"))
    labels = ["rain", "sun", "snow"]
    truth = {f"d{n:02}": labels[n % 3] for n in range(24)}
    votes = [
        (item, worker, label if rng.random() < right else rng.choice(labels))
        for item, label in truth.items()
        for worker, right in ANNOTATORS.items()
        if rng.random() < 0.85
    ]
    _write(folder / "votes.csv", ["item,worker,label", *(",".join(vote) for vote in votes)])
    _write(folder / "votes-gold.csv", ["item,label", *(f"{i},{y}" for i, y in truth.items())])
    few = list(truth.items())[::3]
    _write(folder / "votes-known.csv", ["item,label", *(f"{i},{y}" for i, y in few)])
    _write(folder / "broken.conll", ["Ann\tI-PER", "sang\tO", "in\tI-LOC", "Rome\tB-LOC", ""])
    _write(folder / "everything.jsonl", map(_json, everything()))
    _write(folder / "choices.jsonl", map(_json, choices()))
    write_weather(folder / "weather")
    write_weather(folder / "served", web=True)
    (folder / "spans").mkdir()
    _write(folder / "spans" / "crowd.tsv", rows[: _end_of_item(rows, 16)])
    _write(folder / "spans" / "campaign.toml", [SPANS_PLAN])


def everything() -> Iterator[dict[str, Any]]:
    """Yield items with all that a crowd can hold: see `spans` in docs/formats.md."""
    for n, (text, spans) in enumerate(TEXTS):
        answers = []
        for k, worker in enumerate(("ann", "bob", "cid, jr")):
            found = [list(span) for m, span in enumerate(spans) if (n + m + k) % 3]
            begun = NOW * 1000 + 60_000 * n + 7 * k
            answer = {"worker": worker, "spans": found, "started": begun}
            answers.append(answer | {"submitted": begun + 9_000, "cost": 50_000 + k})
        answers.append(answers[0] | {"spans": [list(span) for span in spans], "attempt": 1})
        yield {
            "item": f"i {n}", "doc": f"D{n // 2}", "text": text, "unit": "char",
            "gold": [list(span) for span in spans], "answers": answers[n % 2 :],
            "attributes": {"source": "web", "year": 2000 + n, "score": n / 3, "ok": n > 1},
        }  # fmt: skip


def choices() -> Iterator[dict[str, Any]]:
    """Yield items with a single label each."""
    for n, (text, _) in enumerate(TEXTS):
        answers = [
            {"worker": worker, "label": ["pos", "neg", "not sure"][(n + k) % 3]}
            for k, worker in enumerate(("ann", "bob", "cid")) if n + k
        ]  # fmt: skip
        yield {"item": f"c{n}", "doc": f"D{n // 2}", "text": text, "gold": "pos",
               "answers": answers, "source": f"s{n}"}  # fmt: skip


def write_weather(folder: Path, *, web: bool = False, n: int = 20) -> None:
    """Write a plan of single labels with its pool and truth."""
    truth = ["rain" if i % 3 else "sun" for i in range(n)]
    texts = [f"{WORDS[y][i % 4]} and {WORDS[y][i // 4 % 4]} day {i}" for i, y in enumerate(truth)]
    pool = [_json({"id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    _write(folder / "pool.jsonl", pool)
    _write(folder / "truth.csv", ["item,label", *(f"d{i},{y}" for i, y in enumerate(truth))])
    _write(folder / "campaign.toml", [WEATHER_PLAN + (WEB if web else SIMULATED)])


WEATHER_PLAN = """\
name = "weather"
seed = 3
[task]
labels = ["rain", "sun"]
[pool]
file = "pool.jsonl"
[prices]
per_answer = "0.05"
currency = "EUR"
[budget]
money = "8"
[model]
name = "naive-bayes"
[aggregate]
method = "one-coin"
"""
SIMULATED = """\
[select]
by = "random"
batch = 10
[redundancy]
min = 2
max = 4
[control]
n = 4
gold = "truth.csv"
share = 0.2
[crowd]
source = "simulated"
truth = "truth.csv"
workers = ["flip(0.1) x4", "flip(0.8)"]
"""
WEB = """\
[select]
by = "random"
batch = 5
[redundancy]
min = 2
max = 3
[stop]
most_rounds = 2
[control]
n = 6
gold = "truth.csv"
share = 0.25
first = 2
least = 0.5
[page]
training = 1
lease_minutes = 60
[crowd]
source = "web"
"""
SPANS_PLAN = """\
name = "names"
seed = 7
[task]
types = ["LOC", "MISC", "ORG", "PER"]
encoding = "BIO"
[pool]
file = "crowd.tsv"
[crowd]
source = "simulated"
truth = "crowd.tsv"
workers = ["good = flip(0.02) + misses(0.08) x3", "hasty = flip(0.15) + misses(0.5)"]
[redundancy]
min = 2
max = 4
stop = "confident(0.95)"
[control]
n = 3
gold = "crowd.tsv"
share = 0.1
[prices]
per_answer = "0.02"
per_token = "0.002"
currency = "EUR"
[budget]
money = "9"
[select]
by = "coverage, then mnlp, 10% random"
batch = 6
[aggregate]
method = "bsc-seq"
[model]
name = "crf"
"""


def _end_of_item(rows: list[str], n: int) -> int:
    """Return the number of rows that the header and the first n items of a wide table have."""
    blank = [number for number, row in enumerate(rows) if not row]
    return blank[n - 1] + 1


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write(path: Path, lines: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


# The cases.


@dataclass(frozen=True)
class Case:
    """A call of a command.

    Attributes:
        words: The command with its options; --json is added.
        files: What it writes and is frozen too: files, or folders with all that is in them.
        needs: Cases that come before it.
        threads: Whether it is called with one thread and with two, whose outputs are the same.
        before: What is done first.
        code: Its exit code.
        as_json: Whether the command has --json.
    """

    words: str
    files: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    threads: bool = False
    before: Callable[[Path], None] | None = None
    code: int = 0
    as_json: bool = True


CAMPAIGN = ("gold.conll", "spans.jsonl", "record.json", "bill.csv", "rounds.jsonl", "report.html")
DESK = "served/campaign.toml --out served/out"


def all_cases() -> dict[str, Case]:
    """Return all cases by name."""
    cases = {
        "inspect-wide": Case("inspect names.tsv"),
        "inspect-votes": Case("inspect votes.csv"),
        "inspect-spans": Case("inspect everything.jsonl"),
        "inspect-pool": Case("inspect pool.txt"),
        "aggregate-conll": Case(
            "aggregate names.tsv -m mv-token -o gold.conll --workers-table workers.csv",
            ("gold.conll", "workers.csv"),
        ),
        "report-aggregate": Case(
            "aggregate names.tsv -m ds --report aggregate.html", ("aggregate.html",)
        ),
        "aggregate-jsonl": Case(
            "aggregate everything.jsonl -m ds -o gold.jsonl --workers-table habits.jsonl",
            ("gold.jsonl", "habits.jsonl"),
        ),
        "aggregate-csv": Case(
            "aggregate votes.csv --gold votes-gold.csv -m ds -o gold.csv", ("gold.csv",)
        ),
        "aggregate-calibrated": Case("aggregate names.tsv -m ds --calibrate names.tsv"),
        "aggregate-known": Case(
            "aggregate votes.csv -m ibcc --known votes-known.csv -o known.csv", ("known.csv",)
        ),
        "score-spans": Case(
            "score gold.conll names.tsv --wrong --bootstrap 100", needs=("aggregate-conll",)
        ),
        "score-votes": Case("score gold.csv votes-gold.csv", needs=("aggregate-csv",)),
        "audit-draw": Case(
            "audit draw gold.csv -n 30 -o drawn.csv", ("drawn.csv", "gold.audit.json"),
            ("aggregate-csv",),
        ),
        "audit-report": Case("audit report gold.csv votes-gold.csv", needs=("audit-draw",)),
        "agree-spans": Case("agreement names.tsv"),
        "agree-votes": Case("agreement votes.csv"),
        "workers-spans": Case("workers names.tsv -m bsc-seq -o team.csv", ("team.csv",)),
        "workers-votes": Case("workers votes.csv -m ds --gold votes-known.csv"),
        "next-votes": Case("next votes.csv -m ds --prices 0.05 -n 8 -o next.csv", ("next.csv",)),
        "next-spans": Case("next names.tsv -m bsc-seq -n 5"),
        "plan-test": Case("qualification --bad .6 --good .8 --price 0.05 --candidates 100"),
        "plan-test-sequential": Case("qualification --bad .6 --good .8 --sequential --prior 4,2"),
        "control-choose": Case(
            "gold-questions votes.csv --gold votes-gold.csv -n 6 -o control.csv", ("control.csv",)
        ),
        "control-check": Case(
            "gold-questions votes.csv --gold votes-known.csv --check --max-shown 3"
        ),
        "bill": Case(
            "bill votes.csv --gold votes-gold.csv --per-answer 0.05 -o bill.csv", ("bill.csv",)
        ),
        "select": Case("select pool.txt -n 6 -o chosen.jsonl", ("chosen.jsonl",)),
        "label-texts": Case(
            "label pool.txt --labels PER,LOC -w python:goldspan.annotators.python:nothing "
            "--limit 5 -o marked.jsonl --details said.jsonl", ("marked.jsonl", "said.jsonl"),
        ),
        "label-crowd": Case(
            "label names.tsv -w replay --set id=again --set answers=names.tsv "
            "--set worker=ana --set family=two --set prices.per_answer=0.01 -o mixed.jsonl",
            ("mixed.jsonl",),
        ),
        "simulate-spans": Case(
            'simulate names.tsv -w "flip(0.2) x2" -w "ana=misses(0.3) + wrong_type(0.1)" '
            '-w "copier(ana)" -w "crf_noise(0.05)" --per-item 3 --seed 5 -o crowd.tsv',
            ("crowd.tsv",),
        ),
        "simulate-labels": Case(
            'simulate --items 20 --labels 3 -w "flip(0.3) x4" -w "spammer(random)" --times '
            "-o labels.csv", ("labels.csv",),
        ),
        "train-hmm": Case(
            "train hmm gold.conll -o hmm.goldspan", needs=("aggregate-conll",)
        ),
        "train-crf": Case(
            "train crf gold.conll -o crf.goldspan", needs=("aggregate-conll",)
        ),
        "tag-hmm": Case(
            "tag hmm.goldspan pool.txt -o hmm.conll", ("hmm.conll",), ("train-hmm",), as_json=False
        ),
        "tag-crf": Case(
            "tag crf.goldspan pool.txt -o crf.conll", ("crf.conll",), ("train-crf",), as_json=False
        ),
        "tag-json": Case("tag hmm.goldspan pool.txt -o hmm-2.conll", needs=("train-hmm",)),
        "tagger-hmm": Case("tagger inspect hmm.goldspan", needs=("train-hmm",)),
        "tagger-crf": Case("tagger inspect crf.goldspan", needs=("train-crf",)),
        "check-good": Case("check gold.conll", needs=("aggregate-conll",)),
        "check-broken": Case("check broken.conll --encoding BIO", code=1),
        "convert-encoding": Case("convert names.tsv --to IOBES -o iobes.tsv --repair conlleval",
                                 ("iobes.tsv",)),
        "init": Case("init pool.txt --labels PERSON,PLACE --out own.toml", ("own.toml",)),
        "init-example": Case("init --example example"),
        "plan-check": Case("plan check spans/campaign.toml"),
        "plan-check-web": Case("plan check served/campaign.toml"),
        "run-labels": Case(
            "run weather/campaign.toml --out weather/out",
            tuple(f"weather/out/{name.replace('gold.conll', 'gold.csv')}" for name in CAMPAIGN
                  if name != "spans.jsonl"),
        ),
        "run-spans": Case(
            "run spans/campaign.toml --out spans/out", tuple(f"spans/out/{n}" for n in CAMPAIGN)
        ),
        "report": Case("report spans/out", needs=("run-spans",)),
        "backup": Case(
            "backup weather/out weather.sqlite", needs=("run-labels",), as_json=False
        ),
        "backup-json": Case("backup weather/out weather-2.sqlite", needs=("run-labels",)),
        "restore": Case("restore weather.sqlite restored", needs=("backup",)),
        "verify": Case("verify weather.sqlite", needs=("backup",)),
        "methods": Case("methods one-coin"),
        "links-make": Case(f"invite {DESK} --workers fay,gus", before=answer_all),
        "links-list": Case(f"invite {DESK} --list", needs=("links-make",)),
    }  # fmt: skip
    asked = {
        "overview": "", "workers": "", "agreement": "", "doubts": "", "items": "",
        "item": " d1", "export": "",
    }  # fmt: skip
    done = {
        "pause": "", "resume": "", "judge": ' eve drop --reason "guesses"',
        "gold": " d1 --label sun", "stop": " --yes",
    }  # fmt: skip
    before = "links-list"
    for name, more in [*asked.items(), *done.items()]:
        command = {"doubts": "uncertain"}.get(name, name)
        cases[f"desk-{name}"] = Case(f"desk {command} {DESK}{more}", needs=(before,))
        before = f"desk-{name}"
    cases["desk-after"] = Case(f"desk overview {DESK}", needs=(before,))
    cases["tokens-add"] = Case(
        f"tokens add {DESK} export --scopes results,progress --days 7", needs=("desk-after",)
    )
    cases["tokens-list"] = Case(f"tokens list {DESK}", needs=("tokens-add",))
    cases["webhooks"] = Case(f"webhooks {DESK}", needs=("tokens-list",))
    cases["forget-before"] = Case(f"forget {DESK} eve --dry-run", needs=("desk-after",))
    cases["forget"] = Case(f"forget {DESK} eve --yes", needs=("forget-before",))
    for method in method_names():
        source = "names.tsv"
        forms = {f"method-{method}": ""}
        if method.startswith("multicrf"):  # frozen when "uniform" was the default
            forms = {f"method-{method}": " --param begin=uniform", f"method-{method}-votes": ""}
        for name, more in forms.items():
            cases[name] = Case(
                f"aggregate {source} -m {method}{more} -o {name}.parquet --overwrite",
                (f"{name}.parquet",), threads=True,
            )  # fmt: skip
        if source == "names.tsv" and not re.search(r"\+|crf|mv-seg", method):
            single = f"labels-{method}"
            cases[single] = Case(
                f"aggregate votes.csv -m {method} -o {single}.parquet --overwrite",
                (f"{single}.parquet",), threads=True,
            )  # fmt: skip
    for form in format_names():
        sources = ["everything"] * (form not in CHOICES_ALONE)
        for source in sources + ["choices"] * (form not in SPANS_ALONE):
            place, name = f"as-{source}-{form}", f"format-{source}-{form}"
            place += SUFFIX.get(form, "")
            cases[name] = Case(f"convert {source}.jsonl --to-format {form} -o {place}", (place,))
            cases[f"{name}-back"] = Case(
                f"convert {place} --format {form} --to-format spans -o {name}.jsonl",
                (f"{name}.jsonl",), (name,),
            )  # fmt: skip
    return cases


SUFFIX = {
    "parquet": ".parquet", "label-studio": ".json", "prodigy": ".jsonl", "doccano": ".jsonl",
    "spans": ".jsonl", "wide": ".tsv", "long": ".csv", "conll": ".conll", "datasets": ".parquet",
    "cleanlab": ".npz", "gliner": ".json", "span-table": ".csv",
}  # fmt: skip
SPANS_ALONE = ("gliner", "span-table", "webanno")
"""Formats that have no place for single labels."""
CHOICES_ALONE = ("lewidi", "mace")
"""Formats that have no place for spans."""
QUICK = (
    "inspect-[ws]*", "aggregate-[cjk]*", "score-*", "agree-*", "check-*", "plan-test", "bill",
    "control-*", "next-votes", "workers-votes", "convert-*", "simulate-l*", "label-[tc]*", "init*",
    "format-*",
    "run-labels", "backup*", "restore", "verify", "links-*", "desk-*", "tokens-*", "webhooks",
    "forget*", "method-mv-*", "method-ds", "method-bsc-seq", "labels-[gidm]*",
    "train-hmm", "tag-hmm", "tag-json", "tagger-hmm", "methods",
)  # fmt: skip
"""The cases of `make test`; `--check` does all."""


KERNELS = (
    "method-mv-*", "method-ds", "method-bsc-*+*", "method-crf-*", "method-multicrf", "labels-bsc-*",
    "run-spans", "train-*", "select", "agree-spans",
)  # fmt: skip
"""Cases that need all kernels between them."""


def quick(names: Iterator[str] | list[str]) -> list[str]:
    """Return those of some cases that take no longer than a moment."""
    return [name for name in names if any(fnmatchcase(name, glob) for glob in QUICK)]


def answer_all(folder: Path) -> None:
    """Serve the campaign of the folder `served`, and let five annotators answer all they get."""
    clock = [NOW * 1000]
    out = folder / "served" / "out"
    with served(folder / "served" / "campaign.toml", out, lambda: clock[0]) as (service, app):
        browsers = {worker: browser_of(folder / "served", app, worker) for worker in ANNOTATORS}
        for turns in (12, 3):
            run_loop(service)
            for _ in range(turns):
                for n, browser in enumerate(browsers.values()):
                    clock[0] += 4_000
                    task = next_task(browser)
                    if task is not None:
                        post_answer(browser, task, wrong=n == len(browsers) - 1)


def browser_of(folder: Path, app: Any, worker: str) -> Any:
    """Open a worker's personal link, made by `goldspan invite`, in a browser without a socket."""
    from starlette.testclient import TestClient

    words = ["invite", "campaign.toml", "--out", "out", "--workers", worker, "--json"]
    with chdir(folder):
        code, said, told = run_command(words)
    assert code == 0, told
    path = re.search(r'/w/[^"\s]+', said)
    browser = TestClient(app, base_url="http://127.0.0.1:8080", follow_redirects=False)
    browser.get(path[0])
    return renew(browser)


def renew(browser: Any) -> Any:
    """Read the page of a worker, whose token every request carries."""
    page = browser.get("/label").text
    data = re.search(r'<script type="application/json" id="page">(.*?)</script>', page, re.DOTALL)
    browser.headers["X-Goldspan-CSRF"] = json.loads(data[1])["csrf"]
    return browser


def next_task(browser: Any) -> dict[str, Any] | None:
    """Ask for a worker's next task; return None if there is none."""
    got = browser.post("/api/work/next", json={}).json()
    return dict(got["task"]) if got["state"] == "task" else None


def post_answer(browser: Any, task: dict[str, Any], *, wrong: bool = False) -> None:
    """Post the answer to a task as the page does it."""
    label = "rain" if task["text"].split()[0] in WORDS["rain"] else "sun"
    label = {"rain": "sun", "sun": "rain"}[label] if wrong else label
    body = {"task": task["id"], "key": f"key-{task['id']}"[:60], "label": label}
    answer = browser.post("/api/work/answers", json=body)
    assert answer.status_code == 200, answer.text


# How outputs are brought into a form that is compared.


class _Outline(HTMLParser):
    """The elements and texts of a page, without attributes, scripts, styles and drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.within: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        del attrs
        if not self.within:
            self.lines.append(f"<{tag}>")
        if tag in {"script", "style", "svg"}:
            self.within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.within and self.within[-1] == tag:
            self.within.pop()

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and not self.within:
            self.lines.append(text)


def frozen_form(path: Path) -> Any:
    """Read a file, or a folder, in the form in which it is frozen."""
    if path.is_dir():
        below = sorted(one for one in path.rglob("*") if one.is_file())
        return {str(one.relative_to(path)): frozen_form(one) for one in below}
    if path.suffix == ".parquet":
        return _of_parquet(path)
    if path.suffix == ".npz":
        return _of_arrays(path)
    text = path.read_bytes().decode("utf-8")
    if path.suffix == ".json":
        return json.loads(text)
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if path.suffix == ".html":
        outline = _Outline()
        outline.feed(text)
        return outline.lines
    return text.split("\n")


def _of_parquet(path: Path) -> dict[str, Any]:
    """Read the columns of a Parquet file; columns of float32 become `Numbers`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        flat = column.combine_chunks()
        inner = flat
        while pa.types.is_list(inner.type) or pa.types.is_fixed_size_list(inner.type):
            inner = inner.flatten()
        is_small = pa.types.is_float32(inner.type) and not inner.null_count
        columns[name] = _packed(inner.to_numpy()) if is_small else flat.to_pylist()
    told = {
        key.decode(): value.decode()
        for key, value in (table.schema.metadata or {}).items()
        if not key.startswith(b"ARROW")
    }
    types = {field.name: str(field.type) for field in table.schema}
    return {"types": types, "metadata": told, "columns": columns}


def _of_arrays(path: Path) -> dict[str, Any]:
    """Read the arrays of a file of NumPy's; bytes are JSON, NaN is null."""
    import numpy as np

    with np.load(path) as found:
        arrays = dict(found)
    return {
        name: json.loads(one.tobytes())
        if one.dtype == np.uint8
        else np.where(np.isnan(one), None, one.astype(object)).tolist()
        for name, one in arrays.items()
    }


def _packed(numbers: Any) -> dict[str, str]:
    data = zlib.compress(numbers.astype("<f4").tobytes(), 9)
    return {"float32": base64.b85encode(data).decode()}


def _unpacked(packed: dict[str, str]) -> Any:
    import numpy as np

    return np.frombuffer(zlib.decompress(base64.b85decode(packed["float32"])), "<f4")


def masked(case: str, value: Any, path: str = "") -> Any:
    """Return a value in which all that is listed in `MASKS` is replaced."""
    if path and any(fnmatchcase(f"{case}/{path}", glob) for glob in MASKS):
        return MASK
    if isinstance(value, dict):
        return {key: masked(case, one, _below(path, key)) for key, one in value.items()}
    if isinstance(value, list):
        return [masked(case, one, _below(path, n)) for n, one in enumerate(value)]
    if isinstance(value, str):
        for glob, pattern in MASKED_TEXTS:
            if fnmatchcase(f"{case}/{path}", glob):
                value = re.sub(pattern, MASK, value)
    return value


def _below(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


# The table of what has changed on purpose.


def _add(parent: Any, path: str, new: str) -> bool:
    """Add a value in JSON, `*` in its path for all of a list; False where there is no place."""
    if isinstance(parent, list) and path.startswith("*."):
        found = [_add(one, path[2:], new) for one in parent]
        return all(found)
    if not isinstance(parent, dict | list):
        return False
    keys = list(parent) if isinstance(parent, dict) else [str(n) for n in range(len(parent))]
    for key in keys:
        if path.startswith(f"{key}."):
            below = parent[key] if isinstance(parent, dict) else parent[int(key)]
            return _add(below, path[len(key) + 1 :], new)
    if isinstance(parent, dict):
        parent[path] = json.loads(new)
    return isinstance(parent, dict)


@dataclass
class Changes:
    """`golden_renames.toml`, and which of its entries were used.

    Attributes:
        entries: The entries, each with its kind: "key", "word", "intended" or "near".
        used: The numbers of those that changed something.
    """

    entries: list[tuple[str, dict[str, Any]]]
    used: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path = TABLE) -> Changes:
        """Read and check the table."""
        table = tomllib.loads(path.read_text("utf-8"))
        entries = [(kind, one) for kind in ("key", "word", "intended", "near")
                   for one in table.get(kind, [])]  # fmt: skip
        more = {"intended": {"gone", "added"}, "near": {"within"}}
        for kind, one in entries:
            allowed = {"at", "old", "new", "reason"} | more.get(kind, set())
            wrong = one.keys() - allowed
            if wrong or not one.get("reason") or "at" not in one:
                raise SystemExit(f"{path}: {kind} {one}: needs at and reason, allows {allowed}")
        return cls(entries)

    def unused(self) -> list[str]:
        """Return the entries that changed nothing."""
        rest = [self.entries[n] for n in range(len(self.entries)) if n not in self.used]
        return [f"{kind}: {one}" for kind, one in rest]

    def differences(self, case: str, frozen: Any, now: Any) -> list[str]:
        """Compare a case's frozen form, as it has to look now, with what it is."""
        frozen = self.applied(case, frozen)
        found = list(differences(frozen, now))
        for n, one in self._of("near", case, ""):
            if found:
                self.used.add(n)
                found = list(differences(frozen, now, within=one["within"]))
        return found

    def applied(self, case: str, frozen: Any) -> Any:
        """Return a case's frozen form as it has to look now."""
        return self._added(case, self._walk(case, frozen, ""))

    def _walk(self, case: str, value: Any, path: str) -> Any:  # noqa: C901 - kinds of values
        for n, one in self._of("intended", case, path):
            if "new" in one and not one.get("added"):
                if "old" in one and not _same(json.loads(one["old"]), value):
                    continue
                self.used.add(n)
                return json.loads(one["new"])
        if isinstance(value, dict):
            made = {}
            for key, inner in value.items():
                below = _below(path, key)
                gone = [n for n, one in self._of("intended", case, below) if one.get("gone")]
                self.used.update(gone)
                if not gone:
                    made[self._key(case, below, key)] = self._walk(case, inner, below)
            return made
        if isinstance(value, list):
            return [self._walk(case, one, _below(path, n)) for n, one in enumerate(value)]
        if isinstance(value, str):
            for n, one in self._of("word", case, path):
                if one["old"] in value:
                    self.used.add(n)
                    value = value.replace(one["old"], one["new"])
        return value

    def _key(self, case: str, path: str, key: str) -> str:
        for n, one in self._of("key", case, path):
            if one["old"] == key:
                self.used.add(n)
                return str(one["new"])
        return key

    def _added(self, case: str, value: Any) -> Any:
        for n, (kind, one) in enumerate(self.entries):
            where, _, path = one["at"].partition("/")
            is_added = kind == "intended" and one.get("added") and fnmatchcase(case, where)
            if is_added and _add(value, path, one["new"]):
                self.used.add(n)
        return value

    def _of(self, kind: str, case: str, path: str) -> list[tuple[int, dict[str, Any]]]:
        return [
            (n, one) for n, (its, one) in enumerate(self.entries)
            if its == kind and fnmatchcase(f"{case}/{path}", one["at"])
        ]  # fmt: skip


# Comparing.


def _same(frozen: Any, now: Any, within: float = TOLERANCE) -> bool:
    if isinstance(frozen, bool) or isinstance(now, bool):
        return frozen is now
    if isinstance(frozen, (int, float)) and isinstance(now, (int, float)):
        return abs(frozen - now) <= within * max(1, abs(frozen)) or frozen == now
    return type(frozen) is type(now) and frozen == now


def differences(frozen: Any, now: Any, path: str = "", within: float = TOLERANCE) -> Iterator[str]:
    """Yield every difference: where, what was frozen, what is now."""
    if isinstance(frozen, dict) and isinstance(now, dict):
        if frozen.keys() == now.keys() == {"float32"}:
            yield from _apart(frozen, now, path, within)
            return
        for key in [*frozen, *(key for key in now if key not in frozen)]:
            below = _below(path, key)
            if key not in now:
                yield f"{below}: was {_short(frozen[key])}, is missing"
            elif key not in frozen:
                yield f"{below}: is new, {_short(now[key])}"
            else:
                yield from differences(frozen[key], now[key], below, within)
    elif isinstance(frozen, list) and isinstance(now, list):
        if len(frozen) != len(now):
            yield f"{path}: was {len(frozen)} long, is {len(now)}"
        for n, (one, two) in enumerate(zip(frozen, now, strict=False)):
            yield from differences(one, two, _below(path, n), within)
    elif not _same(frozen, now, within):
        yield f"{path}: was {_short(frozen)}, is {_short(now)}"


def _apart(frozen: dict[str, str], now: dict[str, str], path: str, within: float) -> Iterator[str]:
    """Compare arrays of float32; neighbours among them are the same number, rounded."""
    import numpy as np

    one, two = _unpacked(frozen).astype(float), _unpacked(now).astype(float)
    if len(one) != len(two):
        yield f"{path}: was {len(one)} numbers, is {len(two)}"
        return
    room = within + 1.01 * np.spacing(np.maximum(abs(one), abs(two)).astype("f4"))
    wrong = np.flatnonzero(~((abs(one - two) <= room) | (np.isnan(one) & np.isnan(two))))
    if wrong.size:
        at = int(wrong[np.argmax(abs(one - two)[wrong])])
        yield (f"{path}: {wrong.size} of {len(one)} numbers differ, most number {at}: was "
               f"{one[at]!r}, is {two[at]!r}")  # fmt: skip


def _short(value: Any) -> str:
    text = _json(value)
    return text if len(text) < 160 else text[:150] + " …"


class Runner:
    """Runs cases in a folder of their own, each once, after those that it needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cases = all_cases()
        self.made: dict[str, Any] = {}
        self.bits: dict[str, str] = {}
        write_inputs(folder)

    def output(self, name: str) -> Any:
        """Return a case's output in its frozen form, masked."""
        if name not in self.made:
            case = self.cases[name]
            for one in case.needs:
                self.output(one)
            self.made[name] = self._run(name, case)
        return self.made[name]

    def _run(self, name: str, case: Case) -> Any:
        with (
            chdir(self.folder),
            mock.patch.dict(os.environ, {"COLUMNS": "100"}),
            at_time(LATER if DESK in case.words else NOW),
        ):
            if case.before is not None:
                with at_time(NOW):
                    case.before(self.folder)
            if not case.threads:
                return masked(name, self._call(case, []))
            one, two = (self._call(case, ["--threads", str(n)]) for n in (1, 2))
        for made in (one, two):
            self._mask_seconds(made)
        apart = [] if one == two else [*differences(one, two), "the bits differ"]
        if apart:
            raise SystemExit(f"{name}: one thread and two do not give the same: {apart[0]}")
        text = json.dumps(one["files"], sort_keys=True)
        self.bits[name] = hashlib.sha256(text.encode()).hexdigest()
        return masked(name, one)

    @staticmethod
    def _mask_seconds(made: dict[str, Any]) -> None:
        made["json"]["result"]["seconds"] = MASK

    def _call(self, case: Case, more: list[str]) -> dict[str, Any]:
        import shlex

        words = [*shlex.split(case.words), *(["--json"] if case.as_json else []), *more]
        code, said, told = run_command(words)
        if code != case.code:
            raise SystemExit(f"{' '.join(words)}: exit code {code}, not {case.code}: {told}")
        made: dict[str, Any] = {"code": code}
        try:
            made["json"] = json.loads(said)
        except json.JSONDecodeError:
            made["said"] = said.splitlines()
        files = {file: frozen_form(Path(file)) for file in case.files if Path(file).exists()}
        return made | ({"files": files} if files else {})


@contextmanager
def at_time(now: int) -> Iterator[None]:
    """Let the system's clock stand still."""
    with (
        mock.patch.object(time, "time", return_value=float(now)),
        mock.patch.object(time, "time_ns", return_value=now * 1_000_000_000),
    ):
        yield


def compare(runner: Runner, name: str, changes: Changes) -> list[str]:
    """Compare a case with its frozen file; return the differences in words."""
    path = FROZEN / f"{name}.json"
    if not path.is_file():
        return [f"is not frozen: python tools/golden.py --write --only '{name}'"]
    frozen = json.loads(path.read_text("utf-8"))
    return changes.differences(name, frozen, json.loads(json.dumps(runner.output(name))))


def main() -> int:
    """Freeze or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="freeze what comes out now")
    what.add_argument("--check", action="store_true", help="compare with what is frozen")
    what.add_argument("--list", action="store_true", help="list the cases")
    what.add_argument("--compile", action="store_true", help="only compile the kernels")
    parser.add_argument("--only", metavar="NAME", action="append", help="these cases (globs)")
    parser.add_argument("--bits", metavar="FILE", type=Path, help="the same bits, on one machine")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runner, changes = Runner(Path(folder)), Changes.read()
        globs = asked.only or (KERNELS if asked.compile else ["*"])
        names = [name for name in runner.cases if any(fnmatchcase(name, glob) for glob in globs)]
        if not names:
            parser.error(f"no case is named {' or '.join(globs)}")
        if asked.list:
            print(*(f"{name}: goldspan {runner.cases[name].words}" for name in names), sep="\n")
            return 0
        if asked.compile:
            for name in names:
                runner.output(name)
            return 0
        failed = _freeze(runner, names) if asked.write else _check(runner, names, changes)
        if asked.check and not asked.only:
            for said in [*changes.unused(), *_left_over(runner)]:
                failed += 1
                print(f"FAILED {said}")
        return int(_compare_bits(runner, asked.bits) + failed > 0)


def _freeze(runner: Runner, names: list[str]) -> int:
    FROZEN.mkdir(exist_ok=True)
    for name in names:
        text = json.dumps(runner.output(name), ensure_ascii=False, indent=0, allow_nan=False)
        (FROZEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"frozen {name}")
    return 0


def _check(runner: Runner, names: list[str], changes: Changes) -> int:
    failed = 0
    for name in names:
        found = compare(runner, name, changes)
        failed += bool(found)
        print(f"{'FAILED' if found else 'ok'} {name}", *found[:20], sep="\n    ")
    print(f"{len(names) - failed} of {len(names)} cases as frozen")
    return failed


def _left_over(runner: Runner) -> list[str]:
    """Return the frozen files without a case."""
    there = {path.stem for path in FROZEN.glob("*.json")}
    return [
        f"{name}: is frozen, and there is no such case" for name in sorted(there - {*runner.cases})
    ]


def _compare_bits(runner: Runner, path: Path | None) -> int:
    if path is None:
        return 0
    if not path.exists():
        path.write_text(json.dumps(runner.bits, indent=1) + "\n")
        print(f"wrote {path}")
        return 0
    old = json.loads(path.read_text("utf-8"))
    apart = [name for name, bits in runner.bits.items() if old.get(name) != bits]
    print(*(f"FAILED {name}: other bits" for name in apart), sep="\n")
    return len(apart)


if __name__ == "__main__":
    sys.exit(main())
