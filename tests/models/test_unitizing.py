"""Gamma beside pygamma-agreement, which computes it for any number of annotators."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from goldspan.crowd.unitizing import Units, disorder_cost

pytestmark = pytest.mark.models


@pytest.mark.parametrize("seed", range(4))
def test_the_disorder_of_the_best_alignment_is_theirs(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = pytest.importorskip("pygamma_agreement")
        segment = pytest.importorskip("pyannote.core").Segment
        rng = np.random.default_rng(seed)
        continuum, sides = peer.Continuum(), []
        for worker in ("ann", "bob"):
            cuts = np.sort(rng.choice(60, 2 * int(rng.integers(1, 7)), replace=False)).tolist()
            rows = [
                (a, b, int(rng.integers(2))) for a, b in zip(cuts[::2], cuts[1::2], strict=True)
            ]
            for a, b, kind in rows:
                continuum.add(worker, segment(a, b), "XY"[kind])
            sides.append(Units.of(rows))
        measure = peer.CombinedCategoricalDissimilarity(alpha=1, beta=1, delta_empty=1)
        theirs = continuum.get_best_alignment(measure).disorder
    mean = sum(len(side.start) for side in sides) / 2
    assert disorder_cost(*sides) / mean == pytest.approx(theirs, abs=1e-5)
