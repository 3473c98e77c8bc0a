"""Storage: SQLite or PostgreSQL through SQLAlchemy, behind one door (`storage.store.Store`)."""
