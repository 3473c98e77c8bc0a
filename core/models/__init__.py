"""Neural models: encoders, answering models, readers, rerankers, and language models."""
