"""What several systems share: options and the loop, candidates, clarification, and the frames of each family."""
