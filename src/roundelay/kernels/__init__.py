"""The bottom layer: how a piece of mathematics is written so that both engines can run it.

A *kernel function* is a plain function over NumPy arrays that loops with `each(DIM)` over the
coordinates of a vector. The engines put the source text of the functions that a run needs into one
module. The compiled engine reads `each(DIM)` as `range(DIM)` and compiles; the Python engine reads it
as one pass over the whole vector, `slice(None)`, and so runs the same text at NumPy's speed. Operations
on single coordinates are the same IEEE operations either way, so the engines agree.

Two rules follow for the body of such a loop. It may not sum (use `dot`, `norm` or `distance`), and it may
not read an element after having written it: under the Python engine a name bound to `x[d]` is a view.
"""

from roundelay.kernels.primitives import (
    DIM as DIM,
    EXCHANGES as EXCHANGES,
    FAR as FAR,
    INCREMENTS as INCREMENTS,
    TOKENS as TOKENS,
    VECTORS as VECTORS,
    Cube as Cube,
    Exchange as Exchange,
    Flags as Flags,
    Integers as Integers,
    Matrix as Matrix,
    Numbers as Numbers,
    Part as Part,
    Vector as Vector,
    Visit as Visit,
    distance as distance,
    dot as dot,
    each as each,
    flagged as flagged,
    gather as gather,
    latest as latest,
    matrix as matrix,
    norm as norm,
    prefetch as prefetch,
    slot as slot,
    solve_positive as solve_positive,
    vector as vector,
)
from roundelay.kernels.random import (
    AWAKE as AWAKE,
    BATCH as BATCH,
    CHAIN as CHAIN,
    COIN as COIN,
    CONCEAL as CONCEAL,
    LATENCY as LATENCY,
    LINKS as LINKS,
    LOSS as LOSS,
    NOISE as NOISE,
    PAIR as PAIR,
    PLACE as PLACE,
    PRIMAL as PRIMAL,
    PRIVACY as PRIVACY,
    QUANTISE as QUANTISE,
    RESEND as RESEND,
    START as START,
    STEP as STEP,
    WALK as WALK,
    WORK as WORK,
    chances as chances,
    normals as normals,
    uniform as uniform,
    uniforms as uniforms,
)
