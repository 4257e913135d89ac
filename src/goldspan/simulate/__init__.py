"""Simulated workers and crowds, to test everything else on (paper 000, section 4.1; MATH 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.simulate.base import Habit, SimulatedWorker, TruthTagger, draw_truth
    from goldspan.simulate.crowd import WorkerRates, measure_workers, simulate_crowd
    from goldspan.simulate.parsing import parse_worker, read_team, read_team_file

__all__ = [
    "Habit",
    "SimulatedWorker",
    "TruthTagger",
    "WorkerRates",
    "draw_truth",
    "measure_workers",
    "parse_worker",
    "read_team",
    "read_team_file",
    "simulate_crowd",
]

__getattr__ = lazy(
    __name__,
    {
        "Habit": "goldspan.simulate.base",
        "SimulatedWorker": "goldspan.simulate.base",
        "TruthTagger": "goldspan.simulate.base",
        "WorkerRates": "goldspan.simulate.crowd",
        "draw_truth": "goldspan.simulate.base",
        "measure_workers": "goldspan.simulate.crowd",
        "parse_worker": "goldspan.simulate.parsing",
        "read_team": "goldspan.simulate.parsing",
        "read_team_file": "goldspan.simulate.parsing",
        "simulate_crowd": "goldspan.simulate.crowd",
    },
)
