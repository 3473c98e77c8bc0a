"""Storage: SQLite through SQLAlchemy, behind one door (`storage.store.Store`)."""

from storage.store import Store

__all__ = ["Store"]
