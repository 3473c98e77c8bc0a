"""What systems share: the run skeleton, options, the loop, selection, interpretations."""
