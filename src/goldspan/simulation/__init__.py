"""Simulated annotators and crowds, to test everything else on (docs/math.md, section 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goldspan._lazy import lazy

if TYPE_CHECKING:
    from goldspan.simulation.base import Habit as Habit
    from goldspan.simulation.base import SimulatedWorker as SimulatedWorker
    from goldspan.simulation.base import TruthTagger as TruthTagger
    from goldspan.simulation.base import draw_truth as draw_truth
    from goldspan.simulation.crowd import WorkerRates as WorkerRates
    from goldspan.simulation.crowd import measure_workers as measure_workers
    from goldspan.simulation.crowd import parse_worker as parse_worker
    from goldspan.simulation.crowd import read_team as read_team
    from goldspan.simulation.crowd import simulate_crowd as simulate_crowd

__getattr__, __dir__, __all__ = lazy(__name__)
