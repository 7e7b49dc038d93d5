"""Tests of what the agents minimise."""
