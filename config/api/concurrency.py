"""The limit on GraphQL documents in execution, for both endpoints together."""

from django.conf import settings
from django.http import HttpRequest

from core.http.bulkhead import Bulkhead
from core.http.client_address import client_address, network_of
from sessions_api.models import Session

documents = Bulkhead(
    "graphql",
    limit=settings.GRAPHQL_AT_ONCE,
    limit_per_key=settings.GRAPHQL_AT_ONCE_PER_ORGANISATION,
    max_waiting=settings.GRAPHQL_WAITING,
    wait_seconds=settings.GRAPHQL_WAIT_SECONDS,
)


def holder_of(request: HttpRequest, session: Session | None) -> str:
    """Return the key of a document's place: its organisation, user, or client network."""
    if session is None:
        return f"client {network_of(client_address(request))}"
    if session.api_key is not None:
        return f"organisation {session.api_key.organisation_id}"
    return f"user {session.device_token.user_id}"  # type: ignore[union-attr]
