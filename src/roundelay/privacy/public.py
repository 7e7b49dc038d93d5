"""What everybody knows, every observer among them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundelay.algorithms.algorithm import Algorithm
from roundelay.kernels.checks import whole_number
from roundelay.tables import described, restored

FORMAT = 2


@dataclass(frozen=True)
class Public:
    """The algorithm with all its options (ρ, the distributions of γ, ω and υ, not their draws), N agents, and p.

    The draws come from a seed, and the seed is a secret: it is not in here.
    """

    algorithm: Any
    agents: int
    dim: int

    def __post_init__(self) -> None:
        if isinstance(self.algorithm, type):
            name = self.algorithm.__name__
            raise ValueError(
                f"{name} is a class, of which nothing is chosen yet: use an object of it, such as {name}()."
            )
        whole_number("The number of agents", self.agents, least=1)
        whole_number("The dimension", self.dim, least=1)

    def to_json(self) -> str:
        """As text; the algorithm as it is described in the file of a run."""
        about = {
            "public": FORMAT,
            "algorithm": described(self.algorithm, Algorithm),
            "agents": self.agents,
            "dim": self.dim,
        }
        return json.dumps(about, indent=2, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Public:
        """What `to_json` wrote."""
        try:
            about = json.loads(text)
            found = about["public"]
            table, agents, dim = about["algorithm"], about["agents"], about["dim"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"This does not describe what is public ({type(error).__name__}: {error}): write it with Public.to_json."
            ) from None
        if found != FORMAT:
            raise ValueError(
                f"What is public has the format {found}, but this version of roundelay reads {FORMAT}: use the version that wrote it."
            )
        algorithm = restored(table, "the algorithm", Algorithm)
        if not hasattr(algorithm, "parts"):
            raise ValueError(
                f"{table!r} is no algorithm of roundelay: an observer can't reason about what it doesn't know."
            )
        return Public(algorithm, agents, dim)


def save_public(public: Public, path: str | Path) -> Path:
    """Write it to a text file beside a transcript."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(public.to_json() + "\n", encoding="utf-8")
    return target


def load_public(path: str | Path) -> Public:
    """Read what `save_public` wrote."""
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"There is no file {source}: give the path of a file that save_public wrote.")
    return Public.from_json(source.read_text(encoding="utf-8"))
