"""Choosing settings on practice questions held out from training; never on a test set."""
