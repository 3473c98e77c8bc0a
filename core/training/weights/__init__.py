"""Arithmetic on trained weights: averaging and merging."""
