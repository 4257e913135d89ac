"""Words of strangers stay words, and turn nothing round, in every HTML that is written."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.report import write_report
from goldspan.report.campaign import render
from goldspan.report.certificate import write_certificate

EVIL = [
    "<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "javascript:alert(1)",
    "</title></style>]]>--><b>", "\u202egpj.exe", "\u202b\u2067\u2066x", "a\x00\x1b[31m",
]  # fmt: skip


@pytest.fixture(scope="module", params=EVIL)
def evil(request):
    return request.param


@pytest.fixture(scope="module")
def crowd(evil):
    """Answers in which labels, annotators, ids and texts are hostile."""
    builder = CrowdBuilder()
    for n in range(12):
        item = builder.add_item(f"{evil}{n}", [evil, "x"], group=f"{evil}g", text=f"{evil} x",
                                token_start=[0, len(evil) + 1])  # fmt: skip
        for who, tags in enumerate(([f"B-{evil}", "O"], [f"B-{evil}", f"I-{evil}"], ["O", "O"])):
            builder.add_answer(item, f"{evil}{who}", tags)
    return builder.build()


def pages(crowd, evil, folder):
    result = goldspan.aggregate(crowd, "bsc-seq")
    scored = goldspan.score(crowd.with_gold(result.codes), result)
    agreed = goldspan.agreement(crowd)
    made = {"report": folder / "r.html", "certificate": folder / "c.html"}
    write_report(result, made["report"], agreement=agreed, score=scored)
    checked = {item: ["O", "O"] for item in crowd.item_ids.to_pylist()}
    found = goldspan.audit(result, checked)
    doubt = (f"{evil}1", {evil: (evil,), f"{evil}2": ()})
    write_certificate(replace(found, notes=(evil,), disagreements=(doubt,)), made["certificate"],
                      source=evil)  # fmt: skip
    shown = {name: path.read_text(encoding="utf-8") for name, path in made.items()}
    for one in (crowd, result, scored, agreed, found):
        shown[f"notebook {type(one).__name__}"] = one._repr_html_()
    return shown


def check(name, html, page):
    found = page(html)
    assert found.faults == [], name
    assert not {tag for tag, _ in found.elements} & {"script", "img", "iframe"}, name
    for tag, attrs in found.elements:
        assert not [one for one in attrs if one.startswith("on")], (name, tag)
        assert "javascript:" not in f"{attrs.get('href')}{attrs.get('src')}", name
    assert not re.search("[\u202d\u202e\x00\x1b]", html), name
    html.encode()
    for line in re.split("[<>]", html):  # what begins within an element ends there
        assert len(re.findall("[\u2066-\u2068]", line)) <= line.count("\u2069"), (name, line)
        assert len(re.findall("[\u202a\u202b]", line)) <= line.count("\u202c"), (name, line)


def test_results_stay_words(crowd, evil, page, tmp_path):
    shown = pages(crowd, evil, tmp_path)
    assert len(shown) == 7
    for name, html in shown.items():
        check(name, html, page)


def test_the_report_of_a_campaign_stays_words(ended, evil, page):
    record = ended.record
    task = {**record.plan["task"], "labels": [evil, "rain"]}
    plan = {**record.plan, "name": evil, "pool": {"file": evil}, "task": task}
    workers = {evil: {**record.workers["bad"], "barred": evil}}
    changed = replace(record, plan=plan, workers=workers, versions={evil: evil})
    check("campaign", render(changed, result=ended.result), page)
