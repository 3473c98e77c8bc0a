"""Training examples from files: mixtures, mining, statements, chunks, held-out questions."""
