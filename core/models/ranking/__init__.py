"""Reranking and verifying candidates: features, the reranker, second readings, and the verifiers."""
