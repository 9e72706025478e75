"""gunicorn's threaded workers, as many as Moonhook has, each at a socket of its own."""

import os

bind = [f"127.0.0.1:{os.environ['PORT']}"]
worker_class = "gthread"
workers = int(os.environ["WORKERS"])
threads = int(os.environ["THREADS"])
# With one socket for all, the connections that are kept often end up at one of the workers.
reuse_port = True
keepalive = 5
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
loglevel = "warning"
control_socket_disable = True
