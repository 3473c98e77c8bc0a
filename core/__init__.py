"""Ambiscope's core: retrieval, models, systems, metrics and training. Knows no user interface and no database."""

__version__ = "0.1.0"
