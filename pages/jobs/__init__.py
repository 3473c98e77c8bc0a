"""Jobs: work that goes on in the background, and its page."""
