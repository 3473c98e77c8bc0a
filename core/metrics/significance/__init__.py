"""Intervals and paired tests: how far a figure or a difference can be trusted."""
