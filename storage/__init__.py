"""Storage: SQLite or PostgreSQL through SQLAlchemy, reached by `storage.store.Store` alone."""
