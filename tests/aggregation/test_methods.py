"""Every method of the registry: scikit-learn's habits, and a legal result on tiny crowds."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import goldspan
from aggregation.bsc import oracle
from goldspan.aggregation import aggregate, get_aggregator, methods
from goldspan.errors import InputError, NotFittedError, UnknownNameError
from goldspan.spans import Codec, validate

# Methods with an encoder need one: see bsc/test_encoder_text.py.
every_method = pytest.mark.parametrize(
    "method", [name for name in methods() if not name.endswith("+encoder") and name != "ordinal"]
)
BIO = Codec.from_types(["X", "Y"], "BIO")
TINY = {
    "sequences": oracle.crowd_of(BIO, [{0: [1, 3, 0], 1: [1, 0, 0], 2: [2, 4, -1]}, {1: [0, 3]}]),
    "labels": oracle.crowd_of(
        Codec.from_types(["a", "b", "c"], "PLAIN"), [{0: [0], 1: [0], 2: [1]}, {0: [2]}, {1: [1]}]
    ),
}
every_crowd = pytest.mark.parametrize("crowd", TINY.values(), ids=TINY)


def refusal(method, crowd):
    """Return why a method refuses a crowd, None if it takes it."""
    if method == "mv-seg" and crowd.is_classification:
        return "mv-seg needs spans"
    return None


@every_method
@every_crowd
def test_every_method_gives_legal_labels_and_probabilities(method, crowd):
    if why := refusal(method, crowd):
        with pytest.raises(InputError, match=why):
            aggregate(crowd, method)
        return
    result = aggregate(crowd, method)
    assert result.method == method
    assert (result.codes >= 0).all()
    assert not any(validate(tags, crowd.tagset.encoding) for tags in result.tags)
    assert result.token_probs.shape == (crowd.n_tokens, len(crowd.tagset.tags))
    assert result.token_probs.dtype == np.float32
    assert (result.token_probs >= 0).all()
    answered = result.token_probs.sum(axis=1) > 0  # votes know nothing of a token without any
    np.testing.assert_allclose(result.token_probs[answered].sum(axis=1), 1, atol=1e-6)
    assert method.startswith("mv-") or answered.all()
    assert len(result.span_confidence) == len(result.span_array)
    for values in (result.confidence, result.span_confidence, result.token_confidence):
        assert ((values >= 0) & (values <= 1)).all()
    assert result.workers["worker"].to_pylist() == crowd.worker_ids.to_pylist()
    assert result.stop_reason or method.startswith("mv-")
    assert repr(result).startswith(f"Consensus({method}, ")
    if crowd.is_classification:
        np.testing.assert_allclose(result.span_confidence, result.token_confidence, atol=1e-6)
        assert len(result.labels) == crowd.n_items


@every_method
def test_parameters_come_back_as_they_were_set_and_make_a_twin(method):
    one = get_aggregator(method)
    params = one.get_params()
    assert params == one.get_params(deep=True)
    assert list(params) == one.parameter_names()
    twin = type(one)(**params)
    assert twin.get_params() == params
    assert repr(one) == f"{type(one).__name__}()"
    for name, value in params.items():
        assert one.set_params(**{name: value}) is one
    assert one.get_params() == params
    assert not any(name.endswith("_") for name in vars(twin))


@every_method
def test_a_changed_parameter_is_seen_in_the_repr_and_in_the_result(method):
    one = get_aggregator(method)
    changes = {"max_iter": 2, "ties": "first", "rounds": 2}
    name, value = next((n, v) for n, v in changes.items() if n in one.parameter_names())
    one.set_params(**{name: value})
    assert getattr(one, name) == value
    assert repr(one) == f"{type(one).__name__}({name}={value!r})"
    assert one.fit(TINY["sequences"]).result_.params[name] == value


@every_method
def test_an_unknown_parameter_is_refused_with_the_names(method):
    one = get_aggregator(method)
    names = ", ".join(one.parameter_names())
    with pytest.raises(InputError, match=r"unknown parameter of .* 'alpha9'") as caught:
        one.set_params(alpha9=1)
    assert names in str(caught.value)
    with pytest.raises(InputError, match=r"unknown parameter of .* 'alpha9'"):
        get_aggregator(method, alpha9=1)


@every_method
def test_no_parameter_has_the_name_of_an_argument_of_aggregate(method):
    arguments = set(inspect.signature(aggregate).parameters) - {"params"}
    assert not arguments & set(get_aggregator(method).parameter_names())


@every_method
def test_a_result_before_the_fit_is_an_error_of_its_own(method):
    one = get_aggregator(method)
    with pytest.raises(NotFittedError, match="call fit first"):
        _ = one.result_
    assert not hasattr(one, "result_")


@every_method
def test_fit_gives_the_aggregator_and_fit_predict_the_labels(method):
    crowd = TINY["sequences"]
    one = get_aggregator(method)
    assert one.fit(crowd) is one
    assert get_aggregator(method).fit_predict(crowd) == one.result_.tags


@every_method
def test_scikit_learn_clones_a_method(method):
    sklearn = pytest.importorskip("sklearn.base")
    one = get_aggregator(method)
    twin = sklearn.clone(one, safe=False)
    assert twin is not one
    assert twin.get_params() == one.get_params()
    assert repr(twin) == repr(one)


@every_method
def test_a_method_and_its_result_survive_pickling(method):
    one = get_aggregator(method).fit(TINY["sequences"])
    twin = pickle.loads(pickle.dumps(one))
    assert twin.get_params() == one.get_params()
    np.testing.assert_array_equal(twin.result_.token_probs, one.result_.token_probs)


def test_the_name_of_a_runner_is_no_runner():
    with pytest.raises(InputError, match=r"object, .*Threads\(2\), not 'threads:2'"):
        aggregate(TINY["labels"], "mv-token", runner="threads:2")


@every_method
def test_a_crowd_without_an_answer_is_refused(method):
    crowd = goldspan.crowd.CrowdBuilder()
    crowd.add_item("s", ["x"], gold=["O"])
    with pytest.raises(InputError, match="no answer"):
        aggregate(crowd.build(), method)


@pytest.mark.parametrize(
    "method",
    ["", "bsc-s", "ibcc+words", "bsc-cm+cfr", "mv-token+words", "bsc-cm+", "mv-token+", "+words"],
)
def test_a_method_that_is_not_there_is_refused_with_the_names(method):
    with pytest.raises(UnknownNameError, match=r"bsc-seq\+words"):
        get_aggregator(method)
