"""The engine as a service over HTTP, and the engine of those who ask such a service instead of loading models."""
