"""The database backend that starts the embedded PostgreSQL at the first connection."""
