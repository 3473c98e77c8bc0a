"""Disambiguated questions (edits, round trip), and their consolidation."""
