"""Shared by several systems: options and the loop, candidates, clarification, and base classes."""
