"""Alembic's entry: runs on the connection that storage.schema.creation opened, inside its transaction."""

from alembic import context

from storage.schema.base import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=True,  # true of SQLite once the driver no longer begins and commits by itself (storage.schema.engine)
)
with context.begin_transaction():
    context.run_migrations()
