"""The page of results against the current code: a cheap row is computed again."""

from __future__ import annotations

import pytest

from studies.li_liu import claims


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "results-li-liu.md").read_text("utf-8")


def test_the_row_of_the_papers_setting_is_that_of_this_code(page, monkeypatch):
    groups = {"Labels": {"2 (the paper)": claims.BASE}}
    monkeypatch.setattr(claims, "GROUPS", groups)
    found = claims.carry_out([claims.BASE], claims.REPEATS, {}, None, None)
    row = claims._claims(found, groups).markdown().splitlines()[-1]
    assert row in page


@pytest.mark.parametrize("word", ["asked for", "allowed:", "what was asked"])
def test_a_target_of_our_own_is_called_so(page, word):
    assert word not in page
