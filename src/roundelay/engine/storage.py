"""A run in one file: arrays and a description in JSON, packed by NumPy. The problem's data are not in it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np

from roundelay.algorithms.algorithm import Algorithm
from roundelay.engine.result import HistoryRows, Journey, Privacy, Run
from roundelay.links.conditions import NetworkConditions
from roundelay.problems import Regulariser
from roundelay.shown.provenance import provenance
from roundelay.tables import described, restored
from roundelay.transcripts.storage import DAMAGED, check_hops, packed, unpacked

FORMAT = 4

PLAIN = ("seed", "engine", "engine_reason", "outcome", "stop", "steps", "units")
ARRAYS = ("estimate", "x", "y", "optimum")
RECORD = ("step", "units", "bytes", "seconds", "accuracy", "error", "consensus", "tokens")
MEASURES = ("objective_gap", "gradient_norm", "objective")
JOURNEY_PLAIN = ("tour", "reader", "lap_is_fixed", "token_scale")
JOURNEY_ARRAYS = ("tokens", "visits", "received")
PRIVACY_PLAIN = ("epsilon", "delta", "rho", "leave_out")


def save_run(run: Run, path: Path) -> Path:
    """Write the run beside the target and move it into place, so that a crash leaves no half a file."""
    about = {
        "format": FORMAT,
        "algorithm": described(run.algorithm, Algorithm),
        "regulariser": described(run.regulariser, Regulariser),
        "conditions": described(run.conditions, NetworkConditions),
        "jumps": run.record.jumps,
        "journey": None if run.journey is None else {name: getattr(run.journey, name) for name in JOURNEY_PLAIN},
        "privacy": None if run.privacy is None else {name: getattr(run.privacy, name) for name in PRIVACY_PLAIN},
        **{name: getattr(run, name) for name in PLAIN},
        "provenance": provenance(**run.made()),
    }
    arrays = {name: getattr(run, name) for name in ARRAYS}
    if run.journey is not None:
        arrays |= {f"journey_{name}": getattr(run.journey, name) for name in JOURNEY_ARRAYS}
    if run.privacy is not None:
        arrays["privacy_deviations"] = run.privacy.deviations
    arrays |= {f"record_{name}": getattr(run.record, name) for name in RECORD}
    arrays |= {f"monitor_{name}": values for name, values in run.record.monitors.items()}
    arrays |= {f"record_{name}": run.column(name) for name in MEASURES if name in run.history.columns}
    if run.transcript is not None:
        arrays |= {f"transcript_{name}": values for name, values in packed(run.transcript).items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with open(beside, "xb") as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return path


def load_run(path: str | Path) -> Run:
    """Read a run that `run.save` wrote."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            content = dict(arrays)
        about = dict(json.loads(str(content.pop("about"))))
    except FileNotFoundError:
        raise ValueError(f"There is no file {path}: give the path of a saved run.") from None
    except OSError as error:
        raise ValueError(f"{path} can't be read ({error.strerror or error}): give the path of a saved run.") from None
    except (*DAMAGED, TypeError, RecursionError):
        raise ValueError(f"{path} is not a saved run, or it is damaged: save the run again.") from None
    if about.get("format") != FORMAT:
        raise ValueError(
            f"{path} has the format {about.get('format')}, but this version of roundelay reads {FORMAT}: use the version that wrote it."
        )
    try:
        return _restored(about, content, path)
    except KeyError as error:
        raise ValueError(f"{path} has no {error}: save the run again.") from None
    except TypeError as error:
        raise ValueError(f"{path} is damaged ({error}): save the run again.") from None


def _restored(about: dict[str, Any], content: dict[str, Any], path: str | Path) -> Run:
    """The run of a description and the arrays beside it."""
    record = HistoryRows(
        **{name: content[f"record_{name}"] for name in RECORD},
        monitors={name.removeprefix("monitor_"): content[name] for name in content if name.startswith("monitor_")},
        measures={name: content[f"record_{name}"] for name in MEASURES if f"record_{name}" in content},
        jumps=bool(about["jumps"]),
    )
    transcript = None
    if "transcript_hop" in content:
        kept = {name.removeprefix("transcript_"): content[name] for name in content if name.startswith("transcript_")}
        transcript = unpacked(kept)
        check_hops(path, transcript)
    journey = None
    if about["journey"] is not None:
        journey = Journey(**about["journey"], **{name: content[f"journey_{name}"] for name in JOURNEY_ARRAYS})
    promised = about.get("privacy")
    return Run(
        privacy=None if promised is None else Privacy(**promised, deviations=content["privacy_deviations"]),
        algorithm=restored(about["algorithm"], f"the algorithm in {path}", Algorithm),
        regulariser=restored(about["regulariser"], f"the regulariser in {path}", Regulariser),
        conditions=restored(about["conditions"], f"the conditions in {path}", NetworkConditions),
        journey=journey,
        record=record,
        transcript=transcript,
        kept_data_in_words=str(dict(about.get("provenance") or {}).get("data", "")),
        **{name: about[name] for name in PLAIN},
        **{name: content[name] for name in ARRAYS},
    )
