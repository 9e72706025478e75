"""Shell commands that show how to use an API key."""

from dataclasses import dataclass

from django.conf import settings

from accounts.models import ApiKey
from core.admin.issuing import curl, json_body

_SECRET_PLACEHOLDER = "<secret>"  # noqa: S105
_QUERY = "{ organisation { name } scripts { totalCount } }"


@dataclass(frozen=True, slots=True)
class ApiKeyCommands:
    session: str
    """Opens a session and prints the response."""
    query: str
    """Opens a session, stores its token and sends a query."""


def commands_of(api_key: ApiKey, secret: str = _SECRET_PLACEHOLDER) -> ApiKeyCommands:
    login = {"uid": api_key.key, "password": secret, "credential": "ApiKey"}
    session = curl(f"{settings.PUBLIC_URL}/session", *json_body(login))
    query = curl(f"{settings.PUBLIC_URL}/admin/graphql", *json_body({"query": _QUERY}))
    # Unlike jq, sed is available on every POSIX system.
    token = "TOKEN=$(" + session + " \\\n  | sed -n 's/.*\"\\(mhx_[0-9A-Za-z]*\\)\".*/\\1/p')"
    return ApiKeyCommands(session, f'{token}\n\n{query} \\\n  -H "Authorization: Bearer $TOKEN"')
