"""Django's SQLite backend with queued writes and deadlines for statements."""
