"""Tests of comparing and tuning."""
