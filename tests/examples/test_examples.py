"""The examples run and show what they say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses and numba look a class's module up by name
    specification.loader.exec_module(module)
    return module


def test_comparing_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure = tmp_path / "compare.png"
    example("compare_methods").main(seeds=2, figure=str(figure))
    printed = capsys.readouterr().out
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert printed.count("units to 1e-6") == 3 and "inf" not in printed


def test_unequal_hospitals_reach_the_pooled_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert example("unequal_hospitals").main() < 1e-6
    assert "All agents were content" in capsys.readouterr().out


def test_on_a_real_network_tokens_are_cheaper_and_gossip_is_sooner(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row.name: row.costs for row in example("real_network").main(seeds=1).rows}
    assert rows["I-ADMM"]["units"][1].cost < rows["NIDS"]["units"][1].cost / 5.0
    assert rows["NIDS"]["seconds"][1].cost < rows["I-ADMM"]["seconds"][1].cost / 2.0
    assert "one pass" in capsys.readouterr().out


def test_every_example_is_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {
        "compare_methods",
        "huber_problem",
        "real_network",
        "unequal_hospitals",
        "what_leaks",
    }


def test_what_leaks(capsys: pytest.CaptureFixture[str]) -> None:
    example("what_leaks").main(agents=10, dim=2, laps=12)
    lines = capsys.readouterr().out.splitlines()
    rows = {cells[1].strip(): cells[2:-1] for cells in (line.split("|") for line in lines if line.startswith("|"))}
    assert len(rows) == 12
    slope, hessian = 3, 4
    assert float(rows["PI-ADMM1"][slope]) < 1e-6
    assert float(rows["PI-ADMM1"][hessian]) < 1e-6
    assert float(rows["PI-ADMM1, zero-sum start"][slope]) > 1.0
    assert float(rows["I-ADMM, sealed start"][slope]) > 0.5
    assert float(rows["I-ADMM, sealed start"][hessian]) < 1e-6
