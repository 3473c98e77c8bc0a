"""Models whose answers are spans of a passage: network, rows, the per-passage reader, the iterative answerer, its fast loop."""
