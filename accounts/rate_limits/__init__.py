"""Rate limits: their windows, and the storages that count."""
