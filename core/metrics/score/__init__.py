"""`score`: the official metrics of a prediction file against a reference file."""
