"""Experiments that can be run again by name."""

from roundelay.paper.demo import METHODS, Demo, DemoRow, compile_methods, plot_demo, run_demo

__all__ = ["METHODS", "Demo", "DemoRow", "compile_methods", "plot_demo", "run_demo"]
