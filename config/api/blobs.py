"""PUT /admin/blobs/<sha256>: a program uploads a source for a plan."""

from http import HTTPStatus

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from accounts.flows.api_keys import record_refused_scopes
from accounts.holders import scopes_of_key
from accounts.models import ApiKey
from accounts.scopes import Scope, missing
from core.errors import LimitExceededError
from core.http.body import BodyIncomplete, BodyTooLarge, read_body
from core.http.origin import origin_of
from core.http.problem_handlers import problem_of
from core.http.problems import FieldError, Problem, ProblemCode, problem_response
from scripts_engine.plans.blobs import BlobProblem, DigestMismatchError, keep_blob
from scripts_engine.releases.items import is_digest
from scripts_engine.sandbox import MAX_SOURCE_BYTES
from sessions_api.authentication import authenticate_session, refuse_cross_origin_cookie

METHOD = "PUT"


@csrf_exempt
def blob(request: HttpRequest, digest: str) -> HttpResponse:
    """Keeps the body, whatever its ``Content-Type`` says: 201 if it is new, otherwise 204."""
    try:
        status = HTTPStatus.CREATED if _keep(request, digest) else HTTPStatus.NO_CONTENT
    except Exception as error:  # noqa: BLE001  (problem_of logs it)
        return problem_response(request, problem_of(error, request))
    response = HttpResponse(status=status, headers={"Cache-Control": "no-store"})
    del response["Content-Type"]
    return response


def _keep(request: HttpRequest, digest: str) -> bool:
    if request.method != METHOD:
        raise Problem(ProblemCode.METHOD_NOT_ALLOWED, headers={"Allow": METHOD})
    api_key = _author(request)
    # There is nothing at an address that no content can have.
    if not is_digest(digest):
        raise Problem(ProblemCode.NOT_FOUND)
    try:
        return keep_blob(api_key.organisation, digest, read_body(request, MAX_SOURCE_BYTES))
    except BodyTooLarge:
        detail = f"A source may have at most {MAX_SOURCE_BYTES} bytes."
        raise Problem(ProblemCode.BODY_TOO_LARGE, detail) from None
    except BodyIncomplete:
        raise Problem(ProblemCode.INVALID_REQUEST, "The body is incomplete.") from None
    except DigestMismatchError:
        raise Problem(BlobProblem.DIGEST_MISMATCH) from None
    except LimitExceededError as error:
        raise Problem(ProblemCode.LIMIT_EXCEEDED, str(error.message)) from None
    except ValidationError as error:
        errors = [FieldError("body", "invalid", message) for message in error.messages]
        raise Problem(ProblemCode.VALIDATION_ERROR, errors=errors) from None


def _author(request: HttpRequest) -> ApiKey:
    """The caller's key, which may write drafts. Raises ``Problem``."""
    refuse_cross_origin_cookie(request)
    api_key = authenticate_session(request).api_key
    if api_key is None:
        raise Problem(ProblemCode.FORBIDDEN, "An API key session is required.")
    if missing(scopes_of_key(api_key), [Scope.WRITE_DRAFTS]):
        scope = Scope.WRITE_DRAFTS.value
        record_refused_scopes(api_key, [scope], origin=origin_of(request))
        detail = f"This needs the scope {scope}."
        raise Problem(ProblemCode.FORBIDDEN, detail, extensions={"scope": scope})
    return api_key
