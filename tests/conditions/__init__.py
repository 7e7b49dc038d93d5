"""Tests of the network's conditions: loss, noise, latency, and agents that take their time."""
