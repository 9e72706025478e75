"""Starting the floors."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.comparison.servers import ROOT, Server, Size, free_port, serving

CONFIGURATION = Path(__file__).with_name("gunicorn_conf.py")
PACKAGE = "benchmarks.comparison.floors"
FLOOR = "Django view (floor)"


@contextmanager
def floor(
    name: str, module: str, size: Size, directory: Path, **environment: str
) -> Iterator[Server]:
    """The module's WSGI application under gunicorn."""
    port = free_port()
    with serving(
        name,
        [sys.executable, "-m", "gunicorn", "-c", CONFIGURATION, f"{PACKAGE}.{module}"],
        port=port,
        log=directory / f"{module}-{port}.log",
        environment=os.environ
        | {"PORT": str(port), "WORKERS": str(size.workers), "THREADS": str(size.threads)}
        | environment,
    ) as server:
        yield server


def knox_token(database_url: str) -> str:
    """A token of the knox project, whose database it makes."""
    finished = subprocess.run(
        [sys.executable, "-m", f"{PACKAGE}.knox_project"],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": database_url},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return finished.stdout.strip()
