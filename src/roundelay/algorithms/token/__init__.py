"""Token methods by name."""
