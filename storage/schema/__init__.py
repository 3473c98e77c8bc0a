"""The database itself: engine and transactions, tables, and the upgrade of older files."""
