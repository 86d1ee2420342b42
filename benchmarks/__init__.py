"""Measurements, each a ratio to its unit in the same run. Never tests: a slow machine is not a bug."""
