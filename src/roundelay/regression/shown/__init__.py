"""A result as people see it: tables as data, as text and as CSV; pictures; a report in one file."""
