"""Tests of the bottom layer: random draws, and how kernel functions are put together."""
