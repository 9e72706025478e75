"""Django's PostgreSQL backend, made to outlast a database that goes away."""
