"""Passage vectors that somebody else computed: their files, the checks, and how they come into a corpus."""
