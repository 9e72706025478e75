"""The doors' question: which session does this request present?"""

from typing import Any

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from structlog.contextvars import bind_contextvars

from accounts.models import User
from core.http.client_address import client_address
from core.http.cross_origin import is_cross_origin
from core.http.problems import Problem, ProblemCode
from sessions_api.flows.use_session import use_session
from sessions_api.models import Session
from sessions_api.presented import cookie_name, presented_token

REALM = 'Bearer realm="moonhook"'


def authenticate_session(request: HttpRequest) -> Session:
    """The request's live session. Raises the ``Problem`` that answers a request without one.

    The challenges are RFC 6750's: no error code where nothing was presented, ``invalid_token``
    where it was refused.
    """
    presented = presented_token(request)
    if presented is None:
        raise Problem(ProblemCode.NOT_AUTHENTICATED, headers={"WWW-Authenticate": REALM})
    session = use_session(presented.token, client_address(request))
    if session is None:
        raise Problem(
            ProblemCode.SESSION_INVALID,
            headers={"WWW-Authenticate": f'{REALM}, error="invalid_token"'},
        )
    bind_contextvars(session=session.pk)
    if session.api_key is not None:
        bind_contextvars(organisation=session.api_key.organisation_id)
    return session


def refuse_cross_origin_cookie(request: HttpRequest) -> None:
    """Raises ``Problem`` for an unsafe request that another site's page sent with our cookie."""
    if cookie_name() in request.COOKIES and is_cross_origin(request):
        raise Problem(ProblemCode.CROSS_ORIGIN)


class SessionAuthentication(BaseAuthentication):
    """``request.auth`` becomes the session, ``request.user`` its user or ``None``."""

    def authenticate(self, request: Request) -> tuple[User | None, Session]:
        refuse_cross_origin_cookie(request._request)
        session = authenticate_session(request._request)
        return session.user, session

    def authenticate_header(self, request: Any) -> str:
        return REALM
