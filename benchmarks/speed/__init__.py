"""Seconds and memory, as ratios within one run."""
