import sys
from pathlib import Path

import pytest

from roundelay.cli import bench
from tests.cli.conftest import Invoke


def checkout(folder: Path, script: str) -> Path:
    (folder / "src" / "roundelay").mkdir(parents=True)
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "against_c.py").write_text(script)
    return folder


def test_the_first_checkout_wins(tmp_path: Path) -> None:
    first, second = (checkout(tmp_path / name, "") for name in ("first", "second"))
    empty = tmp_path / "empty"
    assert bench.find_script(empty, first, second) == first / "benchmarks" / "against_c.py"
    assert bench.find_script(empty) is None


def test_a_folder_with_such_a_file_alone_is_no_checkout(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "against_c.py").write_text("raise SystemExit(9)")
    assert bench.find_script(tmp_path) is None


def test_this_checkout_has_the_benchmark() -> None:
    assert bench.find_script(Path(bench.__file__).resolve().parents[3]) is not None


def test_the_script_gets_the_options_and_its_exit_code_is_passed_on(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    script = checkout(tmp_path, f"import sys\nopen({str(seen)!r}, 'w').write(' '.join(sys.argv[1:]))\nsys.exit(7)")
    monkeypatch.setattr(bench, "find_script", lambda *folders: script / "benchmarks" / "against_c.py")
    assert sys.executable
    assert invoke("bench", "--quick", "--json").exit_code == 7
    assert seen.read_text() == "--quick --json"


def test_without_a_checkout_it_says_where_to_get_it(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "find_script", lambda *folders: None)
    said = invoke("bench")
    assert said.exit_code == 2
    assert "get the source of Roundelay" in said.stderr
