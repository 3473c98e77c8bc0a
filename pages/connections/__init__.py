"""Connections: the configured language model, and this installation's service."""
