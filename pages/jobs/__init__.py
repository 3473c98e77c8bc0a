"""Jobs: work in the background, and its page."""
