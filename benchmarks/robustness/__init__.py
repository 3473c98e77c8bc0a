"""Attacks that take minutes: each `python -m benchmarks.robustness.NAME` prints what it did and what went wrong.  All of it on 127.0.0.1."""
