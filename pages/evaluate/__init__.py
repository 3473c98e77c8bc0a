"""Evaluate: runs, comparisons, leaderboard and charts."""
