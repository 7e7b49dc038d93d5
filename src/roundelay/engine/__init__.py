"""Runs an algorithm in one process: compiled or plain Python, with recording."""

from roundelay.engine.ensemble import (
    Ensemble as Ensemble,
    load_ensemble as load_ensemble,
)
from roundelay.engine.monitors import (
    AugmentedLagrangian as AugmentedLagrangian,
    Invariant as Invariant,
    KKTResiduals as KKTResiduals,
    Monitor as Monitor,
)
from roundelay.engine.result import (
    Readout as Readout,
    Run as Run,
)
from roundelay.engine.simulate import (
    simulate as simulate,
)
from roundelay.engine.storage import (
    load_run as load_run,
)
from roundelay.transcripts import (
    Transcript as Transcript,
)
