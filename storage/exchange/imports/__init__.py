"""Files that come in: layouts, checked rows, predictions and questions of other programs."""
