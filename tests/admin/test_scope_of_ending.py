"""Revoking, ending and deleting rows need the scope that changes them, not only the view scope."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import ApiKey, DeviceToken, Invitation, Organisation, Role
from accounts.scopes import ROLE_SCOPES, Scope
from hooks.models import Hook
from jobs.models import Schedule
from scripts_engine.models import Script, StoredValue
from sessions_api.models import Session
from tests.admin.pages import CONFIRMED, action_on, list_of, page_of, text_of
from tests.admin.roles import OURS, address_in, client_of, every_page, page_admin, page_name
from tests.one_of_each import one_of_each
from tests.written import nothing_written

ENDING_PAGES = {"delete", "end", "end_all", "end_secret", "revoke", "revoke_all", "withdraw"}
ENDING_ACTIONS = {"delete_selected_by_flow", "end_selected", "revoke_selected", "withdraw_selected"}
by_model = pytest.mark.parametrize(
    ("model", "page", "action"),
    [
        (ApiKey, "revoke", "revoke_selected"),
        (DeviceToken, "revoke", "revoke_selected"),
        (Invitation, "withdraw", "withdraw_selected"),
        (Session, "end", "end_selected"),
        (Script, "delete", "delete_selected_by_flow"),
        (Hook, "delete", "delete_selected_by_flow"),
        (Schedule, "delete", "delete_selected_by_flow"),
        (StoredValue, "delete", "delete_selected_by_flow"),
    ],
)


@pytest.fixture
def rows(acme: Organisation) -> dict[type, Any]:
    return one_of_each(acme)


def onlooker(acme: Organisation, model: type, patch: pytest.MonkeyPatch) -> Client:
    """Staff of Acme whose role has the scope that shows the model's rows, and no other."""
    patch.setitem(ROLE_SCOPES, Role.VIEWER, frozenset({page_admin(model).view_scope}))
    return client_of(acme, Role.VIEWER)


def test_every_page_that_ends_a_row_needs_the_scope_that_changes_it() -> None:
    ending = [
        (model, address)
        for model, address in every_page()
        if page_name(model, address) in ENDING_PAGES
    ]

    assert {page_name(model, address) for model, address in ending} == ENDING_PAGES
    assert [
        address.name
        for model, address in ending
        if page_admin(model).scope_of_page(page_name(model, address))
        is not page_admin(model).change_scope
    ] == []


def test_every_list_action_that_ends_rows_needs_the_scope_that_changes_them() -> None:
    ending = [
        (model, str(action))
        for model in OURS
        for action in page_admin(model).actions or ()
        if action in ENDING_ACTIONS
    ]

    assert {action for _, action in ending} == ENDING_ACTIONS
    assert [
        (model, action)
        for model, action in ending
        if page_admin(model).scope_of_action(action) is not page_admin(model).change_scope
    ] == []


@by_model
def test_page_that_ends_a_row_is_refused_to_those_who_only_see_it(
    acme: Organisation,
    rows: dict[type, Any],
    as_bob: Client,
    monkeypatch: pytest.MonkeyPatch,
    model: type,
    page: str,
    action: str,
) -> None:
    address = page_of(rows[model], page)
    client = onlooker(acme, model, monkeypatch)

    with nothing_written():
        asked, confirmed = client.get(address), client.post(address, CONFIRMED)

    assert (asked.status_code, confirmed.status_code) == (403, 403)
    assert "This needs the role" in text_of(confirmed)
    assert as_bob.post(address, CONFIRMED).status_code == 302


@by_model
def test_list_action_that_ends_rows_is_refused_to_those_who_only_see_them(
    acme: Organisation,
    rows: dict[type, Any],
    as_bob: Client,
    monkeypatch: pytest.MonkeyPatch,
    model: type,
    page: str,
    action: str,
) -> None:
    form = action_on(rows[model], action, **CONFIRMED)
    client = onlooker(acme, model, monkeypatch)

    with nothing_written():
        refused = client.post(list_of(model), form)

    assert refused.status_code == 403
    assert "This needs the role" in text_of(refused)
    assert as_bob.post(list_of(model), form).status_code == 302


@pytest.mark.parametrize("page", ["end_all", "end_secret", "revoke_all"])
def test_page_that_ends_what_belongs_to_a_row_is_refused_to_those_who_only_see_it(
    acme: Organisation, rows: dict[type, Any], monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    [(model, address)] = [each for each in every_page() if page_name(*each) == page]
    target = address_in(rows, model, address)
    client = onlooker(acme, model, monkeypatch)

    with nothing_written():
        refused = client.post(target, CONFIRMED)

    assert refused.status_code == 403
    assert "This needs the role" in text_of(refused)


def test_table_that_opens_a_page_to_onlookers_does_not_let_them_revoke(
    acme: Organisation, rows: dict[type, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = type(page_admin(ApiKey))
    monkeypatch.setattr(keys, "page_scopes", {"revoke": Scope.READ_KEYS})
    monkeypatch.setattr(keys, "action_scopes", {"revoke_selected": Scope.READ_KEYS})
    client = onlooker(acme, ApiKey, monkeypatch)

    with nothing_written():
        refused = client.post(page_of(rows[ApiKey], "revoke"), CONFIRMED)
        client.post(list_of(ApiKey), action_on(rows[ApiKey], "revoke_selected", **CONFIRMED))

    assert client.get(page_of(rows[ApiKey])).status_code == 200
    assert refused.status_code == 403
