"""The commands of `python -m storage`, a file each: `add_parser`, and `run`, which gives what is printed."""
