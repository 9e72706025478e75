"""/session: open, show and end a session, and the bodies of requests and responses."""

from datetime import UTC, datetime
from http import HTTPStatus
from json import JSONEncoder
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.views import APIView

from core.errors import RateLimitedError
from core.http.body import read_json_object
from core.http.origin import is_cross_origin, origin_of, request_id_of
from core.http.problem_handlers import problem_of
from core.http.problems import PlainResponse, Problem, ProblemCode, problem_document
from sessions_api.authentication import (
    SessionAuthentication,
    authenticate_session,
    clear_cookie,
    cookie_name,
    set_cookie,
)
from sessions_api.flows import end_session, open_session
from sessions_api.models import Credential, Session

_encode = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
METHODS = ("GET", "HEAD", "POST", "DELETE")
_OF_EVERY_LOOK_UP = {"Allow": ", ".join(METHODS), "Cache-Control": "no-store"}


class StringField(serializers.CharField):
    """A JSON string, neither trimmed nor converted from a number.

    Accepts any character, NUL included: a credential with one is wrong, not malformed.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, allow_blank=True, **kwargs)
        self.validators = []

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if any("\ud800" <= character <= "\udfff" for character in data):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class OpenSessionSerializer(serializers.Serializer[Any]):
    """The body of POST /session, as docs/openapi.json describes it."""

    uid = StringField()
    password = StringField()
    credential = serializers.ChoiceField(
        choices=Credential.choices,
        error_messages={"invalid_choice": f"Send {' or '.join(Credential.values)}."},
    )
    email = StringField(required=False, allow_null=True)


def session_document(session: Session) -> dict[str, Any]:
    """The JSON representation of a session, without its token."""
    organisation, user, device = session.organisation, session.user, session.device_token
    return {
        "id": str(session.pk),
        "status": "active",
        "credential": session.credential.value,
        "longLived": session.is_long_lived,
        "organisation": organisation and {"id": str(organisation.pk), "name": organisation.name},
        "user": user and {"id": str(user.pk), "email": user.email, "name": user.name},
        "device": device and {"id": str(device.device), "label": device.label},
        "createdAt": rfc3339(session.created_at),
        "expiresAt": rfc3339(session.expires_at),
        "lastUsedAt": rfc3339(session.last_used_at),
    }


def rfc3339(moment: datetime) -> str:
    """UTC to the second, with ``Z``."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def look_up(request: HttpRequest) -> PlainResponse:
    """Shows the presented session, which counts as use, or answers with a problem."""
    try:
        body = _encode(session_document(authenticate_session(request))).encode()
    except Exception as error:  # noqa: BLE001  (problem_of logs it)
        problem = problem_of(error, request)
        status, headers, body = problem_document(problem, request_id_of(request))
        return PlainResponse(status, headers | _OF_EVERY_LOOK_UP, body)
    headers = {"Content-Type": "application/json", **_OF_EVERY_LOOK_UP}
    return PlainResponse(HTTPStatus.OK, headers, body)


class SessionView(APIView):
    """The caller's session."""

    authentication_classes = [SessionAuthentication]
    http_method_names = [method.lower() for method in METHODS]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answers look-ups, which are frequent, without REST framework's request and steps."""
        if request.method not in {"GET", "HEAD"}:
            return super().dispatch(request, *args, **kwargs)
        return self.get(request)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuses a wrong method before authentication.

        Replaces REST framework's other steps: there is a single representation, sent whatever
        ``Accept`` says (RFC 9110, 12.5.1), a single version, and every session has permission.
        """
        if str(request.method).lower() not in self.http_method_names:
            raise MethodNotAllowed(str(request.method))
        # A login needs no session and ignores one sent along.
        if request.method != "POST":
            self.perform_authentication(request)

    def post(self, request: Request) -> HttpResponse:
        """Opens a session."""
        if is_cross_origin(request._request):
            raise Problem(ProblemCode.CROSS_ORIGIN)
        serializer = OpenSessionSerializer(data=read_json_object(request._request))
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        try:
            opened = open_session(
                credential=Credential(fields["credential"]),
                uid=fields["uid"],
                password=fields["password"],
                email=fields.get("email") or "",
                origin=origin_of(request._request),
            )
        except RateLimitedError as limited:
            raise Problem(
                ProblemCode.RATE_LIMITED,
                headers={"Retry-After": str(limited.retry_after_seconds)},
            ) from None
        if opened is None:
            raise Problem(ProblemCode.INVALID_CREDENTIALS)
        _end_session_of_cookie(request._request)
        document = session_document(opened.session) | {"token": opened.token}
        response = _answer(document, HTTPStatus.CREATED)
        remaining = opened.session.expires_at - timezone.now()
        set_cookie(response, opened.token, int(remaining.total_seconds()))
        return response

    def get(self, request: HttpRequest) -> HttpResponse:
        status, headers, body = look_up(request)
        return HttpResponse(body, status=status, headers=headers)

    def delete(self, request: Request) -> HttpResponse:
        """Ends the presented session."""
        session: Session = request.auth  # type: ignore[assignment]
        end_session(session, origin=origin_of(request._request))
        response = HttpResponse(status=HTTPStatus.NO_CONTENT)
        del response["Content-Type"]
        clear_cookie(response)
        return response

    def finalize_response(  # type: ignore[override]
        self, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        response: HttpResponse = super().finalize_response(*args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response


def _answer(document: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    return HttpResponse(_encode(document), status=status, content_type="application/json")


def _end_session_of_cookie(request: HttpRequest) -> None:
    """Ends the session presented by cookie, which the new one replaces (ASVS 5.0, 7.2.4)."""
    replaced = Session.objects.find_live(request.COOKIES.get(cookie_name(), ""))
    if replaced is not None:
        end_session(replaced, origin=origin_of(request))
