"""The bottom layer: how a piece of mathematics is written so that both engines can run it.

A *kernel function* is a plain function over NumPy arrays that loops with `each(DIM)` over the
coordinates of a vector. The engines put the source text of the functions that a run needs into one
module. The compiled engine reads `each(DIM)` as `range(DIM)` and compiles; the Python engine reads it
as one pass over the whole vector, `slice(None)`, and so runs the same text at NumPy's speed. Operations
on single coordinates are the same IEEE operations either way, so the engines agree.

Two rules follow for the body of such a loop. It may not sum (use `dot`, `norm` or `distance`), and it may
not read an element after having written it: under the Python engine a name bound to `x[d]` is a view.
"""

from roundelay.kernels.part import Numbers, Part, slot
from roundelay.kernels.primitives import (
    DIM,
    EXCHANGES,
    FAR,
    INCREMENTS,
    TOKENS,
    VECTORS,
    Cube,
    Flags,
    Integers,
    Matrix,
    Vector,
    distance,
    dot,
    each,
    gather,
    gather_arrived,
    latest,
    matrix,
    norm,
    prefetch,
    solve_positive,
    vector,
)
from roundelay.kernels.random import (
    BATCH,
    CHAIN,
    COIN,
    LATENCY,
    LOSS,
    NOISE,
    PLACE,
    PRIMAL,
    PRIVACY,
    QUANTISE,
    RESEND,
    START,
    STEP,
    WALK,
    WORK,
    chances,
    normals,
    uniform,
)

__all__ = [
    "BATCH",
    "CHAIN",
    "COIN",
    "DIM",
    "EXCHANGES",
    "FAR",
    "INCREMENTS",
    "LATENCY",
    "LOSS",
    "NOISE",
    "PLACE",
    "PRIMAL",
    "PRIVACY",
    "QUANTISE",
    "RESEND",
    "START",
    "STEP",
    "TOKENS",
    "VECTORS",
    "WALK",
    "WORK",
    "Cube",
    "Flags",
    "Integers",
    "Matrix",
    "Numbers",
    "Part",
    "Vector",
    "chances",
    "distance",
    "dot",
    "each",
    "gather",
    "gather_arrived",
    "latest",
    "matrix",
    "norm",
    "normals",
    "prefetch",
    "slot",
    "solve_positive",
    "uniform",
    "vector",
]
