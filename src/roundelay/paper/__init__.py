"""The paper, run again: the demo of four methods, and the reproduction of every figure and claim with its report."""

from roundelay.paper.demo import DEMO_METHODS, Demo, DemoRow, compile_methods, plot_demo, run_demo

__all__ = ["DEMO_METHODS", "Demo", "DemoRow", "compile_methods", "plot_demo", "run_demo"]
