"""Corpora: upload, build and search documents."""
