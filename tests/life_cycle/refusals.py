"""Requests that are refused before their bodies are read."""

import uuid
from typing import NamedTuple

from tests.moonhook_server import MoonhookServer
from tests.sessions import graphql, machine_token

_CREATE = 'mutation($n: String!) { createScript(name: $n, source: "return 1") { id } }'
_ISSUE = "mutation($id: ID!) { createHook(script: $id) { hook { id url } } }"
_CHANGE = """mutation($id: ID!, $networks: [String!], $methods: [String!], $bytes: Int) {
    updateHook(id: $id, allowedNetworks: $networks, methods: $methods, maxBodyBytes: $bytes) {
        id } }"""
_ELSEWHERE = {"networks": ["192.0.2.0/24"], "methods": ["POST"], "bytes": 1000}
_GET_ONLY = {"networks": [], "methods": ["GET"], "bytes": 1000}
_SMALL = {"networks": [], "methods": ["POST"], "bytes": 1000}
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_TEXT = "text/plain"


class Refusal(NamedTuple):
    method: str
    path: str
    status: int
    content_type: str = _JSON
    host: str | None = None
    """The Host header, where that is not what the address says."""


# Of fixed paths, by reason.
REFUSALS = {
    "unknown path": Refusal("POST", "/nowhere", 404),
    "unknown hook": Refusal("POST", f"/hook/{'a' * 22}/{'b' * 22}/mhc_{'c' * 30}", 404),
    "no authentication": Refusal(
        "POST",
        "/hook/secure/6f5902ac-237e-4d1c-a7c0-5cd0ba2c2cf9/6f5902ac-237e-4d1c-a7c0-5cd0ba2c2cf9",
        401,
    ),
    "method of the session": Refusal("PUT", "/session", 405),
    "media type of the session": Refusal("POST", "/session", 415, _TEXT),
    "size for the session": Refusal("POST", "/session", 413),
    "look-up of a session": Refusal("GET", "/session", 401),
    "method of GraphQL": Refusal("PUT", "/user/graphql", 405),
    "media type of GraphQL": Refusal("POST", "/user/graphql", 415, _TEXT),
    "size for GraphQL": Refusal("POST", "/user/graphql", 413),
    "no session for the admin's GraphQL": Refusal("POST", "/admin/graphql", 401),
    "CSRF token": Refusal("POST", "/admin/login/", 403, _FORM),
    "page of the admin": Refusal("POST", "/admin/accounts/user/", 403, _FORM),
    "method of a page": Refusal("POST", "/healthz", 405),
    "host": Refusal("POST", "/healthz", 400, host="elsewhere.example"),
}
# Of hooks, which a server must make first.
HOOK_REFUSALS = ("wrong token", "wrong network", "wrong method", "size for the hook")


def hook_refusals(server: MoonhookServer) -> dict[str, Refusal]:
    admin = f"{server.url}/admin/graphql"
    token = machine_token(server)
    script = graphql(admin, _CREATE, token, n=uuid.uuid4().hex)["createScript"]["id"]

    def hook_path(**limits: object) -> str:
        hook = graphql(admin, _ISSUE, token, id=script)["createHook"]["hook"]
        graphql(admin, _CHANGE, token, id=hook["id"], **limits)
        url: str = hook["url"]
        return url[url.index("/hook/") :]

    right = hook_path(**_SMALL)
    wrong = f"{right[:-1]}{'a' if right[-1] != 'a' else 'b'}"
    refusals = (
        Refusal("POST", wrong, 404),
        Refusal("POST", hook_path(**_ELSEWHERE), 404),
        Refusal("POST", hook_path(**_GET_ONLY), 405),
        Refusal("POST", right, 413),
    )
    return dict(zip(HOOK_REFUSALS, refusals, strict=True))
