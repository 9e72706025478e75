"""Creates hooks to call, and looks up their runs."""

import json

from tests.moonhook_server import MoonhookServer
from tests.node import new_hook
from tests.sessions import machine_token

QUICK = 'return "quick"'
_RUN_IDS = (
    "import json; from scripts_engine.models import Run; "
    "print(json.dumps([str(run) for run in Run.objects.values_list('pk', flat=True)]))"
)


def hook_path_of(server: MoonhookServer, source: str = QUICK, organisation: str = "Acme") -> str:
    """The path of a hook of a new organisation whose script may run as long as any may."""
    return new_hook(server, machine_token(server, organisation), source)[1]


def hook_of(server: MoonhookServer, source: str = QUICK, organisation: str = "Acme") -> str:
    """The URL of such a hook."""
    return f"{server.url}{hook_path_of(server, source, organisation)}"


def run_ids(server: MoonhookServer) -> list[str]:
    """Of every run in the database, whether the server runs or not."""
    ids: list[str] = json.loads(server.manage("shell", "--no-imports", "-c", _RUN_IDS))
    return ids
