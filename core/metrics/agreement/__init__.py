"""Inter-annotator agreement: comparison of answer sets, chance-corrected coefficients, and their tables."""
