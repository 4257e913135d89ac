"""What a paper can quote: what is known is said, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import goldspan
from goldspan import __version__
from goldspan.report import methods_text
from goldspan.report.sections import render


def of(rows, method="mv-token", **how):
    answers = [dict(zip(("task", "worker", "label"), row.split(), strict=True)) for row in rows]
    return methods_text(goldspan.aggregate(answers, method, **how))


def test_spans_are_described_as_they_are_aggregated(model, agreement):
    first, second = methods_text(model, agreement=agreement)
    assert first == (
        "7 workers gave 690 answers to 150 items (2,599 tokens), 4.6 per item (3 to 7). "
        f"Krippendorff’s α of the tokens’ tags is {agreement.alpha:.3f}; the span F1 of two "
        "workers (bounds and type; 21 pairs) is "
        f"{100 * agreement.pairwise_span_f1:.1f} %."
    )
    assert second == (
        "The method bsc-seq, Bayesian sequences, confusion matrices per previous label, as "
        f"implemented in goldspan {__version__}, combined the answers into {len(model.spans)} "
        f"spans with a mean confidence of {100 * model.mean_confidence:.1f} %."
    )


def test_models_among_the_workers_are_named():
    crowd = goldspan.read_crowd(b"task,worker,label\nq1,ann,yes\nq1,gpt,yes\n")
    crowd = replace(crowd, worker_facts={"gpt": {"kind": "llm"}})
    first, _ = methods_text(goldspan.aggregate(crowd, "mv-token"))
    assert first.startswith("1 person and 1 model (gpt) gave 2 answers to 1 item")


def test_one_of_everything_is_told_in_the_singular_and_without_agreement():
    first, second = of(["q1 ann yes"])
    assert first == "1 worker gave 1 answer to 1 item, 1.0 per item."
    assert second.endswith("combined the answers into 1 label.")


def test_pay_open_items_and_own_parameters_are_told_where_there_are_some():
    crowd = goldspan.read_crowd(b"task,worker,label\nq1,ann,x\nq2,ann,y\nq2,bob,y\nq3,bob,\n")
    paid = replace(crowd.answers, cost=np.full(len(crowd.answers), 50_000))
    crowd = replace(crowd, answers=paid)
    first, second = methods_text(goldspan.aggregate(crowd, "mv-token", ties="first"))
    assert "3 answers to 3 items, 1.0 per item (0 to 2)." in first
    assert "The recorded pay is 0.15 in all." in first
    assert "goldspan " + __version__ + " with ties = 'first', combined" in second


def test_known_labels_and_an_unfinished_fit_are_told():
    rows = [f"q{n} {w} {'xy'[n % 2]}" for n in range(6) for w in ("a", "b")]
    text = of(rows, "ds", gold={"q0": "x", "q1": "y"}, max_iter=1)[1]
    assert "with max_iter = 1, combined" in text
    assert "It took the known labels of 2 items as true." in text
    assert text.endswith("Its iterations ended before they converged.")


def test_a_mixture_names_its_methods(model):
    kinds = [
        goldspan.aggregation.judge.Candidate(n, 0.0, 1.0, w) for n, w in (("ds", 1), ("mace", 0))
    ]
    text = methods_text(replace(model, method="auto", candidates=tuple(kinds)))[1]
    assert "hidden answers best: ds 100.0 %, as implemented" in text


def test_the_report_has_it(model, agreement, page):
    text = page(render(model, agreement=agreement)).text
    for paragraph in methods_text(model, agreement=agreement):
        assert paragraph in text
    assert "certificate" not in text
    assert "audit" not in text


@pytest.mark.parametrize("path", [None, "r.html"])
def test_a_result_reports_itself(model, crowd, agreement, tmp_path, path):
    found = model.report(path and tmp_path / path)
    assert found == render(model, agreement=agreement, score=goldspan.score(crowd, model))
    assert [one.read_text("utf-8") for one in tmp_path.iterdir()] == [found] * bool(path)
    assert repr(found).startswith("Page of ")
    assert found._repr_html_().startswith("<iframe srcdoc='&lt;!DOCTYPE html&gt;")


def test_a_result_without_gold_reports_itself_without_a_score(labels):
    page = goldspan.aggregate(labels, "mv-token").report()
    assert "How well the workers agree" in page
    assert "How good the result is" not in page


def test_the_picture_of_the_workers_is_that_of_the_report(model):
    titles = [text.get_text() for ax in model.plot_workers().axes for text in ax.texts]
    assert "(c) span F1, %" in titles
