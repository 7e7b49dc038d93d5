"""How results show themselves in a notebook."""

from __future__ import annotations

import html
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def as_html(words: str, table: pd.DataFrame) -> str:
    """Words with a table below them, none of which is taken for markup."""
    return f'<div style="white-space: pre-line">{html.escape(words)}</div>\n{table.to_html(index=False, escape=True, float_format="{:.3g}".format, border=0)}'


def in_notebook() -> bool:
    """Whether what this process prints is shown in the cells of a notebook, where no terminal is."""
    return "ipykernel" in sys.modules
