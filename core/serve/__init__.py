"""The engine as a service over HTTP, and a client with the engine's interface that asks such a service instead of loading
models."""
