"""Whatever has a view shows it in a notebook, and typesets its tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roundelay.shown.latex import as_latex
from roundelay.shown.notebook import View, as_html
from roundelay.shown.provenance import provenance
from roundelay.shown.table import Table, table_of

if TYPE_CHECKING:
    import pandas as pd


class Shown:
    """What shows itself, by its `view`; `made` says from which seeds and parameters it came."""

    __slots__ = ()

    def view(self) -> View:
        """Words, tables and small curves."""
        raise NotImplementedError

    def made(self) -> dict[str, Any]:
        """What is said of it in files beside the command and the versions."""
        return {}

    def _repr_html_(self) -> str:
        return str(as_html(self.view()))

    def to_latex(self, caption: str = "", label: str = "", table: int = 0) -> str:
        """A table for a paper, with booktabs, by default the first; in comments how it was made."""
        tables = self.view().tables
        if not 0 <= table < len(tables):
            raise ValueError(f"There is no table {table} here: there are {len(tables)}, numbered from 0.")
        return _typeset(tables[table], caption, label, self.made())


def to_latex(shown: Shown | Table | pd.DataFrame, caption: str = "", label: str = "", digits: int = 4) -> str:
    """Anything that has a table, or a data frame such as a run's history or a sweep's rows, as LaTeX with booktabs."""
    if isinstance(shown, Shown):
        return shown.to_latex(caption, label)
    return _typeset(shown if isinstance(shown, Table) else table_of(shown, digits=digits), caption, label, {})


def _typeset(table: Table, caption: str, label: str, made: dict[str, Any]) -> str:
    return as_latex(replace(table, caption=caption or table.caption), provenance(**made), label)
