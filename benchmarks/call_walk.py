"""Counts the product files that a webhook call crosses: `python benchmarks/call_walk.py [--files]`.

Calls the application in this process, without a web server, on SQLite, after two calls that warm
its caches, and traces the third, until its reply is closed. The sandbox's child is another process
and is not counted. The signed call is one of a GitHub hook that limits its calls and recognises
repeated deliveries.
"""

import io
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import django

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
DIRECTORY = tempfile.TemporaryDirectory(prefix="moonhook-bench-")
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "DATABASE_URL": f"sqlite:///{DIRECTORY.name}/moonhook.sqlite3",
    "MOONHOOK_DATA_DIR": DIRECTORY.name,
    "LOG_LEVEL": "ERROR",
    "ALLOWED_HOSTS": "127.0.0.1",
}
django.setup()

from django.core.management import call_command  # noqa: E402

from benchmarks.comparison.order import ORDER, SOURCE  # noqa: E402
from config.wsgi import application  # noqa: E402
from scripts_engine.sandbox_pool import sandbox_pool  # noqa: E402
from tests import factories  # noqa: E402
from tests.hooks import github  # noqa: E402

PRODUCT = ("accounts", "config", "core", "hooks", "jobs", "scripts_engine", "sessions_api")
WARM_UPS = 2


def environ(path: str, number: int) -> dict[str, Any]:
    """A call with a body of its own, so that no delivery repeats another."""
    body = json.dumps({**ORDER, "number": number}).encode()
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "RAW_URI": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_X_HUB_SIGNATURE_256": github.signed(body)["X-Hub-Signature-256"],
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.url_scheme": "http",
    }


def call(path: str, number: int) -> None:
    statuses: list[str] = []
    reply: Any = application(environ(path, number), lambda status, headers: statuses.append(status))
    b"".join(reply)
    reply.close()
    assert statuses == ["200 OK"], statuses


def files_of_call(path: str) -> list[str]:
    """The files of the product whose functions a warm call enters, in the order of first entry."""
    for number in range(WARM_UPS):
        call(path, number)
    crossed: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            crossed[frame.f_code.co_filename] = None

    sys.setprofile(note)
    try:
        call(path, WARM_UPS)
    finally:
        sys.setprofile(None)
    ours = [Path(name).relative_to(ROOT) for name in crossed if name.startswith(f"{ROOT}/")]
    return [str(path) for path in ours if path.parts[0] in PRODUCT]


def paths() -> dict[str, str]:
    """The paths of a hook without rules, and of one whose sender signs its calls."""
    acme = factories.make_organisation("Acme")
    plain = factories.make_hook(factories.make_script(acme, SOURCE))
    signed = github.make_github(acme)
    factories.set_rules(signed.hook, idempotency="body-hash", calls_per_minute=6_000)
    return {"plain": github.path_of(plain), "signed": github.path_of(signed)}


def main() -> None:
    with DIRECTORY:
        call_command("migrate", verbosity=0)
        for name, path in paths().items():
            files = files_of_call(path)
            folders = Counter(str(Path(file).parent) for file in files)
            sys.stdout.write(f"{name}: {len(files)} files in {len(folders)} folders\n")
            for folder, number in sorted(folders.items()):
                sys.stdout.write(f"  {number:3}  {folder}\n")
            if "--files" in sys.argv[1:]:
                sys.stdout.write("".join(f"       {file}\n" for file in files))
        sandbox_pool().close()


if __name__ == "__main__":
    main()
