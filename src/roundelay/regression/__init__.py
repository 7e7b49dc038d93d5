"""A regression over rows that many sites hold: formula, families, fit by sums, and the table with standard errors."""
