"""Votes and consensus, the dump, backups; exports and imports in folders of their own."""
