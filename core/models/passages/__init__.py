"""Joint passage reranking: the scorers for tree decoding, and the trained network."""
