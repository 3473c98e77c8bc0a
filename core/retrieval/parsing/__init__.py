"""Parsers of documents that are no plain text.  They run in a process of their own (worker.py) and import little, so that it starts quickly."""
