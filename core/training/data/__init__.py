"""From files to training examples: mixtures, mining, statements, chunks, held-out questions."""
