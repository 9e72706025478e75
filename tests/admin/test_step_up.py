"""Secrets, keys, roles and second factors ask for a fresh proof of who is at the keyboard."""

import time
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.admin.step_up import FRESH_FOR
from accounts.flows import second_factor
from accounts.models import (
    ApiKey,
    AuditReason,
    AuthEvent,
    AuthEventKind,
    Membership,
    Organisation,
    User,
)
from accounts.rate_limits import windows
from hooks.models import Hook, SigningSecret
from scripts_engine.models import Secret
from tests import factories
from tests.admin.addresses import REGISTERED, Address, addresses_of
from tests.admin.pages import (
    CONFIRMED,
    OUR_MODELS,
    action_on,
    list_of,
    logged_in,
    page_of,
    prove,
    text_of,
)
from tests.admin.walk import foreign_form
from tests.one_of_each import one_of_each
from tests.written import nothing_written

STEP_UP, LOGIN, OWN_FACTOR = (
    reverse(f"admin:{name}") for name in ("step_up", "login", "second_factor")
)
PASSWORD = "a password of root"
OURS = [model for model in REGISTERED if model in OUR_MODELS]


def pages_that_ask() -> list[Any]:
    """Every page that names a proof, of every model."""
    return [
        pytest.param(model, address, id=address.name)
        for model in OURS
        for address in addresses_of(model)
        if page_name(model, address) in proved_pages(model)
    ]


def proved_pages(model: type) -> frozenset[str]:
    pages: frozenset[str] = admin.site.get_model_admin(model).proved_pages  # type: ignore[attr-defined]
    return pages


def page_name(model: type, address: Address) -> str:
    page: str = admin.site.get_model_admin(model).page_of_url(address.name)  # type: ignore[attr-defined]
    return page


@pytest.fixture
def rows(acme: Organisation) -> dict[type, Any]:
    return one_of_each(acme)


@pytest.fixture
def as_stale_root(root: User) -> Client:
    """root, who proved who they are a second too long ago."""
    client = logged_in(root)
    prove(client, time.time() - FRESH_FOR.total_seconds() - 2)
    return client


def where(address: str) -> str:
    """The question that leads back to the address."""
    return f"{STEP_UP}?next={address.replace('/', '%2F')}"


def address_in(rows: dict[type, Any], model: type, address: Address) -> str:
    if "secret_id" in address.converters:
        hook = rows[Hook]
        secret = SigningSecret.objects.filter(hook=hook).live().get()
        return reverse("admin:hooks_hook_end_secret", args=[hook.pk, secret.pk])
    return address.of(rows, rows[model])


def guarded_rows() -> set[str]:
    """What opens something: every row of keys, tokens, secrets, roles and second factors."""
    tables = {
        ApiKey: ("pk", "digest", "previous_digest", "revoked_at", "scopes"),
        Hook: ("pk", "digest", "previous_digest", "sender", "signing_secret_id"),
        SigningSecret: ("pk", "ends_at"),
        Secret: ("pk", "ciphertext"),
        Membership: ("organisation_id", "user_id", "role"),
        User: ("pk", "password", "is_staff", "is_superuser"),
        TOTPDevice: ("pk", "confirmed", "key"),
        StaticToken: ("pk", "token"),
    }
    return {
        f"{model.__name__} {row}"
        for model, columns in tables.items()
        for row in model._default_manager.values_list(*columns)
    }


# --- Every way in is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(("model", "address"), pages_that_ask())
def test_page_asks_for_a_proof_before_its_form_and_nothing_happens(
    as_stale_root: Client, rows: dict[type, Any], model: type, address: Address
) -> None:
    target = address_in(rows, model, address)

    with nothing_written():
        shown = as_stale_root.get(target)
        sent = as_stale_root.post(target, foreign_form(rows))

    assert (shown.status_code, shown["Location"]) == (302, where(target))
    assert (sent.status_code, sent["Location"]) == (302, where(target))
    assert (shown.content, sent.content) == (b"", b"")


def test_no_address_gives_secrets_roles_or_keys_without_a_fresh_proof(
    as_stale_root: Client, rows: dict[type, Any]
) -> None:
    """The walk over everything: a page or action that forgets to ask is found here."""
    before = guarded_rows()
    form = foreign_form(rows)
    addresses = [
        (model, address)
        for model in OURS
        for address in addresses_of(model)
        if not address.name.endswith("_delete")
    ]

    for model, address in addresses:
        as_stale_root.post(address_in(rows, model, address), form)
    for model in OURS:
        for action in admin.site.get_model_admin(model).actions or ():
            if "delete" not in str(action):
                as_stale_root.post(list_of(model), action_on(rows[model], str(action)))
    for name in ("second_factor", "recovery_codes", "step_up"):
        as_stale_root.post(reverse(f"admin:{name}"), {"begin": "yes", "code": "1"})

    assert guarded_rows() <= before


def test_the_same_walk_with_a_proof_changes_all_of_them(
    as_root: Client, rows: dict[type, Any]
) -> None:
    before = guarded_rows()
    form = foreign_form(rows)

    as_root.post(page_of(rows[ApiKey], "rotate"), form)
    as_root.post(page_of(rows[Hook], "rotate"), form)
    as_root.post(page_of(rows[Hook], "secret"), form)
    as_root.post(list_of(Secret, "add"), {**form, "name": "NEW"})
    as_root.post(OWN_FACTOR, {"begin": "yes"})

    kinds = {row.split()[0] for row in guarded_rows() - before}
    assert kinds == {"ApiKey", "Hook", "SigningSecret", "Secret", "TOTPDevice"}


def test_bulk_revocation_of_keys_asks_first(as_stale_root: Client, rows: dict[type, Any]) -> None:
    body = action_on(rows[ApiKey], "revoke_selected")

    with nothing_written():
        response = as_stale_root.post(list_of(ApiKey), body)

    assert response["Location"] == where(list_of(ApiKey))


def test_bulk_revocation_beside_another_action_is_refused(
    as_stale_root: Client, rows: dict[type, Any]
) -> None:
    body = {**action_on(rows[ApiKey], ""), "action": ["revoke_selected", ""], "index": "0"}

    with nothing_written():
        response = as_stale_root.post(list_of(ApiKey), body)

    assert response.status_code == 400


def test_roles_are_facts_until_the_proof_is_fresh(
    as_stale_root: Client, rows: dict[type, Any]
) -> None:
    organisation = rows[Organisation]

    page = text_of(as_stale_root.get(page_of(organisation)))

    assert 'name="memberships-TOTAL_FORMS"' not in page
    assert page_of(organisation, "change_roles") in page
    assert rows[User].email in page


def test_form_with_roles_that_comes_too_late_saves_nothing(
    as_stale_root: Client, rows: dict[type, Any]
) -> None:
    organisation = rows[Organisation]
    form = {**foreign_form(rows), "name": "Renamed"}

    with nothing_written():
        response = as_stale_root.post(page_of(organisation), form)

    assert response["Location"] == where(page_of(organisation))


def test_form_without_roles_is_saved_without_a_proof(
    as_stale_root: Client, acme: Organisation
) -> None:
    response = as_stale_root.post(page_of(acme), {"name": "Renamed", "is_active": "on"})

    assert response.status_code == 302
    assert response["Location"] == list_of(Organisation)
    assert Organisation.objects.get(pk=acme.pk).name == "Renamed"


def test_roles_are_offered_after_the_proof(as_root: Client, rows: dict[type, Any]) -> None:
    page = text_of(as_root.get(page_of(rows[Organisation])))

    assert 'name="memberships-TOTAL_FORMS"' in page
    assert page_of(rows[Organisation], "change_roles") not in page


def test_access_to_the_admin_is_not_given_without_a_proof(
    as_stale_root: Client, rows: dict[type, Any]
) -> None:
    user = rows[User]

    as_stale_root.post(page_of(user), {"email": user.email, "is_active": "on", "is_staff": "on"})

    assert User.objects.get(pk=user.pk).is_staff is False


# --- How long a proof counts ----------------------------------------------------------------------


def test_proof_counts_until_its_quarter_of_an_hour_is_over(root: User, acme: Organisation) -> None:
    client = logged_in(root)
    prove(client, time.time() - FRESH_FOR.total_seconds() + 60)

    assert client.get(list_of(ApiKey, "add")).status_code == 200


def test_proof_from_the_future_does_not_count(root: User) -> None:
    client = logged_in(root)
    prove(client, time.time() + 3600)

    assert client.get(list_of(ApiKey, "add"))["Location"] == where(list_of(ApiKey, "add"))


def test_login_without_any_proof_is_asked(root: User) -> None:
    client = Client()
    client.force_login(root)

    assert client.get(list_of(ApiKey, "add"))["Location"] == where(list_of(ApiKey, "add"))


def test_login_with_a_password_counts_as_a_proof(root: User) -> None:
    client = Client()
    client.post(LOGIN, {"username": root.email, "password": PASSWORD})

    assert client.get(list_of(ApiKey, "add")).status_code == 200


def test_login_with_a_second_factor_counts_as_a_proof_only_after_the_code(root: User) -> None:
    codes = enrolled(root)
    client = Client()
    client.post(LOGIN, {"username": root.email, "password": PASSWORD})
    before = "proved_at" in client.session
    client.post(reverse("admin:login_code"), {"code": codes[0]})

    assert before is False
    assert client.get(list_of(ApiKey, "add")).status_code == 200


# --- The question ---------------------------------------------------------------------------------


def enrolled(user: User) -> list[str]:
    """Sets up a second factor; its recovery codes."""
    device = second_factor.begin_enrolment(user)
    TOTPDevice.objects.filter(pk=device.pk).update(confirmed=True)
    return second_factor.replace_recovery_codes(user)


@pytest.fixture
def codes(root: User) -> list[str]:
    return enrolled(root)


@pytest.fixture
def as_stale_root_with_factor(root: User, codes: list[str]) -> Client:
    client = Client()
    client.post(LOGIN, {"username": root.email, "password": PASSWORD})
    client.post(reverse("admin:login_code"), {"code": codes[0]})
    prove(client, time.time() - FRESH_FOR.total_seconds() - 2)
    return client


def test_password_is_asked_where_there_is_no_second_factor(as_stale_root: Client) -> None:
    page = as_stale_root.get(where(list_of(ApiKey, "add")))

    assert 'name="password"' in text_of(page)
    assert 'name="code"' not in text_of(page)
    assert "no-store" in page["Cache-Control"]


def test_right_password_leads_back_to_the_page(as_stale_root: Client) -> None:
    add = list_of(ApiKey, "add")

    response = as_stale_root.post(STEP_UP, {"password": PASSWORD, "next": add})

    assert (response.status_code, response["Location"]) == (302, add)
    assert as_stale_root.get(add).status_code == 200


def test_wrong_password_proves_nothing_and_is_in_the_audit_log(
    as_stale_root: Client, root: User
) -> None:
    response = as_stale_root.post(STEP_UP, {"password": "a wrong one", "next": "/admin/"})

    assert response.status_code == 200
    assert "This password is wrong." in text_of(response)
    assert as_stale_root.get(list_of(ApiKey, "add")).status_code == 302
    event = AuthEvent.objects.get(kind=AuthEventKind.ADMIN_LOGIN_REFUSED)
    assert (event.email, event.reason) == (root.email, AuditReason.WRONG_CREDENTIALS)


def test_wrong_passwords_count_as_logins(as_stale_root: Client, root: User) -> None:
    for _ in range(windows.ADMIN_LOGIN_FAILURES_AT_CLIENT.amount):
        as_stale_root.post(STEP_UP, {"password": "a wrong one"})

    asked = as_stale_root.post(STEP_UP, {"password": PASSWORD})
    login = Client().post(LOGIN, {"username": root.email, "password": PASSWORD})

    assert (asked.status_code, login.status_code) == (429, 429)
    assert as_stale_root.get(list_of(ApiKey, "add")).status_code == 302


def test_wrong_passwords_at_the_login_lock_the_question_too(
    as_stale_root: Client, root: User
) -> None:
    for _ in range(windows.ADMIN_LOGIN_FAILURES_AT_CLIENT.amount):
        Client().post(LOGIN, {"username": root.email, "password": "a wrong one"})

    response = as_stale_root.post(STEP_UP, {"password": PASSWORD})

    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0


def test_code_is_asked_where_there_is_a_second_factor(as_stale_root_with_factor: Client) -> None:
    page = text_of(as_stale_root_with_factor.get(STEP_UP))

    assert 'name="code"' in page
    assert 'name="password"' not in page


def test_right_code_proves_once(as_stale_root_with_factor: Client, codes: list[str]) -> None:
    add = list_of(ApiKey, "add")
    response = as_stale_root_with_factor.post(STEP_UP, {"code": codes[1], "next": add})
    opened = as_stale_root_with_factor.get(add)
    prove(as_stale_root_with_factor, 0)
    again = as_stale_root_with_factor.post(STEP_UP, {"code": codes[1], "next": add})

    assert response["Location"] == add
    assert opened.status_code == 200
    assert again.status_code == 200
    assert "wrong or was already used" in text_of(again)


def test_password_proves_nothing_where_there_is_a_second_factor(
    as_stale_root_with_factor: Client,
) -> None:
    response = as_stale_root_with_factor.post(STEP_UP, {"password": PASSWORD})

    assert response.status_code == 200
    assert as_stale_root_with_factor.get(list_of(ApiKey, "add")).status_code == 302


def test_a_signed_url_is_shown_after_a_proof_alone(
    as_stale_root: Client, as_root: Client, acme_hook: Hook
) -> None:
    factories.set_rules(acme_hook, sender="twilio", signed_url="https://proxy.example/a?key=tea")
    limits = page_of(acme_hook, "limits")

    assert "key=tea" in text_of(as_root.get(limits))
    assert as_stale_root.get(limits)["Location"] == where(limits)
    assert "key=tea" not in text_of(as_stale_root.get(page_of(acme_hook)))


@pytest.fixture
def _waits_are_long(settings: Any) -> None:
    """However slow the machine is, the wait after a wrong code is not over before the second."""
    settings.OTP_TOTP_THROTTLE_FACTOR = settings.OTP_STATIC_THROTTLE_FACTOR = 600


@pytest.mark.usefixtures("_waits_are_long")
@pytest.mark.parametrize("page", ["second_factor", "own_login"])
def test_a_lock_out_by_wrong_codes_is_recorded_on_other_pages_too(
    as_stale_root_with_factor: Client, page: str
) -> None:
    client, login = as_stale_root_with_factor, {"email": "root@example.com", "password": PASSWORD}
    form = {**login, "code": "zzzzz-zzzzz"}
    answers = [client.post(reverse(f"admin:{page}"), form).status_code for _ in range(2)]

    assert answers == [200, 429]
    assert AuthEvent.objects.filter(reason=AuditReason.TOO_MANY_CODES).count() == 1


@pytest.mark.usefixtures("_waits_are_long")
def test_wrong_codes_are_slowed_down_and_recorded(as_stale_root_with_factor: Client) -> None:
    first = as_stale_root_with_factor.post(STEP_UP, {"code": "zzzzz-zzzzz"})
    second = as_stale_root_with_factor.post(STEP_UP, {"code": "zzzzz-zzzzz"})

    assert (first.status_code, second.status_code) == (200, 429)
    reasons = AuthEvent.objects.filter(kind=AuthEventKind.ADMIN_LOGIN_REFUSED)
    assert {event.reason for event in reasons} == {
        AuditReason.WRONG_CODE,
        AuditReason.TOO_MANY_CODES,
    }


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/\\evil.example", ""],
)
def test_answer_leads_to_pages_of_this_site_only(as_stale_root: Client, elsewhere: str) -> None:
    response = as_stale_root.post(STEP_UP, {"password": PASSWORD, "next": elsewhere})

    assert response["Location"] == reverse("admin:index")


def test_strangers_are_sent_to_the_login(db: None) -> None:
    shown, sent = Client().get(STEP_UP), Client().post(STEP_UP, {"password": PASSWORD})

    assert {shown["Location"], sent["Location"]} == {LOGIN}


def test_user_with_a_factor_cannot_skip_its_login_by_the_question(
    root: User, codes: list[str]
) -> None:
    client = Client()
    client.post(LOGIN, {"username": root.email, "password": PASSWORD})

    response = client.post(STEP_UP, {"password": PASSWORD, "code": codes[1]})

    assert response["Location"] == LOGIN
    assert "proved_at" not in client.session


def test_question_requires_its_forms_token(root: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(root)

    response = client.post(STEP_UP, {"password": PASSWORD})

    assert response.status_code == 403
    assert "proved_at" not in client.session


# --- Second factors -------------------------------------------------------------------------------


def test_first_second_factor_asks_for_the_password(as_stale_root: Client) -> None:
    with nothing_written():
        shown = as_stale_root.get(OWN_FACTOR)
        begun = as_stale_root.post(OWN_FACTOR, {"begin": "yes"})

    assert {shown["Location"], begun["Location"]} == {where(OWN_FACTOR)}


def test_second_factor_that_is_required_can_be_set_up_after_a_while(
    root: User, settings: Any
) -> None:
    settings.IS_SECOND_FACTOR_REQUIRED = True
    client = Client()
    client.post(LOGIN, {"username": root.email, "password": PASSWORD})
    at_once = client.get(OWN_FACTOR)
    prove(client, 0)
    later = client.get(OWN_FACTOR)
    client.post(STEP_UP, {"password": PASSWORD, "next": OWN_FACTOR})

    assert at_once.status_code == 200
    assert later["Location"] == where(OWN_FACTOR)
    assert client.get(OWN_FACTOR).status_code == 200


def test_second_factor_is_turned_off_with_a_code_of_its_own(
    as_stale_root_with_factor: Client, codes: list[str], root: User
) -> None:
    refused = as_stale_root_with_factor.post(OWN_FACTOR, {"turn_off": "yes", "code": "1"})
    assert second_factor.has_second_factor(root)
    assert refused.status_code == 200


def test_confirmed_form_repeats_nothing_that_was_typed(
    as_stale_root: Client, rows: dict[type, Any]
) -> None:
    form = {**CONFIRMED, "organisation": str(rows[Organisation].pk), "name": "typed name"}

    response = as_stale_root.post(list_of(ApiKey, "add"), form, follow=True)

    assert "typed name" not in text_of(response)
    assert "typed name" not in str(dict(as_stale_root.session))
