"""Confidence intervals and paired significance tests."""
