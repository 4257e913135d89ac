"""Workers in text: what is written is what is read, and faults are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldspan.errors import InputError, UnknownNameError
from goldspan.simulation import parse_worker, read_team
from goldspan.simulation.annotators import (
    Acc,
    Copier,
    Drift,
    Flip,
    Late,
    Misses,
    Seq,
    Sister,
    Spammer,
)
from goldspan.simulation.base import CrfNoise, Perfect
from goldspan.simulation.crowd import WORKERS, get_worker, signature


@pytest.mark.parametrize(
    ("text", "worker"),
    [
        ("perfect", Perfect()),
        ("crf_noise(0.05)", CrfNoise(0.05)),
        ("crf_noise(.05, templates=default)", CrfNoise(0.05, "default")),
        (" flip( 0.3 ) ", Flip(0.3)),
        ("flip(p=0.3, labels='used')", Flip(0.3, "used")),
        ("seq(diagonal=20)", Seq(20)),
        ("acc", Acc()),
        ("acc()", Acc()),
        ("spammer(constant)", Spammer("constant")),
        ("spammer(constant, label=B-PER)", Spammer("constant", "B-PER")),
        ("spammer(constant, label=1)", Spammer("constant", "1")),
        ("copier(w1, 0.5)", Copier("w1", 0.5)),
        ("copier('001')", Copier("001")),
        ("drift(flip(0.05), flip(0.4))", Drift(Flip(0.05), Flip(0.4))),
        ("drift(perfect, acc, at=none)", Drift(Perfect(), Acc())),
        ("misses(0.3)", Misses(0.3)),
        ("acc + misses(0.3) + late(1)", Late(1, base=Misses(0.3, base=Acc()))),
        ("drift(acc + late(1), acc)", Drift(Late(1, base=Acc()), Acc())),
        ("misses(0.3, type=creative-work)", Misses(0.3, "creative-work")),
    ],
)
def test_a_worker_is_read(text, worker):
    assert parse_worker(text) == worker


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must look like"),
        ("flip(0.1", "must look like"),
        ("flip(0.1) x3", "must look like"),
        ("3", "must look like"),
        ("a.b(1)", "must look like"),
        ("[flip(1)]", "must look like"),
        ("copier(001)", "quotes"),
        ("flip", r"flip needs p: it is written flip\(p, labels=all\)"),
        ("drift", "drift needs first and last"),
        ("drift(acc, 3)", "'3'"),
        ("flip(0.1, used, 3)", "2 arguments, not 3"),
        ("flip(q=1)", "no argument 'q'"),
        ("flip(**q)", "no argument"),
        ("flip(0.1, p=1)", "appears twice"),
        ("flip(p=0.1, p=1)", "appears twice"),
        ("misses(1, base=acc)", "no argument 'base'"),
        ("seq(table=1)", "no argument 'table'"),
        ("flip(1.5)", "of at least 0 and at most 1, not 1.5"),
        ("flip(-0.5)", "of at least 0 and at most 1, not -0.5"),
        ("flip(1e999)", "of at least 0 and at most 1"),
        ("flip(much)", "of at least 0 and at most 1, not 'much'"),
        ("flip(True)", "of at least 0 and at most 1, not True"),
        ("flip(*p)", "of at least 0 and at most 1"),
        ("crf_noise(-1)", r"of at least 0 and at most 1e\+06, not -1"),
        ("crf_noise(1e308)", r"of at least 0 and at most 1e\+06"),
        ("crf_noise(1e999)", r"of at least 0 and at most 1e\+06"),
        ("seq(diagonal=1)", "of at least 1.25"),
        ("acc(off=0.01)", "of at least 0.1"),
        ("merges(1, gap=-1)", "whole number of at least 0, not -1"),
        ("merges(1, 1.5)", "whole number of at least 0, not 1.5"),
        ("merges(1, True)", "whole number of at least 0, not True"),
        ("drift(acc, acc, at=2)", "of at least 0 and at most 1"),
        ("acc + acc", "cannot follow a plus"),
        ("acc + (late(1) + early(1))", "cannot follow a plus"),
    ],
)
def test_what_is_no_worker_is_refused_with_the_reason(text, message):
    with pytest.raises(InputError, match=message):
        parse_worker(text)


@pytest.mark.parametrize(
    ("text", "near"), [("filp(1)", "flip"), ("flip(1, usd)", "used"), ("spammer(rndom)", "random")]
)
def test_a_wrong_name_is_refused_with_the_nearest(text, near):
    with pytest.raises(UnknownNameError, match=f"did you mean {near!r}"):
        parse_worker(text)


SHARES = st.floats(0, 1)
NAMES = st.text(min_size=1, max_size=5)
ALONE = st.one_of(
    st.just(Perfect()),
    st.builds(Acc, st.floats(2, 99)),
    st.builds(CrfNoise, st.floats(0, 9), st.none() | st.just("default")),
    st.builds(Spammer, st.just("constant"), st.none() | NAMES),
)
EVERY = st.recursive(
    ALONE,
    lambda inner: st.one_of(
        st.builds(Flip, SHARES, st.sampled_from(["all", "used"]), base=inner),
        st.builds(Misses, SHARES, st.none() | NAMES, base=inner),
        st.builds(Copier, NAMES, SHARES, base=inner),
        st.builds(Drift, inner, inner, st.none() | SHARES),
        st.builds(Sister, st.sampled_from(["gpt", "a b"]), inner, SHARES),
    ),
    max_leaves=6,
)


@given(EVERY)
def test_a_worker_that_was_written_is_read_back(worker):
    assert parse_worker(str(worker)) == worker


@pytest.mark.parametrize("name", ["¼", "none", "None", "if", "001", "it's", "é", "a b", "True"])
def test_names_that_are_no_words_are_written_in_quotes_and_read_back(name):
    for worker in (Copier(name), Misses(0.5, name)):
        assert parse_worker(str(worker)) == worker


@pytest.mark.parametrize("name", WORKERS)
def test_every_kind_is_in_the_registry_under_its_name(name):
    kind = get_worker(name)
    assert kind.name == name
    assert signature(kind).startswith(name)
    assert kind.__doc__


def test_workers_of_other_packages_are_found(monkeypatch):
    monkeypatch.setattr(
        "goldspan.simulation.crowd.plugins",
        lambda group: (
            {"mine": "goldspan.simulation.annotators:Flip"} if group == "goldspan.workers" else {}
        ),
    )
    assert parse_worker("mine(0.5)") == Flip(0.5)


def test_a_team_is_numbered_and_named():
    team = read_team(["flip(0.1) x2", "ana = acc", Perfect(), "bo=late(1)  ×2", "acc x 1"])
    assert {name: str(worker) for name, worker in team.items()} == {
        "w1": "flip(0.1)",
        "w2": "flip(0.1)",
        "ana": "acc",
        "w4": "perfect",
        "bo1": "late(1)",
        "bo2": "late(1)",
        "w7": "acc",
    }


def test_a_team_comes_from_a_mapping_too():
    assert list(read_team({"ana": "acc", "bo": Perfect()})) == ["ana", "bo"]
    assert read_team("acc") == read_team(Acc()) == {"w1": Acc()}


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ([], "no worker"),
        ({}, "no worker"),
        (["acc x0"], "at least 1"),
        (["acc x1000001"], "more than 1,000,000 workers"),
        (["acc x" + "9" * 5000], "more than 1,000,000 workers"),
        (["ana=acc", "ana=flip(0.1)"], "'ana'"),
        (["w2=acc", "acc"], "'w2'"),
        ([3], "not 3"),
        ({"ana": 0.5}, "not 0.5"),
    ],
)
def test_a_team_that_is_none_is_refused(workers, message):
    with pytest.raises(InputError, match=message):
        read_team(workers)
