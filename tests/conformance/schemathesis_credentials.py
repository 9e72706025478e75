"""Credentials for `schemathesis run`.

MOONHOOK_URL    the server
MOONHOOK_LOGIN  the body of POST /session, as JSON
MOONHOOK_BASIC  what follows "Basic " in a call of the secure webhook
"""

import json
import os
from typing import Any

import schemathesis

from tests.sessions import post_json


@schemathesis.auth(refresh_interval=None).apply_to(path_regex="^/(session$|admin/blobs/)")
class OwnSession:
    """A new one for every request, because DELETE /session ends what it is given."""

    def get(self, case: Any, context: Any) -> str:
        login = json.loads(os.environ["MOONHOOK_LOGIN"])
        return str(post_json(f"{os.environ['MOONHOOK_URL']}/session", login)["token"])

    def set(self, case: Any, token: str, context: Any) -> None:
        case.headers["Authorization"] = f"Bearer {token}"


@schemathesis.auth(refresh_interval=None).apply_to(path_regex="^/hook/secure/")
class HookCredentials:
    """HookID and call token."""

    def get(self, case: Any, context: Any) -> str:
        return os.environ["MOONHOOK_BASIC"]

    def set(self, case: Any, credentials: str, context: Any) -> None:
        case.headers["Authorization"] = f"Basic {credentials}"
