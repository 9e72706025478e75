"""gunicorn extended: restarts lose no connection, and slow clients hold no thread.

Each worker listens on a socket of its own, so that the kernel spreads connections evenly. The
parent owns all of these sockets, so they outlive the workers. See docs/operate.md.
"""
