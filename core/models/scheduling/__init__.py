"""Devices, memory, and the order in which threads use a model."""
