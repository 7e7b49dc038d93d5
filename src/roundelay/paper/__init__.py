"""Experiments that can be run again by name."""

from roundelay.paper.demo import (
    METHODS as METHODS,
    Demo as Demo,
    DemoRow as DemoRow,
    compile_methods as compile_methods,
    plot_demo as plot_demo,
    run_demo as run_demo,
)
