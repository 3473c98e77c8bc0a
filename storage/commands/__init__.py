"""The subcommands of `python -m storage`."""
