"""Disambiguated questions: drafts, the round trip, their score, and their consolidation."""
