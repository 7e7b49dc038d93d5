"""Experiments that can be run again by name."""

from roundelay.experiments.compiling import compile_methods
from roundelay.experiments.demo import METHODS, Demo, DemoRow, plot_demo, run_demo

__all__ = ["METHODS", "Demo", "DemoRow", "compile_methods", "plot_demo", "run_demo"]
