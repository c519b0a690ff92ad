"""Marks the root of the benchmark catalogue."""
