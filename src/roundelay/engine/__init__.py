"""Runs an algorithm in one process: compiled or plain Python, with recording."""

from roundelay.engine.ensemble import Ensemble
from roundelay.engine.monitors import AugmentedLagrangian, Invariant, KKTResiduals, Monitor
from roundelay.engine.result import Readout, Run
from roundelay.engine.simulate import simulate
from roundelay.engine.storage import load_run
from roundelay.transcripts import Transcript

__all__ = [
    "AugmentedLagrangian",
    "Ensemble",
    "Invariant",
    "KKTResiduals",
    "Monitor",
    "Readout",
    "Run",
    "Transcript",
    "load_run",
    "simulate",
]
