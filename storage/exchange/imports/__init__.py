"""Imported files: layouts, checked rows, predictions and questions of other programs."""
