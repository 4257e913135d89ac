"""What the tests of taggers share."""

from __future__ import annotations

import pytest

from goldspan.tagger import CRF, HMM

TAGGERS = {"crf": (CRF, {"max_iter": 60}), "hmm": (HMM, {})}


@pytest.fixture(params=TAGGERS)
def make(request):
    kind, settings = TAGGERS[request.param]
    return lambda **options: kind(**{"templates": ["word", "word[-1]"], **settings, **options})
