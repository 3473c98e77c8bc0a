"""The commands of `python -m storage`: one module each, with `add_parser`, and `run`, which returns the printed result."""
