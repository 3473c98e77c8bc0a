"""Explore: ask a question and watch its answers being found."""
