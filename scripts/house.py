"""How hard the house is to enter, in numbers: `python scripts/house.py [COMMIT …]` puts other commits beside the working tree."""

from __future__ import annotations

import ast
import collections
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Folders that define what a method is put together from, as they are called now and were called once.
PARTS = ("algorithms", "channels", "links", "problems", "networks/walks.py")
# Where methods are run by name, which is what an experiment is for.
EXPERIMENTS = ("paper", "experiments", "comparison/field_methods.py")

SIMULATE = """
import os, sys
import roundelay as rl
problem, network = rl.paper_least_squares(agents=5, samples=4), rl.ring(5)
files = set()
def note(frame, event, argument):
    files.add(frame.f_code.co_filename)
sys.setprofile(note)
rl.simulate(rl.IADMM(), problem, network, hops=20, progress=False, engine="python")
sys.setprofile(None)
engine = os.path.join("roundelay", "engine", "")
# The loop runs as part of the module that is put together, so that its own file is not seen.
print(len({file for file in files if engine in file and not file.endswith("__init__.py")}) + 1)
"""


@dataclass(frozen=True)
class House:
    """One state of the project, in a folder."""

    folder: Path

    @property
    def package(self) -> Path:
        """The package itself."""
        return self.folder / "src" / "roundelay"

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        """Every module by its path in the package."""
        paths = sorted(path for path in self.package.rglob("*.py") if path.name != "__init__.py")
        return {str(path.relative_to(self.package)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}

    def lines(self, path: str) -> int:
        """How long a file of the project is; 0 where it is not there."""
        file = self.folder / path
        return len(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else 0

    def short_modules(self) -> int:
        """Modules under 50 lines."""
        return sum(self.lines(f"src/roundelay/{path}") < 50 for path in self.modules)

    def largest_folder(self) -> int:
        """The modules of the folder that has most."""
        return max(collections.Counter(str(Path(path).parent) for path in self.modules).values())

    def long_signatures(self) -> int:
        """Functions with nine arguments or more; not the commands, whose arguments are their options, nor overloads."""
        found = 0
        for path, tree in self.modules.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not path.startswith("cli"):
                    overload = any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
                    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    found += len(arguments) >= 9 and not overload
        return found

    def questions_to_parts(self) -> int:
        """`isinstance` on a class that a method or a problem is put together from."""
        kinds = {
            node.name
            for path, tree in self.modules.items()
            if path.startswith(PARTS)
            for node in tree.body
            if isinstance(node, ast.ClassDef)
            and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        }
        calls = (node for tree in self.modules.values() for node in ast.walk(tree) if _asks(node))
        return sum(bool(kinds & _names(call.args[1])) for call in calls)

    def places_of_one_algorithm(self) -> int:
        """Lines that name the class of I-ADMM, in code or as an entry of a list, besides the experiments that run it."""
        places = set()
        for path in sorted(self.package.rglob("*.py")):
            own = str(path.relative_to(self.package))
            if not own.startswith(EXPERIMENTS):
                tree = ast.parse(path.read_text(encoding="utf-8"))
                places |= {(own, node.lineno) for node in ast.walk(tree) if _named(node, "IADMM")}
        return len(places)

    def engine_modules(self) -> int:
        """Modules of the engine whose code one call of `rl.simulate` runs."""
        settings = os.environ | {"PYTHONPATH": str(self.folder / "src")}
        run = subprocess.run([sys.executable, "-c", SIMULATE], env=settings, capture_output=True, text=True, check=True)
        return int(run.stdout)

    def same_file_names(self) -> int:
        """File names that occur more than once."""
        return _several(Path(path).name for path in self.modules)

    def same_public_names(self) -> int:
        """Public classes and functions whose name occurs in more than one module."""
        kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        return _several(
            name
            for tree in self.modules.values()
            for name in {node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")}
        )


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"


def _names(node: ast.AST) -> set[str]:
    return {part.id if isinstance(part, ast.Name) else part.attr for part in ast.walk(node) if hasattr(part, "ctx") and not isinstance(part, ast.Tuple | ast.List)}  # fmt: skip


def _named(node: ast.AST, name: str) -> bool:
    own = getattr(node, "name", None) or getattr(node, "id", None) or getattr(node, "attr", None)
    return own == name or (isinstance(node, ast.Constant) and node.value == name)


def _several(names: Iterator[str]) -> int:
    return sum(count > 1 for count in collections.Counter(names).values())


ROWS: tuple[tuple[str, Callable[[House], int], int | None], ...] = (
    ("modules", lambda house: len(house.modules), 220),
    ("modules under 50 lines", House.short_modules, 20),
    ("modules in the largest flat folder", House.largest_folder, 18),
    ("functions with nine arguments or more", House.long_signatures, 5),
    ("isinstance on parts", House.questions_to_parts, 8),
    ("places that name I-ADMM", House.places_of_one_algorithm, 2),
    ("lines of a token method with its own visit", lambda house: house.lines("examples/own_token_method.py"), 70),
    ("lines of a Huber problem", lambda house: house.lines("examples/huber_problem.py"), 120),
    ("engine modules on the way of rl.simulate", House.engine_modules, 8),
    ("file names that occur twice", House.same_file_names, None),
    ("public names that occur twice", House.same_public_names, None),
    ("lines of the README", lambda house: house.lines("README.md"), 120),
)


def main() -> None:
    """Measure the working tree, and the commits that are named, side by side."""
    top = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as scratch:
        houses = [(commit, House(_checked_out(top, commit, Path(scratch) / commit))) for commit in sys.argv[1:]]
        houses.append(("now", House(top)))
        print(f"{'':45}" + "".join(f"{name[:9]:>11}" for name, _ in houses) + f"{'goal':>8}")
        missed = 0
        for words, measure, goal in ROWS:
            values = [measure(house) for _, house in houses]
            missed += goal is not None and not 0 < values[-1] <= goal
            shown = "".join(f"{value or 'none':>11}" for value in values)
            print(f"{words:45}{shown}{'' if goal is None else f'≤ {goal}':>8}")
    sys.exit(1 if missed else 0)


def _checked_out(top: Path, commit: str, target: Path) -> Path:
    target.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=top, check=False, capture_output=True)
    if archive.returncode != 0:
        sys.exit(f"There is no commit {commit!r} here: give one that git log shows.")
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
    return target


if __name__ == "__main__":
    main()
