"""The engine against a second implementation that shares no code with it: benchmarks/numpy_bsc."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

import goldspan
from goldspan.aggregation.bsc.engine import RunContext, Stopping, e_step, run
from goldspan.aggregation.bsc.posterior import Steps
from goldspan.chains.posterior import Chain, lattice_of, marginals
from goldspan.crowd import read_crowd
from goldspan.protocols import Serial

EXACT = {"rtol": 1e-8, "atol": 1e-8}


@pytest.fixture(scope="module")
def reference(root):
    """The program beside the benchmarks, loaded by its path."""
    path = root / "benchmarks" / "numpy_bsc.py"
    spec = importlib.util.spec_from_file_location("numpy_bsc", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def _compare(crowd, reference):
    stopping = Stopping()
    first = goldspan.aggregate(crowd, "bsc-seq", max_iter=1)
    model, shards = first.memory.model, first.posterior.shards
    fit = run(model, shards, first.memory.sums, stopping, RunContext(Serial()))
    found = reference.run(reference.prepare(crowd), tol=stopping.tol, max_iter=stopping.max_iter)

    assert fit.converged
    assert len(found.trace) == len(fit.trace) > 3
    np.testing.assert_allclose(found.trace, fit.trace, **EXACT)

    sums = model.no_sums()
    for shard in shards:
        sums = sums.add(e_step(shard, fit.tables))
    probs = np.concatenate([_marginals(shard, fit.tables, crowd.tagset) for shard in shards])
    np.testing.assert_allclose(found.marginals, probs[: len(found.marginals)], **EXACT)
    assert not probs[len(found.marginals) :].any()

    rows = model.rows
    counts = found.counts[rows.worker, rows.previous, rows.label]
    np.testing.assert_allclose(counts, sums.counts, **EXACT)
    assert found.counts.sum() == pytest.approx(counts.sum(), rel=1e-12)
    np.testing.assert_allclose(found.truth_counts, sums.truth, **EXACT)


def _marginals(shard, tables, codec):
    """Marginals of the last pass in float64; `Posterior` keeps them in float32."""
    local, steps = shard.localise(tables)[0], Steps.of(tables, codec)
    lattice = lattice_of(
        shard.offsets, shard.bounds, shard.row, shard.active, shard.gold, shard.unary,
        local.log_table, Chain(steps.start, steps.step, steps.end),
    )  # fmt: skip
    return marginals(lattice)[0]


@pytest.mark.compiles
def test_the_engine_does_what_the_reference_does_on_the_example(reference, root):
    _compare(read_crowd(root / "examples" / "crowd.tsv"), reference)


@pytest.mark.realdata
def test_the_engine_does_what_the_reference_does_on_the_real_crowd(reference, data):
    _compare(read_crowd(data / "ner_mturk" / "crowd_6056.tsv.gz"), reference)
