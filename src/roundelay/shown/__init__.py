"""How whatever has results shows them: as tables in text, in LaTeX and in a notebook, and with a word of how they were made."""
