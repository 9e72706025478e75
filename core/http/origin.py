"""The origin of a request, as flows and the audit log see it."""

from dataclasses import dataclass

from django.http import HttpRequest

from core.http.client_address import client_address
from core.http.request_id import request_id_of

MAX_USER_AGENT_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Origin:
    """The client's address (``""`` if unknown), its User-Agent and the request's id."""

    client_address: str = ""
    user_agent: str = ""
    request_id: str = ""


NOWHERE = Origin()


def origin_of(request: HttpRequest) -> Origin:
    user_agent = request.headers.get("User-Agent", "")
    return Origin(
        client_address=client_address(request),
        user_agent=user_agent[:MAX_USER_AGENT_LENGTH],
        request_id=request_id_of(request),
    )
