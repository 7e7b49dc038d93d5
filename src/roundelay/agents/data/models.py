"""What a ring has fitted, in the units of the data, and the files that hold it."""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from roundelay.agents.agreement.disk import PRIVATE, USUAL, write_whole
from roundelay.agents.agreement.plan import CUSTOM, Task, check_kind
from roundelay.agents.data.statistics import Standard
from roundelay.kernels import Vector
from roundelay.regression.regression import Regression
from roundelay.regression.result import Result

try:
    import msgspec
except ImportError:
    raise ImportError(
        "The models of a ring need the package msgspec: install it by pip install 'roundelay[ring]'."
    ) from None


@dataclass(frozen=True)
class Model:
    """A fit in raw units: target ≈ intercept + Σ coefficient·feature, or for labels the log-odds of the label 1.

    `coefficients` pairs each feature, as "name [unit]", with its number. For "custom" they are the unknowns, by number; for "regression" the
    coefficients by the names that the formula gives them, the constants of several equations among them.
    """

    coefficients: tuple[tuple[str, float], ...]
    intercept: float
    kind: str
    target: str

    def __post_init__(self) -> None:
        check_kind(self.kind)


# With more unknowns than this, those of an objective of the sites' own stand in a file beside the model.
MOST_COEFFICIENTS = 10_000
BESIDE = Model((), 0.0, CUSTOM, "")
# Of a model's file: 5 has regressions, of 6 splines are straight beyond their ends, and of 7 the sums stand in a file beside.
FORMAT: Literal[7] = 7


def stands_beside(task: Task) -> bool:
    """Whether the unknowns stand in a file beside the model, which is then empty (BESIDE)."""
    return task.kind == CUSTOM and task.dim > MOST_COEFFICIENTS


@dataclass(frozen=True)
class FinalResiduals:
    """How far from the solution a ring stopped: ‖Σ∇f_i(z)‖/N at most, and ‖x_i − z‖ of this site; None where unknown."""

    gradient: float | None
    disagreement: float | None


@dataclass(frozen=True)
class PrivacyNotes:
    """What a model promises every record, where neighbouring means one record more or less, and what that cost.

    `rho` is the same loss as zero-concentrated differential privacy has it. `noise` pairs each feature with the standard deviation
    that noise has given its coefficient, and `of_intercept` is the intercept's; empty and None where the run was ended early.
    """

    epsilon: float
    delta: float
    rho: float
    leave_out: int
    noise: tuple[tuple[str, float], ...] = ()
    of_intercept: float | None = None

    @property
    def words(self) -> str:
        """The promise in a sentence."""
        return (
            f"ε = {self.epsilon:g} at δ = {self.delta:g} for one record more or less, even where {self.leave_out} of the sites leave their noise "
            "out or tell each other what they added."
        )


@dataclass(frozen=True)
class SignedEnd:
    """How a run ended as every member has signed it: `signatures` in the order of the members, as hexadecimal digits.

    `reason`, `by` and `hop` are as the ring counts them, `told` has the sums before the fit, and `asked` and `totals` are the digests of
    all questions and of what they came to. `point` is that at which the ring ended, in its own units; it is empty where there are
    too many unknowns, which stand in a file beside. Of a regression `fitted` is the digest of what was summed on the way to the point, and
    `sums` that of the sums before the fit: those themselves, and the `looks` at all rows where the fit stands, have counts of few rows
    in them and stand in a file beside (SignedSums). Models before format 7 have them in `told` and `looks`.
    """

    hop: int
    reason: int
    by: int
    told: tuple[tuple[float, ...], ...]
    asked: str
    totals: str
    point: tuple[float, ...]
    signatures: tuple[str, ...]
    fitted: str = ""
    looks: tuple[tuple[float, ...], ...] = ()
    sums: str = ""


@dataclass(frozen=True)
class SignedSums:
    """What the sites told each other of all rows in a regression: for its members, beside the model, which may be published.

    `told` has the sums before the fit, each behind the number of sites, and `looks` those where it stands. All members have signed their digests.
    """

    ring_digest: str
    told: tuple[tuple[float, ...], ...]
    looks: tuple[tuple[float, ...], ...]
    format: Literal[1] = 1


@dataclass(frozen=True)
class ModelNotes:
    """Where a model comes from: the run and its epoch, how many hops it took, who took part, and why it stopped.

    `standard` has the statistics of all rows in raw units (None for a custom objective) and `ring_digest` is that of
    the ring file. Of sealed laps, `questions` is how many were asked, and `doubt` says what of that was not as agreed; `privacy` is
    the promise of ε, where there is one, under which nobody knows the statistics. `end` is what all members have signed.
    """

    run: str
    epoch: int
    hops: int
    members: tuple[str, ...]
    reason: str
    residuals: FinalResiduals
    standard: Standard | None
    ring_digest: str
    questions: int = 0
    doubt: str = ""
    privacy: PrivacyNotes | None = None
    end: SignedEnd | None = None


@dataclass(frozen=True)
class StoredModel:
    """What a model's file holds; of a `regression` also what was planned and, where it came to its end, the `result` with its tables."""

    model: Model
    about: ModelNotes
    format: Literal[4, 5, 6, 7]
    result: Result | None = None
    regression: Regression | None = None


def write_model(
    path: str | Path,
    model: Model,
    about: ModelNotes,
    result: Result | None = None,
    regression: Regression | None = None,
) -> None:
    """Write a model as JSON. The file is the old or the new one, never half of it."""
    if not all(math.isfinite(value) for value in (model.intercept, *(value for _, value in model.coefficients))):
        raise ValueError(f"The model for {path} has a number that is not finite: the fit has diverged.")
    _write(Path(path), text_of_model(StoredModel(model, about, FORMAT, result, regression)))


def text_of_model(stored: StoredModel) -> bytes:
    """What stands in a model's file: there is one spelling of it."""
    content = msgspec.json.encode(stored, enc_hook=lambda value: value.tolist())
    if stored.format < FORMAT:
        table = msgspec.json.decode(content)
        end = table["about"]["end"] or {}
        no_regressions = stored.format == 4
        later = [
            (end, "sums"),
            *([(table, "result"), (table, "regression"), (end, "fitted"), (end, "looks")] if no_regressions else []),
        ]
        for place, name in later:
            place.pop(name, None)
        content = msgspec.json.encode(table)
    return msgspec.json.format(content, indent=2) + b"\n"


def load_model(path: str | Path) -> StoredModel:
    """Read a model that `write_model` wrote."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=StoredModel, dec_hook=_vector)
    except OSError as error:
        raise ValueError(f"{path} can't be opened ({error.strerror}): check the path and who may read it.") from None
    except (ValueError, RecursionError) as error:  # what is not JSON, and what JSON should not hold
        raise ValueError(f"{path} is not a model of roundelay ({error}): use a file that a ring has written.") from None


def _vector(kind: Any, value: Any) -> Vector:
    return np.array(msgspec.convert(value, list[float]), np.float64)


def sums_beside(path: Path) -> Path:
    """Where the sums stand that a regression's model was made of."""
    return path.with_name(f"{path.stem}.sums.json")


def write_sums(path: Path, sums: SignedSums) -> None:
    """Write the sums of a regression, for the user alone."""
    _write(path, msgspec.json.encode(sums) + b"\n", PRIVATE)


def load_sums(path: Path) -> SignedSums:
    """Read what `write_sums` wrote."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=SignedSums)
    except OSError as error:
        raise ValueError(f"{path} can't be opened ({error.strerror}): check the path and who may read it.") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} has no sums of a model ({error}): use the file that a ring has written beside it."
        ) from None


def write_vector(path: Path, vector: Vector) -> None:
    """Write many unknowns as a NumPy file, whole or not at all."""
    content = io.BytesIO()
    np.save(content, vector, allow_pickle=False)
    _write(path, content.getbuffer())


def read_vector(path: Path, dim: int) -> Vector:
    """Read what `write_vector` wrote; of a file that claims more than it has nothing is read."""
    try:
        there = np.load(path, mmap_mode="r", allow_pickle=False)
        vector = np.array(there) if isinstance(there, np.ndarray) and there.shape == (dim,) else np.zeros(0)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path} can't be read as a vector: use a file that a ring has written.") from None
    if vector.shape != (dim,) or vector.dtype != np.float64 or not np.isfinite(vector).all():
        raise ValueError(
            f"{path} does not hold {dim:,} finite numbers: use the model of a ring with the same unknowns."
        )
    return vector


def _write(path: Path, content: bytes | memoryview, mode: int = USUAL) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content, mode)
