"""What a paper can quote: two paragraphs on who labelled, how well they agree, and the method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from goldspan import __version__
from goldspan.aggregation import Consensus
from goldspan.aggregation.layered import Joint
from goldspan.aggregation.machines import models_of
from goldspan.aggregation.registry import METHODS
from goldspan.aggregation.splits import annotators
from goldspan.crowd import Crowd
from goldspan.crowd import agreement as measured
from goldspan.crowd.measures import Agreement
from goldspan.money import to_micro
from goldspan.params import parameters
from goldspan.plugins import load
from goldspan.report.wording import CALLED, amount, count, interval, number, percent, with_unit
from goldspan.spans.notebook import counted

if TYPE_CHECKING:
    from goldspan.campaign import CampaignRecord


def methods_text(
    consensus: Consensus,
    agreement: Agreement | None = None,  # Of the same crowd; by default it is computed
    record: CampaignRecord | None = None,  # Of the campaign that the labels are of
) -> tuple[str, str]:
    r"""Describe in two paragraphs, for a paper, who labelled what, and how labels were made of it.

    What is not known is left out: pay, for example, and an audit.

    >>> import goldspan
    >>> answers = b"task,worker,label\nq1,ann,yes\nq1,bob,yes\nq2,ann,no\nq2,bob,yes\n"
    >>> first, second = methods_text(goldspan.aggregate(answers, "mv-token"))
    >>> print(first.partition(";")[0])
    2 workers gave 4 answers to 2 items, 2.0 per item. Krippendorff’s α of the labels is 0.000
    """
    first = [*_answered(consensus.crowd)] if record is None else [lead(record), *_prices(record)]
    second = []
    layers = consensus.layers if isinstance(consensus, Joint) else {"": consensus}
    for name, one in layers.items():
        of = f"Layer {name}: " if name else ""
        found = (agreement or measured(one.crowd)) if len(one.crowd.latest) else None
        first += [of + words for words in _agreed(one.crowd, found)]
        second.append(of + " ".join(_method(one)))
    second += _audited(record)
    return " ".join(first).replace("\u00a0", " "), " ".join(second).replace("\u00a0", " ")


def given(crowd: Crowd) -> str:
    """Say how many workers, and which models, gave how many answers."""
    answers = counted(len(crowd.whole_items.latest), "answer")
    who = annotators(crowd, models_of(crowd, None), "worker")
    return f"{who} gave {answers} to {crowd.items_counted}"


def _answered(crowd: Crowd) -> Iterator[str]:
    whole, cost = crowd.whole_items, crowd.whole_items.latest.cost
    each = np.bincount(whole.latest.item, minlength=whole.n_items)
    range_ = f" ({each.min()} to {each.max()})" if each.min() < each.max() else ""
    tokens = "" if crowd.is_classification else f" ({counted(whole.n_tokens, 'token')})"
    yield f"{given(crowd)}{tokens}, {each.mean():.1f} per item{range_}."
    if cost is not None and (cost > 0).any():
        yield f"The recorded pay is {amount(int(cost[cost > 0].sum()))} in all."


def lead(record: CampaignRecord) -> str:
    """Return in a sentence what was done in a campaign."""
    counts, money = record.counts, record.money
    own = counts["answers"] - counts["control_answers"]
    price = "" if money is None else f" for {with_unit(record, money['spent'])}"
    text = (
        f"{' and '.join(_who(record))} gave {counted(counts['answers'], 'answer')}{price}: "
        f"{count(own)} of them label {count(counts['items'])} of the "
        f"{counted(counts['pool'], 'item')} of the pool"
    )
    if not counts["control_answers"]:
        return f"{text}."
    asked = counted(counts["control_items"], "gold question")
    return f"{text}, and {count(counts['control_answers'])} are to {asked}."


def _who(record: CampaignRecord) -> Iterator[str]:
    """Yield how many workers of every kind answered, and which models they are."""
    for kind in record.kinds or [record.plan["crowd"]["source"]]:
        own = [one for one in record.workers.values() if one["answers"]]
        own = [one for one in own if one.get("kind", kind) == kind]
        called = CALLED[kind] if record.kinds or kind == "simulated" else "workers"
        one_called = "person" if called == "people" else called.removesuffix("s")
        models = ", ".join(sorted({str(one["model"]) for one in own if one.get("model")}))
        what = one_called if record.kinds and len(own) == 1 else called
        yield f"{count(len(own))} {what}{f' ({models})' if models else ''}"


def _prices(record: CampaignRecord) -> Iterator[str]:
    n, prices = record.counts["items"], record.plan["prices"]
    if n:
        own = record.counts["answers"] - record.counts["control_answers"]
        yield f"That is {own / n:.1f} answers per item."
    rates = [
        f"{with_unit(record, to_micro(prices[f'per_{what}']))} per {what}"
        for what in ("answer", "token")
        if to_micro(prices[f"per_{what}"])
    ]
    if rates and record.money is not None and not record.kinds:
        yield f"The price was {' plus '.join(rates)}."


def _agreed(crowd: Crowd, found: Agreement | None) -> Iterator[str]:
    if found is None or not found.n_pairs or np.isnan(found.alpha):
        return
    unit, f1 = "item" if crowd.is_classification else "token", found.pairwise_span_f1
    alpha, of = found.alpha, "the labels" if unit == "item" else "the tokens’ tags"
    if found.masi_alpha is not None:
        alpha, of = found.masi_alpha, "the items’ sets (MASI distance)"
    other = f"two labels of one {unit} are equal in {percent(found.observed)} of the pairs"
    if f1 is not None and not np.isnan(f1):
        pairs = counted(found.n_pairs, "pair")
        other = f"the span F1 of two workers (bounds and type; {pairs}) is {percent(f1)}"
    yield f"Krippendorff’s α of {of} is {number(alpha)}; {other}."


def _method(one: Consensus) -> Iterator[str]:
    place, about = METHODS.get(one.method.partition("+")[0], ("", ""))
    kept = (f"{each.name} {percent(each.weight)}" for each in one.candidates if each.weight)
    about = f", {': '.join(filter(None, (about, '; '.join(kept))))}" if about else ""
    usual = {each.name: repr(each.default) for each in parameters(load(place))} if place else {}
    own = [f"{name} = {value!r}" for name, value in one.params.items()
           if name in usual and repr(value) != usual[name]]  # fmt: skip
    plain = one.tagset.rules.is_plain
    n = int((one.codes >= 0).sum()) if plain else len(one.spans)
    sure = None if one.posterior is None else one.mean_confidence
    yield (
        f"The method {one.method}{about}, as implemented in goldspan {__version__}"
        f"{' with ' * bool(own)}{', '.join(own)}, combined the answers into "
        f"{counted(n, 'label' if plain else 'span')}"
        f"{'' if sure is None else f' with a mean confidence of {percent(sure)}'}."
    )
    if one.known is not None and (one.known >= 0).any():
        known = np.logical_or.reduceat(one.known >= 0, one.crowd.offsets[:-1])
        items = one.crowd.select_items(known).items_counted
        yield f"It took the known labels of {items} as true."
    if not one.converged:
        yield "Its iterations ended before they converged."


def _audited(record: CampaignRecord | None) -> Iterator[str]:
    found = record and record.certificate
    if found and found["value"] is not None:
        yield (
            f"By an audit of {counted(found['checked'], 'item')}, drawn at random from "
            f"{count(found['items'])} with uncertain ones more often (seed {found['seed']}), the "
            f"{found['measure']} of the labels is {percent(found['value'])} "
            f"({100 * found['level']:g} % interval {interval(found)})."
        )
