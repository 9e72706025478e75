"""Opens and ends sessions of API keys."""

from http import HTTPStatus
from typing import Any

from moonhook_cli.errors import NotAllowedError
from moonhook_cli.redaction import hide
from moonhook_cli.server import Server, document_of, problem_of


def open_session(server: Server, key: str, secret: str) -> dict[str, Any]:
    """The session's document with its token. Raises ``NotAllowedError`` for a wrong pair."""
    hide(secret)
    response = server.request(
        "POST",
        "/session",
        json_body={"credential": "ApiKey", "uid": key, "password": secret},
        authenticated=False,
    )
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        raise NotAllowedError(
            "The server does not accept this key with this secret.",
            "Check both; the key may be revoked or expired. Then: moonhook login URL",
            "invalid-credentials",
        )
    if response.status_code != HTTPStatus.CREATED:
        raise problem_of(response)
    document = document_of(response)
    hide(document["token"])
    return document


def show_session(server: Server) -> dict[str, Any]:
    response = server.request("GET", "/session")
    if response.status_code == HTTPStatus.UNAUTHORIZED and server.renew_token:
        server.token = server.renew_token()
        response = server.request("GET", "/session")
    if response.status_code != HTTPStatus.OK:
        raise problem_of(response)
    return document_of(response)


def end_session(server: Server) -> None:
    """Ends the session; one that has ended already is no error."""
    response = server.request("DELETE", "/session")
    if response.status_code not in {HTTPStatus.NO_CONTENT, HTTPStatus.UNAUTHORIZED}:
        raise problem_of(response)
