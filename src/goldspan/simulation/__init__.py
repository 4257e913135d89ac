"""Simulated annotators and crowds, to test everything else on (docs/math.md, section 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.simulation.base import Habit, SimulatedWorker, TruthTagger, draw_truth
    from goldspan.simulation.crowd import WorkerRates, measure_workers, simulate_crowd
    from goldspan.simulation.parsing import parse_worker, read_team, read_team_file

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
        "Habit": "goldspan.simulation.base",
        "SimulatedWorker": "goldspan.simulation.base",
        "TruthTagger": "goldspan.simulation.base",
        "WorkerRates": "goldspan.simulation.crowd",
        "draw_truth": "goldspan.simulation.base",
        "measure_workers": "goldspan.simulation.crowd",
        "parse_worker": "goldspan.simulation.parsing",
        "read_team": "goldspan.simulation.parsing",
        "read_team_file": "goldspan.simulation.parsing",
        "simulate_crowd": "goldspan.simulation.crowd",
    },
)
