"""Django's SQLite backend, made to say the same thing again at less cost."""
