"""A result as text, for a terminal or a log."""

from __future__ import annotations

from textwrap import wrap

from roundelay.regression.result import Result
from roundelay.regression.shown.numbers import printable
from roundelay.regression.shown.tables import Table, facts, tables_of

# What stands in a line at most, where words can be broken.
WIDTH = 92
GAP = "   "


def printed(result: Result) -> str:
    """All that a result says."""
    title = f"Regression of {printable(result.response)} over {len(result.sites)} sites"
    blocks = [f"{title}\n{'═' * len(title)}\n{_head(result)}"]
    blocks += [printed_table(table) for table in tables_of(result)]
    if result.notes:
        blocks.append("Notes\n" + "\n".join(_indented(note, "• ") for note in result.notes))
    return "\n\n".join(blocks) + "\n"


def _head(result: Result) -> str:
    """The formula and the sites in lines of their own, the other facts in two columns."""
    wide = [("Formula", result.formula), ("Standard errors", result.errors), ("Sites", ", ".join(result.sites))]
    pairs = [(name, said) for name, said in facts(result) if name not in dict(wide)]
    half = -(-len(pairs) // 2)
    left, right = _columns(pairs[:half]), _columns(pairs[half:])
    lines = [_indented(said, f"{name}: ") for name, said in wide if said]
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


def _indented(words: str, head: str) -> str:
    return "\n".join(
        wrap(printable(words), WIDTH, initial_indent=head, subsequent_indent=" " * min(len(head), 18)) or [head]
    )


def printed_table(table: Table) -> str:
    """Words at the left, numbers at the right, their points one below the other."""
    rows = [[*map(printable, row)] for row in (table.header, *table.aligned())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *body = (
        GAP.join(
            f"{cell:{'<' if place < table.words else '>'}{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    rule = "─" * max(map(len, (head, *body)))
    caption = [_indented(table.caption, "")] if table.caption else []
    return "\n".join([table.title, rule, head, rule, *body, rule, *caption])
