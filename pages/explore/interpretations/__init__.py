"""The view of systems that end in interpretations: grid, imagined questions, map, clustering options."""
