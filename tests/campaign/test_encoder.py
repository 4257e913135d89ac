"""A campaign whose model is an encoder: a tiny one of random weights, where torch is installed."""

from __future__ import annotations

import importlib.util

import pytest

from campaign.tiny import SPANS, campaign_of, inputs_of, write_spans
from goldspan.campaign.model import check_model
from goldspan.errors import GoldspanError, InputError
from goldspan.tagger import Encoder, load_tagger

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def test_it_must_say_which_encoder(tmp_path):
    with pytest.raises(InputError, match="encoder needs params"):
        check_model("encoder", {}, single=False)
    with pytest.raises(GoldspanError, match="epoch"):
        check_model("encoder", {"model": "m", "epoch": 3}, single=False)
    write_spans(tmp_path)
    with pytest.raises(InputError, match="encoder needs params"):
        inputs_of(tmp_path, **{**SPANS, "model": {"name": "encoder"}})


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="torch and transformers are not installed",
)
def test_a_campaign_fine_tunes_it_and_keeps_the_folder(tmp_path):
    from goldspan.campaign import write_exports
    from tagger.tiny_encoder import write_tiny

    write_spans(tmp_path)
    params = {"model": str(write_tiny(tmp_path / "tiny")), "epochs": 2, "held_out": 0.0}
    campaign = campaign_of(tmp_path, **{**SPANS, "model": {"name": "encoder", "params": params}})
    campaign.run()
    written = write_exports(campaign, tmp_path / "out")
    assert tmp_path / "out" / "tagger" in written
    tagger = load_tagger(tmp_path / "out" / "tagger")
    assert isinstance(tagger, Encoder)
    assert len(tagger.predict([["Ann", "left", "Rome", "."]])[0]) == 4
