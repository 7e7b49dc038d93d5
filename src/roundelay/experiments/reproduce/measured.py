"""What a piece of the reproduction found, and its file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd


@dataclass(frozen=True, eq=False)
class Measured:
    """Numbers by name, and tables; verdicts and figures are made of these alone."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def write_measured(measured: Measured, path: Path) -> None:
    """Write it as JSON, with every digit; the file is there wholly or not at all."""
    content = {
        "numbers": {name: float(value) for name, value in measured.numbers.items()},
        "tables": {name: table.to_dict("list") for name, table in measured.tables.items()},
    }
    beside = path.with_suffix(f".{os.getpid()}.part")
    beside.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    os.replace(beside, path)


def read_measured(path: Path) -> Measured:
    """Read it again."""
    content = json.loads(path.read_text(encoding="utf-8"))
    tables = {name: pd.DataFrame(columns) for name, columns in content["tables"].items()}
    return Measured(content["numbers"], tables)
