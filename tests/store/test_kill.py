"""A process that writes is killed at random moments, again and again."""

from __future__ import annotations

import random
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from goldspan.store import open_ledger
from goldspan.store.verify import faults_of

SEEDS, KILLS = (3, 30) if settings.default.max_examples > 1000 else (1, 2)
"""`make torture` kills 90 times on each database."""
CHILD = Path(__file__).with_name("writing_child.py")


def run(place, stop_after=None, delay=0.0):
    """Start the child, kill it some seconds after so many answers; give what it acknowledged."""
    words = [sys.executable, str(CHILD), place]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        told = []
        for line in child.stdout:
            told.append(line.strip())
            if len(told) == stop_after:
                try:
                    child.wait(delay)
                except subprocess.TimeoutExpired:
                    child.kill()
        child.wait()
    # A line that the kill cut off was not read as an acknowledgement by anyone.
    return told, child.returncode


def kept(ledger):
    crowd = ledger.crowd()
    items, workers = crowd.item_ids.to_pylist(), crowd.worker_ids.to_pylist()
    pairs = zip(crowd.answers.item.tolist(), crowd.answers.worker.tolist(), strict=True)
    return {f"{workers[worker]}-{items[item]}" for item, worker in pairs}


@pytest.mark.torture(
    "a process that writes to the store is killed",
    "no acknowledged answer is lost; the end is the same to the byte",
)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_acknowledged_answer_is_lost_and_the_end_is_the_same_to_the_byte(
    new_place, capfd, seed, tortured
):
    rng, place, left = random.Random(seed), new_place(), KILLS
    while left:
        told, code = run(place, rng.randrange(1, 40), rng.uniform(0.0, 0.02))
        with open_ledger(place) as ledger:
            assert set(told) <= kept(ledger)
            assert faults_of(ledger.database) == []
            ledger.verify()
        if code == 0:
            place = new_place()
        left -= code != 0
    tortured(KILLS)
    whole = new_place()
    for each in (place, whole):
        runpy.run_path(str(CHILD))["main"](each)
    capfd.readouterr()
    with open_ledger(place) as killed, open_ledger(whole) as ledger:
        assert list(killed.events()) == list(ledger.events())
