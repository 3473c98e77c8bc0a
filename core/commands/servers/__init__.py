"""Commands that start a server and stay: the engine over HTTP, a small language model."""
