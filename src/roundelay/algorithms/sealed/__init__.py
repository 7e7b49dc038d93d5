"""Sealed laps: one lap is one sum under masks, and a public optimiser moves the point between laps."""
