"""Django's PostgreSQL backend with recovery from lost connections and statement deadlines."""
