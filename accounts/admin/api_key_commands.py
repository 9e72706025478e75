"""What to do first with an API key: commands to paste into a shell."""

from dataclasses import dataclass

from django.conf import settings

from accounts.models import ApiKey
from core.admin.issuing import curl, json_body

SECRET_PLACE = "<secret>"  # noqa: S105  (what stands in its place)
_QUERY = "{ organisation { name } scripts { totalCount } }"


@dataclass(frozen=True, slots=True)
class FirstQuery:
    session: str
    """Opens a session and shows the answer."""
    query: str
    """Opens one and keeps its token, for a query that it then makes."""


def first_query_of(api_key: ApiKey, secret: str = SECRET_PLACE) -> FirstQuery:
    login = {"uid": api_key.key, "password": secret, "credential": "ApiKey"}
    session = curl(f"{settings.PUBLIC_URL}/session", *json_body(login))
    query = curl(f"{settings.PUBLIC_URL}/admin/graphql", *json_body({"query": _QUERY}))
    # sed is wherever sh is; jq is not.
    token = "TOKEN=$(" + session + " \\\n  | sed -n 's/.*\"\\(mhx_[0-9A-Za-z]*\\)\".*/\\1/p')"
    return FirstQuery(
        session, f'{token}\n\n{query} \\\n  -H "Authorization: Bearer $TOKEN"\n'.rstrip("\n")
    )
