"""Exported files: formats, tables, and immutable snapshots."""
