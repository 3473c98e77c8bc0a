"""Models whose answers are spans of a passage: network, rows, per-passage reader, iterative answerer, fast loop."""
