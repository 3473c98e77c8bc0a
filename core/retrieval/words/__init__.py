"""BM25: over arrays for a small corpus, by Tantivy for a large one; words are cut and stemmed in one way for both."""
