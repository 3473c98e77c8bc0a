"""Training of what finds and ranks passages: the retriever, and the reranker that picks passages jointly."""
