"""Ranking: passages that complement one another, calibrated probabilities, RECTIFY's evidence, and whether a question is ambiguous."""
