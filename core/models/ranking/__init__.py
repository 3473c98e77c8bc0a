"""What orders and checks candidates: their features, the reranker, second readings, and the verifiers."""
