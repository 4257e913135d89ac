"""Simulated workers and crowds, to test everything else on (paper 000, section 4.1; MATH 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.simulate.base import Habit, SimulatedWorker
    from goldspan.simulate.crf_noise import TruthTagger
    from goldspan.simulate.crowd import simulate_crowd
    from goldspan.simulate.parsing import parse_worker
    from goldspan.simulate.summary import WorkerRates, measure_workers
    from goldspan.simulate.team import read_team
    from goldspan.simulate.team_file import read_team_file
    from goldspan.simulate.truth import draw_truth

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
        "TruthTagger": "goldspan.simulate.crf_noise",
        "WorkerRates": "goldspan.simulate.summary",
        "draw_truth": "goldspan.simulate.truth",
        "measure_workers": "goldspan.simulate.summary",
        "parse_worker": "goldspan.simulate.parsing",
        "read_team": "goldspan.simulate.team",
        "read_team_file": "goldspan.simulate.team_file",
        "simulate_crowd": "goldspan.simulate.crowd",
    },
)
