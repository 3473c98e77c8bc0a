"""Files that go out: formats, tables, and immutable snapshots."""
