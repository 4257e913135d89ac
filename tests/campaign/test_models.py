"""The model step and how it is measured."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from campaign.tiny import SPANS, campaign_of, inputs_of, write_files, write_spans
from goldspan.campaign.model import (
    Best,
    Classifier,
    check_model,
    cross_predict,
    make_classifier,
    make_model,
)
from goldspan.campaign.outlook import Evaluating
from goldspan.campaign.protocols import Labelled
from goldspan.crowd import CrowdBuilder
from goldspan.errors import InputError, UnknownNameError
from goldspan.selection import Pool

TEXTS = [f"{'wet grey' if i % 2 else 'dry blue'} day number {i}" for i in range(24)]
LABELS = [["rain"] if i % 2 else ["sun"] for i in range(24)]
ALL = np.arange(24)


def share_right(truth, found):
    return float(np.mean([a == b for a, b in zip(truth, found, strict=True)]))


def made(name, pool=None, **params):
    known = Pool.of(TEXTS) if pool is None else pool
    return make_model(name, params, known, 1, share_right, single=True), known


@pytest.mark.parametrize(
    "name", ["logistic", "gaussian-nb", "forest", "sklearn.linear_model.RidgeClassifier"]
)
def test_any_classifier_learns_from_texts(name):
    model, pool = made(name)
    trained = model.train(ALL[:16], LABELS[:16])
    assert trained.name == name
    assert trained.predict(pool, ALL[16:]) == LABELS[16:]


def test_a_classifier_learns_from_a_table_with_words_numbers_and_gaps():
    import pyarrow as pa

    sky = ["grey" if i % 2 else "blue" for i in range(24)]
    sky[3] = None
    table = pa.table({"id": [f"d{i}" for i in range(24)], "sky": sky, "mm": [i % 2 for i in ALL]})
    model, pool = made("tree", Pool.of(table))
    assert model.train(ALL[:16], LABELS[:16]).predict(pool, ALL[16:]) == LABELS[16:]


def test_the_model_that_does_best_in_cross_validation_is_kept():
    pool = Pool.of(TEXTS)
    dull, bright = Classifier(pool, "logistic", {"C": 1e-9}, 0), Classifier(pool, "tree", {}, 0)
    shuffled = np.random.default_rng(0).permutation(24)[:19]
    labels = [LABELS[n] for n in shuffled]
    for models in ((dull, bright), (bright, dull)):
        assert Best(pool, models, share_right).train(shuffled, labels).name == "tree"
    assert [one.name for one in made("auto")[0].models] == ["logistic", "naive-bayes"]


def test_what_a_classifier_raises_is_told_and_a_fold_that_cannot_be_learned_is_left_out():
    model, pool = made("neighbours", n_neighbors=6)
    with pytest.raises(InputError, match="neighbours cannot learn from the items: Expected n_n"):
        model.train(ALL[:5], LABELS[:5])
    assert cross_predict(model, pool, ALL[:6], LABELS[:6], 3) == [None] * 6


def test_nothing_is_learned_from_too_few_items_or_a_single_label():
    model, _ = made("logistic")
    assert model.train(ALL[:3], LABELS[:3]) is None
    assert model.train(ALL[:6], [["sun"]] * 6) is None
    assert made("none")[0].train(ALL, LABELS) is None


def test_parameters_reach_the_model_and_unknown_ones_are_refused():
    model, _ = made("naive-bayes", alpha=0.25)
    assert model.train(ALL, LABELS).model[-1].alpha == 0.25
    for name, params in (("naive-bayes", {"alfa": 1}), ("os.path", {}), ("logistc", {})):
        with pytest.raises(UnknownNameError):
            check_model(name, params, single=True)
    with pytest.raises(InputError, match="auto takes no params"):
        check_model("auto", {"alpha": 1}, single=True)


@pytest.mark.parametrize("groups", [None, [str(n // 6) for n in range(24)], ["one"] * 24])
def test_cross_validation_never_learns_from_what_it_labels(groups):
    seen, names = [], [f"d{n}" for n in range(24)]
    builder = CrowdBuilder()
    for n, name in enumerate(names):
        builder.add_item(name, ["a"], group=groups and groups[n])
    pool = Pool.of(builder.build())

    class Spy:
        name, model = "spy", None

        def train(self, items, _):
            self.items = set(items.tolist())
            return self

        def predict(self, _, items):
            assert not self.items & set(items.tolist())
            if groups and len(set(groups)) > 1:
                assert not {groups[n] for n in self.items} & {groups[n] for n in items}
            seen.extend(items.tolist())
            return [["x"]] * len(items)

    found = cross_predict(Spy(), pool, ALL, LABELS, 5)
    assert sorted(seen) == ALL.tolist()
    assert found == [["x"]] * 24


@pytest.fixture
def labelled(tmp_path):
    write_files(tmp_path)
    drawn = np.arange(20) % 2 == 0
    return tmp_path, Labelled(ALL[:20], [["rain" if i % 3 else "sun"] for i in range(20)], drawn)


def test_a_slice_is_measured_on_the_items_drawn_at_random_which_are_not_learned_from(labelled):
    folder, known = labelled
    asked = []

    class Spy:
        def train(self, items, _):
            asked.append(items.tolist())

    inputs = inputs_of(folder, evaluate={"by": "slice"})
    assert Evaluating(inputs).measure(Spy(), known).score is None
    assert asked == [list(range(1, 20, 2))]
    campaign = campaign_of(folder, evaluate={"by": "slice"})
    campaign.run()
    now = campaign.progress._now
    assert not now.to_learn.is_random.any()


def test_a_test_file_measures_the_model(labelled):
    folder, known = labelled
    rows = ['{"text": "wet and wet", "label": "rain"}', '{"text": "blue and dry", "label": "sun"}']
    (folder / "test.jsonl").write_text("\n".join(rows))
    inputs = inputs_of(folder, evaluate={"by": "test", "file": "test.jsonl"})
    model = make_model("naive-bayes", {}, inputs.pool, 0, share_right, single=True)
    found = Evaluating(inputs).measure(model, known)
    assert (found.score.value, found.score.n) == (1.0, 2)


def test_spans_are_measured_on_a_file_with_gold(tmp_path):
    write_spans(tmp_path)
    made = {**SPANS, "evaluate": {"by": "test", "file": "gold.conll"}, "stop": {"most_rounds": 1}}
    campaign = campaign_of(tmp_path, **made)
    campaign.run()
    (row,) = campaign.ledger.records("round").values()
    assert row["score"]["n"] == 24
    assert row["score"] == row["control"]


@pytest.mark.parametrize(
    "name",
    ["this.X", "beside_the_plan.Model", "sklearn.conftest.X", "sklearn.svm.tests.test_svm.X",
     "sklearn._config.Lock", "sklearn..svm.SVC", "os.system", "beside_the_plan", "sklearn.Beside"],
)  # fmt: skip
def test_a_plan_is_data_and_no_module_that_it_names_is_imported(name, tmp_path, monkeypatch):
    (tmp_path / "beside_the_plan.py").write_text("raise SystemExit('run')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = {"this", "sklearn.conftest", "sklearn.svm.tests.test_svm"} & set(sys.modules)
    with pytest.raises(UnknownNameError, match=f"unknown model {name!r}"):
        check_model(name, {}, single=True)
    seen = {"this", "beside_the_plan", "sklearn.conftest", "sklearn.svm.tests.test_svm"}
    assert seen & set(sys.modules) == before


def test_what_scikit_learn_imported_from_elsewhere_is_no_classifier():
    with pytest.raises(UnknownNameError):
        check_model("sklearn.utils.validation.Parameter", {}, single=True)


def test_a_classifier_of_another_package_is_found_by_its_entry_point(monkeypatch):
    from sklearn.dummy import DummyClassifier

    points = {"goldspan.models": {"dummy": "sklearn.dummy:DummyClassifier"}}
    monkeypatch.setattr("goldspan.campaign.model.plugins", points.__getitem__)
    assert isinstance(make_classifier("dummy", {}, 0), DummyClassifier)
