"""The targets of `core train` that have options of their own."""
