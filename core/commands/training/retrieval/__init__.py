"""The targets of `core train` that find and rank passages."""
