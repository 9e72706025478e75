"""Sends requests to a running server."""

import http.client
import json
import uuid
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from tests.moonhook_server import MoonhookServer

# Only a failure takes so long: a machine that is busy with something else is slow, not wrong.
ANSWER_SECONDS = 120


def call(
    method: str, url: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    """Status, body and headers of one request; an iterator as body is sent in chunks."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=ANSWER_SECONDS
    )
    with closing(connection):
        connection.request(method, url.removeprefix(f"http://{parts.netloc}"), body, headers or {})
        response = connection.getresponse()
        return response.status, response.read(), response.headers


def post_json(url: str, body: object, token: str = "") -> Any:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    status, content, _ = call("POST", url, json.dumps(body).encode(), headers)
    assert status in {200, 201}, content
    return json.loads(content)


def graphql(url: str, query: str, token: str = "", **variables: object) -> Any:
    """The data of a document that must have no errors."""
    answer = post_json(url, {"query": query, "variables": variables}, token)
    assert "errors" not in answer, answer
    return answer["data"]


def open_session(moonhook: MoonhookServer, **login: str) -> Any:
    return post_json(f"{moonhook.url}/session", login)


def machine_token(moonhook: MoonhookServer, organisation: str = "Acme") -> str:
    """The bearer token of a session of a new key of a new organisation, whose name is made unique.

    Servers are shared by tests.
    """
    organisation = f"{organisation} {uuid.uuid4()}"
    made = json.loads(moonhook.manage("create_organisation", organisation, "--json"))
    key = json.loads(
        moonhook.manage("create_api_key", "--organisation", made["id"], "--name", "k", "--json")
    )
    session = open_session(
        moonhook, credential="ApiKey", uid=key["key"], password=key["secret"], email="a@b.example"
    )
    assert session["organisation"] == {"id": made["id"], "name": organisation}
    return str(session["token"])
