"""A plan's method and stopping rule tried on a made-up crowd, before any money is spent.

What does not suit the labels or each other – shares of votes and a rule on probabilities, a mean of
labels that are no numbers – would else be found out when the first answers are paid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.aggregate import get_aggregator
from karat.crowd import Crowd, CrowdBuilder, ReadOptions
from karat.hiring.redundancy.registry import get_rule
from karat.simulate import draw_truth, simulate_crowd
from karat.spans import Span, write

N_ITEMS = 12


def try_method(
    labels: Sequence[str], types: Sequence[str], encoding: str, method: str,
    params: Mapping[str, Any], rule: str,
) -> None:  # fmt: skip
    """Aggregate a made-up crowd and ask the rule about it.

    Args:
        labels: Single labels, or none.
        types: Types of spans, or none.
        encoding: Of their tags.
        method: Name of the method.
        params: Its parameters.
        rule: The stopping rule.

    Raises:
        InputError: They do not suit.

    >>> try_method(["no", "yes"], [], "", "mv-token", {}, "confident(0.9)")
    Traceback (most recent call last):
    ...
    karat.errors.InputError: confident needs probabilities, but has mv-token, which gives shares ...
    """
    truth = draw_truth(N_ITEMS, list(labels)) if labels else _sentences(types, encoding)
    crowd = simulate_crowd(truth, ["flip(0.1) x3"]).with_gold(None)
    result = get_aggregator(method, **params).fit(crowd).result_
    get_rule(rule).finished(result.crowd, result)


def _sentences(types: Sequence[str], encoding: str) -> Crowd:
    builder = CrowdBuilder(ReadOptions(encoding=encoding))
    for n in range(N_ITEMS):
        spans = [Span(types[n % len(types)], 1, 3)]
        tags = write(spans, 4, encoding=encoding)
        builder.add_item(f"s{n}", ["In", "the", "north", "."], gold=tags)
    return builder.build()
