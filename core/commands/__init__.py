"""The subcommands of `python -m core`: one module each (those of servers in a folder), with `add_parser(commands)`."""

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
    "push",
    "train",
    "servers.lm_server",
    "servers.serve",
    "servers.mcp",
)
