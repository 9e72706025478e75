"""Runs `manage.py` as a process of its own, without importing Moonhook for each.

One process imports everything and forks for each command; the fork reads its settings again, from
its own environment. Of a command's process, that leaves out only the imports.
"""

import atexit
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent


def manage(data: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command with that data directory and nothing else of this process's environment."""
    with tempfile.TemporaryDirectory(prefix="moonhook-command-") as directory:
        outputs = [Path(directory, name) for name in ("stdout", "stderr")]
        command = {
            "arguments": ["manage.py", *arguments],
            "environment": {
                "PATH": os.environ["PATH"],
                "MOONHOOK_DATA_DIR": str(data),
                **environment,
            },
            "outputs": [str(output) for output in outputs],
        }
        server = _server()
        _pipe(server.stdin).write(json.dumps(command) + "\n")
        _pipe(server.stdin).flush()
        status = int(_pipe(server.stdout).readline())
        return subprocess.CompletedProcess(
            command["arguments"], status, *(output.read_text() for output in outputs)
        )


@cache
def _server() -> "subprocess.Popen[str]":
    server = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(server.communicate)
    return server


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _serve() -> None:
    _import_everything()
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            return _run(**json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()
    return None


def _import_everything() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django  # noqa: PLC0415

    django.setup()
    importlib.import_module("config.urls")


def _run(arguments: list[str], environment: dict[str, str], outputs: list[str]) -> None:
    """Becomes the process of the command."""
    for number, path in ((0, os.devnull), *enumerate(outputs, start=1)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    _read_settings()
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


def _read_settings() -> None:
    from django.conf import settings  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415
    from django.utils.functional import empty  # noqa: PLC0415

    importlib.reload(sys.modules["config.settings"])
    settings._wrapped = empty
    handler: Any = connections
    vars(handler).clear()
    handler.__init__()


if __name__ == "__main__":
    _serve()
