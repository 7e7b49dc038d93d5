"""Tests of graphs, cycles and walks."""
