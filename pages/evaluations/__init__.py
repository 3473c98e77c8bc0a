"""What Evaluate is made of: leaderboard, charts, comparison, rows, judges, and starting a run."""
