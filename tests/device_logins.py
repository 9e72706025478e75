"""Logins of programs by device code, as a program and a person do them."""

from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import F
from django.test import Client
from django.utils import timezone

from accounts.flows.api_keys import IssuedApiKey, issue_api_key
from accounts.flows.minting import Maker
from accounts.models import ApiKey, Organisation, Role, User
from core.http.origin import NOWHERE
from sessions_api.device_authorization.flows import approve_login
from sessions_api.models import DeviceAuthorization
from tests.factories import make_user

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
START, TOKEN, PAGE = "/oauth/device_authorization", "/oauth/token", "/admin/device/"
CLIENT = "moonhook-cli"


class Started(NamedTuple):
    device_code: str
    user_code: str
    row: DeviceAuthorization


def post_form(path: str, form: Any, **options: Any) -> Any:
    return Client().post(
        path,
        form if isinstance(form, str) else "&".join(f"{key}={form[key]}" for key in form),
        content_type=options.pop("content_type", "application/x-www-form-urlencoded"),
        **options,
    )


def start(scope: str = "ReadScripts", client_id: str = CLIENT, **options: Any) -> Started:
    answer = post_form(START, {"client_id": client_id, "scope": scope}, **options)
    assert answer.status_code == 200, answer.content
    codes = answer.json()
    row = DeviceAuthorization.objects.latest("pk")
    return Started(codes["device_code"], codes["user_code"], row)


def poll(started: Started, client_id: str = CLIENT, **changes: str) -> Any:
    form = {
        "grant_type": GRANT_TYPE,
        "client_id": client_id,
        "device_code": started.device_code,
        **changes,
    }
    return post_form(TOKEN, form)


def error_of(answer: Any) -> str:
    """The OAuth error of an answer that is refused as RFC 6749, 5.2 says."""
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "no-store"
    document = answer.json()
    assert document.keys() == {"error", "error_description"}
    return str(document["error"])


def approve(
    started: Started, by: User, organisation: Organisation, *scopes: str, days: int = 90
) -> None:
    approve_login(
        started.row,
        organisation=organisation,
        scopes=scopes or started.row.scopes,
        key_name=CLIENT,
        days=days,
        by=by,
        origin=NOWHERE,
    )


def log_in(by: User, organisation: Organisation, *scopes: str) -> dict[str, Any]:
    """What the program of an approved login gets."""
    started = start(" ".join(scopes) or "ReadScripts")
    approve(started, by, organisation)
    answer = poll(started)
    assert answer.status_code == 200, answer.content
    document: dict[str, Any] = answer.json()
    return document


def let_time_pass(started: Started, seconds: int) -> None:
    """Moves the login back in time."""
    back = timedelta(seconds=seconds)
    DeviceAuthorization.objects.filter(pk=started.row.pk).update(
        created_at=F("created_at") - back,
        expires_at=F("expires_at") - back,
        last_polled_at=F("last_polled_at") - back,
    )


def approved(issued: IssuedApiKey) -> IssuedApiKey:
    """The key as one that an administrator approved as a program's login."""
    api_key, organisation = issued.api_key, issued.api_key.organisation
    approver = make_user(organisation, f"{api_key.pk}@example.com", role=Role.ADMINISTRATOR)
    User.objects.filter(pk=approver.pk).update(is_staff=True)
    # A key that is older than the membership would have lost its approver.
    api_key.approved_by, api_key.created_at = approver, timezone.now()
    api_key.save(update_fields=["approved_by", "created_at"])
    return issued


def child_of(parent: ApiKey, **given: Any) -> IssuedApiKey:
    """A key that the key created."""
    maker = Maker.key(ApiKey.objects.with_owners().get(pk=parent.pk))
    return issue_api_key(parent.organisation, **{"name": "child", **given}, maker=maker)
