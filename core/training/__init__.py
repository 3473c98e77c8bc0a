"""Training: examples, objectives and the loop behind `python -m core train`."""
