"""The parts that systems share: the run skeleton, options, the loop, selection, interpretations."""
