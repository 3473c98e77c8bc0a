"""The view of systems that end in interpretations: grid, map, options, result."""
