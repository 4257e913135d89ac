"""What a campaign leaves behind: labels, spans, the model, the bill, the rounds.

Every file is a function of the ledger, without the time of day: a campaign that was killed and
resumed leaves the same bytes as one that ran through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from goldspan.campaign.findings import keep_hidden_gold
from goldspan.campaign.loop import Campaign
from goldspan.campaign.record import CampaignRecord
from goldspan.crowd.atomic import write_text
from goldspan.crowd.cells import csv_text
from goldspan.errors import InputError
from goldspan.hiring import PayPlan, make_bill
from goldspan.tagger.base import Tagger


def write_exports(
    campaign: Campaign,
    out: str | Path,
    shown: Callable[[CampaignRecord], CampaignRecord] = lambda record: record,
    *,
    raw_csv: bool = False,
) -> list[Path]:
    """Write what a campaign found.

    Args:
        campaign: A campaign that has run, or waits.
        out: The folder; it is made if it is not there.
        shown: Gives the record as it may be shown: with other names for workers, for example.
        raw_csv: Whether cells of gold.csv and predictions.csv stay as they are, also those that a
            spreadsheet may take for formulas.

    Returns:
        The files: gold.conll (single labels: gold.csv), spans.jsonl, tagger.goldspan (single
        labels: predictions.csv, every item of the pool), bill.csv, rounds.jsonl, record.json. What
        there is nothing for, is not written: unpaid work has no bill.

    Raises:
        InputError: The folder cannot be made, or a file not written.
    """
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror}") from None
    keep_hidden_gold(campaign.setting, campaign.ledger, campaign.steps.label.now())
    with campaign.progress.still():
        written = [*_labels(campaign, folder, raw_csv), *_model(campaign, folder, raw_csv)]
        written += _bill(campaign, folder)
    record = CampaignRecord.of(campaign.ledger)
    rounds = folder / "rounds.jsonl"
    write_text(rounds, [json.dumps(one, ensure_ascii=False) + "\n" for one in record.rounds])
    whole = folder / "record.json"
    write_text(whole, [json.dumps(shown(record).to_dict(), ensure_ascii=False, indent=1) + "\n"])
    return [*written, rounds, whole]


def _labels(campaign: Campaign, folder: Path, raw_csv: bool) -> Iterator[Path]:
    result = campaign.progress.result
    if result is None:
        return
    gold = folder / ("gold.csv" if campaign.setting.plan.is_single else "gold.conll")
    result.write(gold, raw_csv=raw_csv)
    yield gold
    if not campaign.setting.plan.is_single:
        result.write(folder / "spans.jsonl")
        yield folder / "spans.jsonl"


def _model(campaign: Campaign, folder: Path, raw_csv: bool) -> Iterator[Path]:
    trained = campaign.progress.trained
    if trained is None:
        return
    if isinstance(trained.model, Tagger):
        trained.model.save(folder / "tagger.goldspan")
        yield folder / "tagger.goldspan"
        return
    pool = campaign.setting.pool
    labels = trained.predict(pool, np.arange(pool.n_items))
    rows = zip(campaign.setting.ids, (label[0] for label in labels), strict=True)
    write_text(folder / "predictions.csv", [csv_text(["item", "label"], rows, raw=raw_csv)])
    yield folder / "predictions.csv"


def _bill(campaign: Campaign, folder: Path) -> Iterator[Path]:
    crowd, prices = campaign.progress.crowd, campaign.setting.plan.prices
    if not len(crowd.latest) or not campaign.setting.plan.is_paid:
        return
    plan = PayPlan(
        per_answer=prices.per_answer, per_token=prices.per_token, currency=prices.currency
    )
    make_bill(crowd, plan, recorded="use").write(folder / "bill.csv")
    yield folder / "bill.csv"
