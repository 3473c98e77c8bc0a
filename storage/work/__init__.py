"""The work on an item: queue, drafts, submissions, reviews, returns, and what follows when it counts."""
