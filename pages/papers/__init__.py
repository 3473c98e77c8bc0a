"""The Papers page: the papers' worked examples and tables, to try and to repeat."""
