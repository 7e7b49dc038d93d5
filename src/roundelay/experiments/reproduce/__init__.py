"""The paper, reproduced and judged: every figure, every claim, and what holds."""
