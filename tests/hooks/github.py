"""A hook that GitHub calls, and its calls."""

import hashlib
import hmac
from typing import Any

from accounts import credentials
from accounts.credentials import SecretKind
from accounts.models import Organisation
from hooks.flows.call_notes import call_notes
from hooks.flows.hooks import IssuedHook
from hooks.models import RefusedCall
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import make_hook, make_script, set_rules, set_secret_of
from tests.hooks.calls import PROTECTION, path_of

SECRET = "It's a Secret to Everybody"
BODY = b'{"zen": "Speak like a human."}'
PROBLEM = {
    "type": "urn:moonhook:problem:invalid-signature",
    "title": "Invalid signature",
    "status": 401,
    "detail": "The hook's sender did not sign this call.",
    "code": "invalid-signature",
}
SOURCE = """return {params.get("sender") or null, params.get("verified") or null,
    params.get("event_id") or null, params.get("body"),
    params.header("X-Hub-Signature-256") ~= nil, params.header("X-Gitlab-Token") or null}"""


def make_github(organisation: Organisation) -> IssuedHook:
    issued = make_hook(make_script(organisation, SOURCE))
    set_rules(issued.hook, sender="github", methods=["POST"])
    set_secret_of(issued.hook, SECRET)
    return issued


def path_with_wrong_token(issued: IssuedHook) -> str:
    """A well-formed token that no hook has."""
    other = credentials.generate_secret(SecretKind.CALL_TOKEN)
    return path_of(issued).replace(issued.call_token, other)


def signed(body: bytes = BODY, secret: str = SECRET) -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Event": "ping"}


def call(
    issued: IssuedHook, body: bytes = BODY, headers: dict[str, str] | None = None, **options: Any
) -> Any:
    headers = signed(body) if headers is None else headers
    return Client().post(
        path_of(issued), body, content_type="application/json", headers=headers, **options
    )


def assert_refused(response: Any) -> None:
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Signature realm="hooks"'
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    problem.pop("requestId")
    assert problem == PROBLEM
    assert response.headers.items() >= PROTECTION.items()
    assert Run.objects.count() == 0


def refusals() -> list[tuple[str, str]]:
    """Reason and detail of the refused calls, newest first."""
    call_notes.write()
    return list(RefusedCall.objects.values_list("reason", "detail"))


def forget_taken_notes() -> None:
    """More than ten a second of one hook would be dropped."""
    call_notes._taken.clear()
