"""The aggregators by name. A new one is one file and one line here.

The value is "module:class" of an `Aggregator`, and one line for help texts. Other packages add
theirs under the entry-point group "karat.methods".
"""

from __future__ import annotations

METHODS: dict[str, tuple[str, str]] = {
    "mv-token": ("karat.aggregate.votes:TokenVote", "majority vote per token (plurality)"),
    "mv-seq": ("karat.aggregate.votes:SequenceVote", "the tag sequence that most workers gave"),
    "mv-seg": ("karat.aggregate.votes:SegmentVote", "vote on segments, then on their types"),
}
