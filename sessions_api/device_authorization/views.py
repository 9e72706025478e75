"""OAuth's endpoints: metadata (RFC 8414), device authorization and token (RFC 8628)."""

from collections.abc import Callable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.csrf import csrf_exempt

from accounts.scopes import Scope, names_of
from core.errors import RateLimitedError
from core.http.body import BodyIncomplete, BodyTooLarge, read_body
from core.http.origin import origin_of
from core.http.problem_handlers import safe_methods_only
from core.http.problems import Problem, ProblemCode, problem_response
from sessions_api.device_authorization.flows import (
    OAuthError,
    OAuthErrorCode,
    checked_client_id,
    redeem,
    shown,
    start_login,
)

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
PAGE = "/admin/device/"
_FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 20
# Others are ignored (RFC 6749, 3.1 and 3.2).
_PARAMETERS = frozenset({"client_id", "scope", "grant_type", "device_code"})
_NOT_CACHED = {"Cache-Control": "no-store", "Pragma": "no-cache"}

Form = Mapping[str, str]


def _form_endpoint(answer: Callable[[HttpRequest, Form], dict[str, Any]]) -> Any:
    """Decorator: makes a view of a function that turns a POSTed form into a JSON object.

    What OAuth has errors for is answered with these; the rest with problem documents.
    """

    @csrf_exempt
    @wraps(answer)
    def view(request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            problem = Problem(ProblemCode.METHOD_NOT_ALLOWED, headers={"Allow": "POST"})
            return problem_response(request, problem)
        try:
            return JsonResponse(answer(request, _read_form(request)), headers=_NOT_CACHED)
        except OAuthError as error:
            document = {"error": error.code.value, "error_description": error.description}
            return JsonResponse(document, status=HTTPStatus.BAD_REQUEST, headers=_NOT_CACHED)
        except RateLimitedError as limited:
            wait = {"Retry-After": str(limited.retry_after_seconds)}
            return problem_response(request, Problem(ProblemCode.RATE_LIMITED, headers=wait))
        except Problem as problem:
            return problem_response(request, problem)

    return view


def _read_form(request: HttpRequest) -> Form:
    """The parameters; those without a value count as left out (RFC 6749, 3.1)."""
    if request.content_type != _FORM:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, f"Send Content-Type: {_FORM}.")
    try:
        body = read_body(request, settings.REST_MAX_BODY_BYTES).decode()
        pairs = parse_qsl(body, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except BodyTooLarge:
        raise Problem(
            ProblemCode.BODY_TOO_LARGE,
            f"The body may have at most {settings.REST_MAX_BODY_BYTES} bytes.",
        ) from None
    except (BodyIncomplete, ValueError):
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, "The body is not a form.") from None
    names = [name for name, _ in pairs if name in _PARAMETERS]
    if len(names) != len(set(names)):
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, "A parameter was sent twice.")
    return {name: value for name, value in pairs if value}


def _required(form: Form, name: str) -> str:
    if name not in form:
        raise OAuthError(OAuthErrorCode.INVALID_REQUEST, f"{name} is missing.")
    return form[name]


@safe_methods_only
@cache_control(public=True, max_age=3600)
def metadata(request: HttpRequest) -> HttpResponse:
    """Tells programs where to log in, and what they may ask for."""
    return JsonResponse(
        {
            "issuer": settings.PUBLIC_URL,
            "device_authorization_endpoint": f"{settings.PUBLIC_URL}/oauth/device_authorization",
            "token_endpoint": f"{settings.PUBLIC_URL}/oauth/token",
            "grant_types_supported": [GRANT_TYPE],
            "response_types_supported": [],
            "token_endpoint_auth_methods_supported": ["none"],
            "scopes_supported": Scope.values,
        }
    )


@_form_endpoint
def start(request: HttpRequest, form: Form) -> dict[str, Any]:
    """Starts a login; the program shows the user code and the address of the page."""
    client_id = _required(form, "client_id")
    started = start_login(client_id, form.get("scope", ""), origin_of(request))
    page, user_code = f"{settings.PUBLIC_URL}{PAGE}", shown(started.user_code)
    return {
        "device_code": started.device_code,
        "user_code": user_code,
        "verification_uri": page,
        "verification_uri_complete": f"{page}?user_code={user_code}",
        "expires_in": int(settings.DEVICE_CODE_LIFETIME.total_seconds()),
        "interval": settings.DEVICE_CODE_INTERVAL_SECONDS,
    }


@_form_endpoint
def token(request: HttpRequest, form: Form) -> dict[str, Any]:
    """Answers a poll: the key and its first session, or how things stand."""
    if _required(form, "grant_type") != GRANT_TYPE:
        raise OAuthError(
            OAuthErrorCode.UNSUPPORTED_GRANT_TYPE, f"There is one grant type: {GRANT_TYPE}."
        )
    client_id = checked_client_id(_required(form, "client_id"))
    (api_key, secret), opened = redeem(
        _required(form, "device_code"), client_id, origin_of(request)
    )
    remaining = opened.session.expires_at - timezone.now()
    return {
        "access_token": opened.token,
        "token_type": "Bearer",
        "expires_in": int(remaining.total_seconds()),
        "scope": names_of(api_key.held_scopes),
        "key": api_key.key,
        "secret": secret,
        "organisation": {
            "id": str(api_key.organisation_id),
            "name": api_key.organisation.name,
        },
    }
