"""What processes of a local Ray cluster merge of their shares is the tree of one thread; no Ray."""

from __future__ import annotations

import pytest

from goldspan.protocols import merge_in_order
from goldspan.runners.cluster import _Member, _shares, _size, _whole


def named(shard, _):
    return f"{shard}."


def joined(left, right):
    return f"({left}{right})"


@pytest.mark.parametrize("n_members", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_shares_are_merged_to_the_fixed_tree(n_members, size):
    for n in range(1, 140):
        groups = [range(k, min(k + size, n)) for k in range(0, n, size)]
        shares, parts = _shares(len(groups), n_members), []
        assert [k for share in shares for k in share] == list(range(len(groups)))
        for share in shares:
            member = _Member()
            member.hold(*groups[share.start : share.stop])
            if share:
                parts.append(member.fold(named, joined, None, share.start, len(groups)))
        wanted = merge_in_order([named(k, None) for k in range(n)], joined)
        assert _whole(joined, len(groups), *parts) == wanted


@pytest.mark.parametrize("n_members", [1, 2, 3, 4, 5, 8])
def test_shares_are_of_about_equal_size(n_members):
    for n in range(1, 300):
        sizes = [len(share) for share in _shares(n, n_members)]
        assert max(sizes) <= -(-n // n_members) + max(1, n // (2 * n_members))


def test_the_size_of_shards_is_that_of_their_arrays():
    np = pytest.importorskip("numpy")
    assert 8_000_000 <= _size([np.zeros(10**6)]) < 8_001_000
    assert _size([lambda: None]) > 10**15  # nobody knows: it is not held
