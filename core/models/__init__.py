"""Neural models: the interleaved prompting, two answering models on it, and the per-passage reader."""
