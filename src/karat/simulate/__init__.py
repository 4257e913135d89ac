"""Simulated workers and crowds, to test everything else on (paper 000, section 4.1; MATH 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat._lazy import lazy

if TYPE_CHECKING:
    from karat.simulate.base import Habit, SimulatedWorker
    from karat.simulate.crf_noise import TruthTagger
    from karat.simulate.crowd import simulate_crowd
    from karat.simulate.parsing import parse_worker
    from karat.simulate.summary import WorkerRates, measure_workers
    from karat.simulate.team import read_team
    from karat.simulate.team_file import read_team_file
    from karat.simulate.truth import draw_truth

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
        "Habit": "karat.simulate.base",
        "SimulatedWorker": "karat.simulate.base",
        "TruthTagger": "karat.simulate.crf_noise",
        "WorkerRates": "karat.simulate.summary",
        "draw_truth": "karat.simulate.truth",
        "measure_workers": "karat.simulate.summary",
        "parse_worker": "karat.simulate.parsing",
        "read_team": "karat.simulate.team",
        "read_team_file": "karat.simulate.team_file",
        "simulate_crowd": "karat.simulate.crowd",
    },
)
