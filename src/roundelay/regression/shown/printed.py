"""A result as text, for a terminal or a log."""

from __future__ import annotations

from roundelay.regression.result import Result
from roundelay.regression.shown.tables import facts, tables_of
from roundelay.shown.numbers import printable
from roundelay.shown.table import GAP, in_lines, printed_table


def printed(result: Result) -> str:
    """All that a result says."""
    title = f"Regression of {printable(result.response)} over {len(result.sites)} sites"
    blocks = [f"{title}\n{'═' * len(title)}\n{_head(result)}"]
    blocks += [printed_table(table) for table in tables_of(result)]
    if result.notes:
        blocks.append("Notes\n" + "\n".join(in_lines(note, "• ") for note in result.notes))
    return "\n\n".join(blocks) + "\n"


def _head(result: Result) -> str:
    """The formula and the sites in lines of their own, the other facts in two columns."""
    wide = [("Formula", result.formula), ("Standard errors", result.errors), ("Sites", ", ".join(result.sites))]
    pairs = [(name, said) for name, said in facts(result) if name not in dict(wide)]
    half = -(-len(pairs) // 2)
    left, right = _columns(pairs[:half]), _columns(pairs[half:])
    lines = [in_lines(said, f"{name}: ") for name, said in wide if said]
    width = max(map(len, left), default=0)
    right += [""] * (len(left) - len(right))
    return "\n".join(
        [*lines, *((f"{one:<{width}}{GAP}  {other}").rstrip() for one, other in zip(left, right, strict=True))]
    )


def _columns(pairs: list[tuple[str, str]]) -> list[str]:
    pairs = [(printable(name), printable(said)) for name, said in pairs]
    names = max((len(name) for name, _ in pairs), default=0) + 1
    values = max((len(said) for _, said in pairs), default=0)
    return [f"{name + ':':<{names}} {said:>{values}}" for name, said in pairs]
