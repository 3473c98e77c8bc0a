"""Passages and what finds them: corpora and their library, readers of files, dense and BM25 indexes, and the search that joins them."""
