"""Connections: the language model that is configured, and the service of this installation."""
