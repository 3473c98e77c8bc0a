"""Parsers for everything but plain text.  They run in a separate process (worker.py) and import little, so that it starts
quickly."""
