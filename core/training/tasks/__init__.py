"""What is trained: one task a file, each with its examples and its loss."""
