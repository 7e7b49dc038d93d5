"""The paper, run again: the demo of four methods, and the reproduction of every figure and claim with its report."""

from roundelay.paper.demo import (
    DEMO_METHODS as DEMO_METHODS,
    Demo as Demo,
    DemoRow as DemoRow,
    compile_methods as compile_methods,
    plot_demo as plot_demo,
    run_demo as run_demo,
)
