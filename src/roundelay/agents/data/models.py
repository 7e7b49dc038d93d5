"""What a ring has fitted, in the units of the data, and its file."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from roundelay.agents.agreement.disk import write_synced
from roundelay.agents.agreement.plan import check_kind
from roundelay.agents.data.statistics import Standard
from roundelay.kernels import Vector

FORMAT = 1
Value = TypeVar("Value")


@dataclass(frozen=True)
class Model:
    """A fit in raw units: target ≈ intercept + Σ coefficient·feature, or for labels the log-odds of the label 1.

    `coefficients` pairs each feature, as "name [unit]", with its number. For "custom" they are the unknowns, by number.
    """

    coefficients: tuple[tuple[str, float], ...]
    intercept: float
    kind: str
    target: str


@dataclass(frozen=True)
class Residuals:
    """How far from the solution a ring stopped: ‖Σ∇f_i(z)‖/N, and the largest ‖x_i − z‖; not a number where unknown."""

    gradient: float
    disagreement: float


@dataclass(frozen=True)
class ModelNotes:
    """Where a model comes from: the run and its epoch, how many hops it took, who took part, and why it stopped.

    `standard` has the statistics of all rows in raw units (None for a custom objective) and `ring_digest` is that of
    the ring file.
    """

    run: str
    epoch: int
    hops: int
    members: tuple[str, ...]
    reason: str
    residuals: Residuals
    standard: Standard | None
    ring_digest: str


@dataclass(frozen=True)
class StoredModel:
    """What a model's file holds."""

    model: Model
    about: ModelNotes


def write_model(path: str | Path, model: Model, about: ModelNotes) -> None:
    """Write a model as JSON. The file is the old or the new one, never half of it."""
    residuals, standard = about.residuals, about.standard
    content = {
        "format": FORMAT,
        "kind": model.kind,
        "target": model.target,
        "intercept": model.intercept,
        "coefficients": [{"feature": name, "value": value} for name, value in model.coefficients],
        "run": about.run,
        "epoch": about.epoch,
        "hops": about.hops,
        "members": list(about.members),
        "reason": about.reason,
        "residuals": {"gradient": _or_null(residuals.gradient), "disagreement": _or_null(residuals.disagreement)},
        "standard": None if standard is None else {
            "rows": standard.rows,
            "mean": standard.mean.tolist(),
            "deviation": standard.deviation.tolist(),
            "target_mean": standard.target_mean,
            "target_deviation": standard.target_deviation,
        },
        "ring_digest": about.ring_digest,
    }  # fmt: skip
    try:
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise ValueError(f"The model for {path} has a number that is not finite: the fit has diverged.") from None
    write_synced(Path(path), (text + "\n").encode())


def write_vector(path: Path, vector: Vector) -> None:
    """Write many unknowns as a NumPy file, whole or not at all."""
    content = io.BytesIO()
    np.save(content, vector, allow_pickle=False)
    write_synced(path, content.getbuffer())


def read_vector(path: Path, dim: int) -> Vector:
    """Read what `write_vector` wrote."""
    try:
        vector = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise ValueError(f"{path} can't be read as a vector: use a file that a ring has written.") from None
    if vector.shape != (dim,) or vector.dtype != np.float64 or not np.isfinite(vector).all():
        raise ValueError(
            f"{path} does not hold {dim:,} finite numbers: use the model of a ring with the same unknowns."
        )
    return vector


def load_model(path: str | Path) -> StoredModel:
    """Read a model that `write_model` wrote."""
    try:
        return _stored(_object(json.loads(Path(path).read_bytes().decode())))
    except OSError as error:
        raise ValueError(f"{path} can't be opened ({error.strerror}): check the path and who may read it.") from None
    except (ValueError, RecursionError) as error:  # what is not JSON, and what JSON should not hold
        said = str(error) if isinstance(error, UnfitError) else "It is not JSON"
        raise ValueError(f"{path} is not a model of roundelay. {said}: use a file that a ring has written.") from None


class UnfitError(ValueError):
    """The JSON is not that of a model."""


def _stored(content: dict[str, Any]) -> StoredModel:
    if content.get("format") != FORMAT:
        raise UnfitError(f"Its format is not {FORMAT}")
    kind = _text(content, "kind")
    try:
        check_kind(kind)
    except ValueError:
        raise UnfitError("Its kind is unknown") from None
    pairs = [_object(entry) for entry in _list(content, "coefficients")]
    coefficients = tuple((_text(pair, "feature"), _number(pair, "value")) for pair in pairs)
    model = Model(coefficients, _number(content, "intercept"), kind, _text(content, "target"))
    residuals, standard = _object(content.get("residuals")), content.get("standard")
    about = ModelNotes(
        run=_text(content, "run"),
        epoch=_whole(content, "epoch"),
        hops=_whole(content, "hops"),
        members=tuple(_expect(str, name, "members") for name in _list(content, "members")),
        reason=_text(content, "reason"),
        residuals=Residuals(_number_or_nan(residuals, "gradient"), _number_or_nan(residuals, "disagreement")),
        standard=None if standard is None else _standard(_object(standard)),
        ring_digest=_text(content, "ring_digest"),
    )
    return StoredModel(model, about)


def _standard(content: dict[str, Any]) -> Standard:
    mean, deviation = (
        np.array([_as_number(value, name) for value in _list(content, name)]) for name in ("mean", "deviation")
    )
    try:
        return Standard(
            _whole(content, "rows"), mean, deviation, _number(content, "target_mean"), _number(content, "target_deviation")
        )  # fmt: skip
    except ValueError as error:
        raise UnfitError(str(error).rstrip(".")) from None


def _or_null(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _expect(kind: Callable[..., Value], value: Any, name: str) -> Value:
    # True is a whole number to Python, but not to whoever wrote it.
    if type(value) is not kind:
        raise UnfitError(f'Its "{name}" is missing or of the wrong kind')
    return value


def _object(value: Any) -> dict[str, Any]:
    return _expect(dict, value, "content")


def _list(content: dict[str, Any], name: str) -> list[Any]:
    return _expect(list, content.get(name), name)


def _text(content: dict[str, Any], name: str) -> str:
    return _expect(str, content.get(name), name)


def _whole(content: dict[str, Any], name: str) -> int:
    return _expect(int, content.get(name), name)


def _number(content: dict[str, Any], name: str) -> float:
    return _as_number(content.get(name), name)


def _number_or_nan(content: dict[str, Any], name: str) -> float:
    return math.nan if content.get(name) is None else _number(content, name)


def _as_number(value: Any, name: str) -> float:
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UnfitError(f'Its "{name}" is not a finite number')
    return number
