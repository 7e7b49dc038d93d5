"""Sealed laps in the simulator."""
