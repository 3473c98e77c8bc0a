"""Attacks that take minutes: each `python -m benchmarks.robustness.NAME` prints what it did and what went wrong.  Everything runs on 127.0.0.1."""
