"""Ranking: complementary passages, calibrated probabilities, RECTIFY's evidence, and question ambiguity."""
