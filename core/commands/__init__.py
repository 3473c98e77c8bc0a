"""The subcommands of `python -m core`: one module each, with `add_parser(commands)`."""

COMMANDS = (
    "ask",
    "index",
    "systems",
    "score",
    "evaluate",
    "compare",
    "retrieval_eval",
    "datasets",
    "download",
    "train",
    "serve",
    "mcp",
)
