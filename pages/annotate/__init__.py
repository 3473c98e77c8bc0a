"""Annotate: write, validate and judge answer sets."""
