"""Votes and consensus, the dump, backups; exports and imports have their own folders."""
