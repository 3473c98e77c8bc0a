"""Passage retrieval: corpora and their library, file readers, dense and BM25 indexes, hybrid search."""
