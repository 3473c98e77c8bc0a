"""Disambiguated questions from a prompt question and an answer: candidate edits, the round trip, and the clarifiers."""
