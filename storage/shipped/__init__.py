"""Examples to look at and to practise on, each in a separate database apart from a person's own work."""
