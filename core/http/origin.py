"""Who makes a request and where it comes from, as flows and the audit log see it."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest

from core.http.client_address import client_address
from core.http.request_id import request_id_of

MAX_USER_AGENT_LENGTH = 300
_FIND_ACTOR = "_find_actor"


@dataclass(frozen=True, slots=True)
class Actor:
    """The authenticated author of a request, or the command that acts.

    ``id`` is public, ``label`` is its name at this moment. ``organisation_id`` is the tenant that
    it belongs to, if it belongs to one; an operator belongs to none and acts in all.
    """

    kind: str
    id: str
    label: str
    organisation_id: str = ""
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """The client's address (``""`` if unknown), its User-Agent, the request's id and its actor."""

    client_address: str = ""
    user_agent: str = ""
    request_id: str = ""
    actor: Actor | None = None


NOWHERE = Origin()


def act_as(request: HttpRequest, find_actor: Callable[[], Actor | None]) -> None:
    """Tells ``origin_of`` how to find the request's actor. Endpoints call it once per request."""
    setattr(request, _FIND_ACTOR, find_actor)


def origin_of(request: HttpRequest) -> Origin:
    user_agent = request.headers.get("User-Agent", "")
    find_actor: Callable[[], Actor | None] | None = getattr(request, _FIND_ACTOR, None)
    return Origin(
        client_address=client_address(request),
        user_agent=user_agent[:MAX_USER_AGENT_LENGTH],
        request_id=request_id_of(request),
        actor=None if find_actor is None else find_actor(),
    )
