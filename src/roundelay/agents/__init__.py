"""The same algorithms between real machines: agents that hand the token round a ring."""
