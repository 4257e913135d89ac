"""The sections that only models have: confidence, confusions, rejected spans, course."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan.crowd import CrowdBuilder
from goldspan.report import sections as html
from goldspan.report import token_cross_entropy

NASTY = "<script>alert('$x^')</script>"


@pytest.fixture(scope="module")
def report(model, crowd, agreement):
    return html.render(model, agreement=agreement, score=goldspan.score(crowd, model))


def test_the_sections_of_a_model_are_there(report, page):
    found = page(report)
    assert found.faults == []
    for words in (
        "Whether the confidence can be believed",
        "What the workers confuse",
        "Workers who differ most from all together",
        "Objective per iteration",
        "not in the result",
        "Possible instead",
    ):
        assert words in found.text
    links = {attrs["href"] for attrs in found.all("a")}
    assert {"#calibration", "#confusions"} <= links


def test_the_verdict_on_the_confidence_has_its_numbers(report, page, model):
    text = page(report).text.replace("\u00a0", " ")
    assert (
        "334 spans: 96.1 % right at a mean confidence of 98.1 %, on the whole over-confident"
        in text
    )
    assert f"(cross-entropy): {token_cross_entropy(model):.3f} per token" in text


def test_the_spammer_is_told_and_accuracy_has_its_interval(report, page, model):
    found = page(report)
    assert "The labels of gus tell next to nothing about the truth" in found.text
    assert found.row("gus")[0] == "gus far below the others, tells next to nothing"
    row = next(row for row in model.workers.to_pylist() if row["worker"] == "ana")
    shown = f"{100 * row['accuracy']:.1f}\u00a0%{100 * row['low']:.1f}–{100 * row['high']:.1f}"
    assert shown in found.row("ana")
    assert f"{row['information']:.3f}" in found.row("ana")


def test_votes_have_none_of_it(consensus, page):
    text = page(html.render(consensus)).text
    for words in ("confidence can be believed", "Token by token", "Bits", "not in the result"):
        assert words not in text


def test_without_gold_nothing_is_said_of_calibration(crowd, page):
    bare = goldspan.aggregate(crowd.with_gold(None), "bsc-seq")
    found = page(html.render(bare, agreement=goldspan.agreement(bare.crowd)))
    assert found.faults == []
    assert "confidence can be believed" not in found.text
    assert "What the workers confuse" in found.text
    assert "gold" not in found.text.replace("goldspan", "")


def test_gold_that_is_nowhere_known_is_no_gold(model, page):
    gold = np.full(len(model.codes), -1, np.int16)
    text = page(html.render(replace(model, crowd=model.crowd.with_gold(gold)))).text
    assert "confidence can be believed" not in text


def test_predictions_have_no_course(crowd, page):
    aggregator = goldspan.aggregation.get_aggregator("bsc-seq").fit(crowd)
    text = page(html.render(aggregator.predict(crowd))).text
    assert "Objective per iteration" not in text
    assert "What the workers confuse" in text


def test_single_labels_get_their_own_words(page):
    answers = b"task,worker,label,gold\n" + b"".join(
        b"q%d,%s,%s,%s\n" % (n, worker, label, b"yn"[n % 2 : n % 2 + 1])
        for n in range(12)
        for worker, label in (
            (b"a", b"yn"[n % 2 : n % 2 + 1]),
            (b"b", b"y"),
            (b"c", b"yn"[n % 2 :][:1]),
        )
    )
    result = goldspan.aggregate(answers, "ds")
    found = page(html.render(result, agreement=goldspan.agreement(result.crowd)))
    assert found.faults == []
    assert "12 labels: 100.0" in found.text
    assert "per item (0 is perfect)" in found.text
    assert "spans" not in found.text.replace("outside spans", "")


def test_text_of_strangers_stays_text(page):
    builder = CrowdBuilder()
    for n in range(6):
        item = builder.add_item(f"{NASTY}{n}", [NASTY, "x\x00\x1by"], group=NASTY)
        for k in range(3):
            tags = [f"B-{NASTY}", "O"] if (n + k) % 3 else ["O", f"B-{NASTY}"]
            builder.add_answer(item, f"{NASTY}\x01{k}", tags)
    crowd = builder.build()
    crowd = crowd.with_gold(np.zeros(crowd.n_tokens, np.int16))
    result = replace(
        goldspan.aggregate(crowd, "bsc-seq"), stop_reason=f"{NASTY}\x02", trace=(1.0, 2.0)
    )
    text = html.render(result, agreement=goldspan.agreement(crowd))
    found = page(text)
    assert found.faults == []
    assert "<script" not in text
    assert not any(ord(c) < 32 and c not in "\n\t" for c in text)
    assert "script" not in {tag for tag, _ in found.elements}


def test_the_report_of_a_model_stays_small_for_many_labels_and_workers():
    builder = CrowdBuilder()
    rng = np.random.default_rng(1)
    for n in range(1200):
        item = builder.add_item(f"q{n}", [f"q{n}"])
        for worker in rng.choice(400, 3, replace=False):
            builder.add_answer(item, f"w{worker}", [f"a rather long label {rng.integers(100)}"])
    result = goldspan.aggregate(builder.build(single=True), "one-coin")
    text = html.render(result, agreement=goldspan.agreement(result.crowd))
    assert len(text) < 500_000
    assert "89 others" in text
