"""gunicorn with what it lacks: no connection is lost when workers come and go, none takes long.

Each worker listens at a socket of its own, so that the kernel spreads connections evenly; but all
of these sockets belong to the parent, and outlive the workers. See docs/operate.md.
"""
