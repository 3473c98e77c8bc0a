"""The database itself: engine and transactions, tables, creation, and the check of a backup."""
