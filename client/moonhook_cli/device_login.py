"""Logs in by device code (RFC 8628): a person approves in a browser."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from moonhook_cli.errors import CommandError, NotAllowedError
from moonhook_cli.redaction import hide
from moonhook_cli.server import Server, document_of, problem_of

CLIENT_ID = "moonhook-cli"
_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
_SLOW_DOWN_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Started:
    device_code: str
    user_code: str
    address: str
    address_with_code: str
    interval_seconds: float


def start_login(server: Server, scopes: str) -> Started:
    form = {"client_id": CLIENT_ID, "scope": scopes}
    response = server.request("POST", "/oauth/device_authorization", form=form, authenticated=False)
    document = document_of(response)
    if response.status_code != HTTPStatus.OK or "device_code" not in document:
        if document.get("error") == "invalid_scope":
            message = str(document.get("error_description", "Unknown scope."))
            raise CommandError(message, "Give names of scopes, as --scope ReadScripts.")
        raise problem_of(response)
    hide(document["device_code"])
    address = document["verification_uri"]
    return Started(
        device_code=document["device_code"],
        user_code=document["user_code"],
        address=address,
        address_with_code=document.get("verification_uri_complete", address),
        interval_seconds=document.get("interval", 5),
    )


def wait_for_approval(
    server: Server, started: Started, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Any]:
    """The answer with ``key``, ``secret`` and ``access_token``, once a person has approved."""
    interval = started.interval_seconds
    form = {
        "grant_type": _GRANT_TYPE,
        "client_id": CLIENT_ID,
        "device_code": started.device_code,
    }
    while True:
        sleep(interval)
        response = server.request("POST", "/oauth/token", form=form, authenticated=False)
        document = document_of(response)
        if response.status_code == HTTPStatus.OK and {"key", "secret"} <= document.keys():
            hide(document["secret"])
            hide(document["access_token"])
            return document
        match document.get("error"):
            case "authorization_pending":
                continue
            case "slow_down":
                interval += _SLOW_DOWN_SECONDS
            case "access_denied":
                raise NotAllowedError(
                    "The login was refused.", "Start again, and approve it in the browser."
                )
            case "expired_token" | "invalid_grant":
                raise NotAllowedError("The code has expired.", "Start again: moonhook login URL")
            case _:
                raise problem_of(response)
