"""Creates hooks to call, and looks up their runs."""

import json

from tests.moonhook_server import MoonhookServer
from tests.sessions import graphql, machine_token

QUICK = 'return "quick"'
# os.time has whole seconds: between 3 and 4.
TAKES_3_SECONDS = 'local ends = os.time() + 4 while os.time() < ends do end return "slow"'
_CREATE = 'mutation($s: String!) { createScript(name: "s", source: $s) { id } }'
_ISSUE = "mutation($id: ID!) { createHook(script: $id) { hook { url } } }"
_RUN_IDS = (
    "import json; from scripts_engine.models import Run; "
    "print(json.dumps([str(run) for run in Run.objects.values_list('pk', flat=True)]))"
)


def hook_of(server: MoonhookServer, source: str = QUICK, organisation: str = "Acme") -> str:
    admin = f"{server.url}/admin/graphql"
    token = machine_token(server, organisation)
    script = graphql(admin, _CREATE, token, s=source)["createScript"]
    url: str = graphql(admin, _ISSUE, token, id=script["id"])["createHook"]["hook"]["url"]
    return url


def run_ids(server: MoonhookServer) -> list[str]:
    """Of every run in the database, whether the server runs or not."""
    ids: list[str] = json.loads(server.manage("shell", "--no-imports", "-c", _RUN_IDS))
    return ids
