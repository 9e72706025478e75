"""What Viewers, Operators and Authors see and do in the admin, and what they do not."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from accounts.models import ApiKey, AuthEvent, Organisation, Role
from accounts.scopes import ROLE_SCOPES, Scope, roles_with
from hooks.models import Hook, RefusedCall
from jobs.models import PausedQueue, QueueEntry, Schedule
from jobs.schedules.schedules import create_schedule
from scripts_engine.models import Run, Script, ScriptVersion, Secret, StoredValue
from tests import factories
from tests.admin.pages import CONFIRMED, action_on, list_of, page_of, run_of, text_of
from tests.admin.roles import (
    OURS,
    address_in,
    by_role,
    client_of,
    closed_pages,
    every_page,
    page_admin,
    page_name,
)
from tests.admin.walk import foreign_form
from tests.factories import make_hook, make_script
from tests.one_of_each import one_of_each
from tests.written import nothing_written


@pytest.fixture
def rows(acme: Organisation) -> dict[type, Any]:
    return one_of_each(acme)


@pytest.fixture
def as_viewer(acme: Organisation) -> Client:
    return client_of(acme, Role.VIEWER)


@pytest.fixture
def as_operator(acme: Organisation) -> Client:
    return client_of(acme, Role.OPERATOR)


@pytest.fixture
def as_author(acme: Organisation) -> Client:
    return client_of(acme, Role.AUTHOR)


# --- Deny by default ------------------------------------------------------------------------------


def test_every_page_names_its_scope() -> None:
    unnamed = [
        address.name
        for model, address in every_page()
        if page_admin(model).scope_of_page(page_name(model, address)) is None
    ]

    assert unnamed == []


def test_every_list_action_names_its_scope() -> None:
    unnamed = [
        f"{model.__name__} {action}"
        for model in OURS
        for action in page_admin(model).actions or ()
        if page_admin(model).scope_of_action(str(action)) is None
    ]

    assert unnamed == []


def test_every_button_is_a_page_with_a_scope() -> None:
    unnamed = [
        f"{model.__name__} {button}"
        for model in OURS
        for button in (*page_admin(model).actions_detail, *page_admin(model).actions_list)
        if page_admin(model).scope_of_page(str(button)) is None
    ]

    assert unnamed == []


def test_every_inline_names_its_scopes() -> None:
    unnamed = [
        inline.__name__
        for model in OURS
        for inline in page_admin(model).inlines
        if Scope.ALL in (inline.view_scope, inline.change_scope)
    ]

    assert unnamed == []


def test_page_without_a_scope_is_refused_to_all_but_administrators(
    as_author: Client, as_bob: Client, rows: dict[type, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(page_admin(Script)), "page_scopes", {})
    address = reverse("admin:scripts_engine_script_alive")

    assert as_author.post(address).status_code == 403
    assert as_bob.post(address).status_code == 200


# --- What a role has not --------------------------------------------------------------------------


@by_role
def test_page_beyond_the_role_is_a_403_that_names_the_role(
    acme: Organisation, rows: dict[type, Any], role: Role
) -> None:
    client = client_of(acme, role)
    form = foreign_form(rows)
    closed = closed_pages(role)
    assert closed

    with nothing_written():
        answers = [
            (address.name, roles_with(scope)[0].label, answer)
            for model, address, scope in closed
            for target in [address_in(rows, model, address)]
            for answer in (client.get(target), client.post(target, form))
        ]

    wrong = [
        name
        for name, needed, answer in answers
        if answer.status_code not in (403, 405)
        or (answer.status_code == 403 and f"role {needed}" not in text_of(answer))
    ]
    assert wrong == []


@by_role
def test_list_action_beyond_the_role_changes_nothing(
    acme: Organisation, rows: dict[type, Any], role: Role
) -> None:
    client = client_of(acme, role)
    beyond = [
        (model, str(action))
        for model in OURS
        for action in page_admin(model).actions or ()
        if role not in roles_with(page_admin(model).scope_of_action(str(action)) or Scope.ALL)
    ]
    assert beyond

    with nothing_written():
        codes = {
            client.post(list_of(model), action_on(rows[model], action)).status_code
            for model, action in beyond
        }

    assert codes == {403}


@by_role
def test_page_of_the_role_opens(acme: Organisation, rows: dict[type, Any], role: Role) -> None:
    client = client_of(acme, role)
    shown = [
        address_in(rows, model, address)
        for model, address in every_page()
        if page_name(model, address) in {"changelist", "change", "add"}
        and role
        in roles_with(page_admin(model).scope_of_page(page_name(model, address)) or Scope.ALL)
        and page_admin(model).has_add_permission is not None
    ]
    assert shown

    codes = {address: client.get(address).status_code for address in shown}

    read_only = {address for address, code in codes.items() if code == 403}
    assert set(codes.values()) <= {200, 403}
    assert all(address.endswith("/add/") for address in read_only)


@pytest.mark.parametrize(
    ("role", "lists"),
    [
        (
            Role.VIEWER,
            {
                "Scripts",
                "Hooks",
                "Schedules",
                "Releases",
                "Runs",
                "Queue",
                "Dead letters",
                "Refused calls",
            },
        ),
        (
            Role.OPERATOR,
            {
                "Scripts",
                "Hooks",
                "Schedules",
                "Releases",
                "Runs",
                "Queue",
                "Dead letters",
                "Refused calls",
                "Stored values",
            },
        ),
        (
            Role.AUTHOR,
            {
                "Scripts",
                "Hooks",
                "Schedules",
                "Releases",
                "Runs",
                "Queue",
                "Dead letters",
                "Refused calls",
                "Stored values",
                "Secrets",
            },
        ),
    ],
)
def test_sidebar_lists_what_the_role_opens(
    acme: Organisation, rows: dict[type, Any], role: Role, lists: set[str]
) -> None:
    home = client_of(acme, role).get(reverse("admin:index"))

    groups = home.context["sidebar_navigation"]
    titles = {item["title"] for group in groups for item in group["items"]}
    assert titles == {"Home", *lists}


def test_home_of_a_viewer_tells_nothing_of_keys_logins_people_and_errors(
    as_viewer: Client, rows: dict[type, Any]
) -> None:
    response = as_viewer.get(reverse("admin:index"))

    home = response.context["home"]
    assert (home.keys, home.sign_ins, home.failed_logins) == (None, None, None)
    assert home.runs.failures is None
    assert {count.title for count in home.counts} == {"scripts", "hooks"}


@pytest.mark.parametrize("term", ["Acme key", "acme-member", "API keys", "Users"])
def test_search_finds_nothing_beyond_the_role(
    as_author: Client, rows: dict[type, Any], term: str
) -> None:
    response = as_author.get(reverse("admin:search"), {"s": term})

    assert response.context["results"] == []


def test_search_finds_what_the_role_opens(as_viewer: Client, rows: dict[type, Any]) -> None:
    response = as_viewer.get(reverse("admin:search"), {"s": "Acme script"})

    assert [result.title for result in response.context["results"]] == ["Acme script"]


def autocomplete(client: Client, model: type, field: str) -> Any:
    query = {
        "app_label": model._meta.app_label,  # type: ignore[attr-defined]
        "model_name": model._meta.model_name,  # type: ignore[attr-defined]
        "field_name": field,
    }
    return client.get(reverse("admin:autocomplete"), query)


@pytest.mark.parametrize(
    ("model", "field"),
    [(ApiKey, "organisation"), (Secret, "organisation"), (AuthEvent, "user")],
)
def test_autocomplete_of_a_closed_page_is_refused(
    as_viewer: Client, rows: dict[type, Any], model: type, field: str
) -> None:
    assert autocomplete(as_viewer, model, field).status_code == 403


def test_autocomplete_offers_the_organisations_of_the_role(
    as_author: Client, rows: dict[type, Any], globex: Organisation
) -> None:
    response = autocomplete(as_author, Script, "organisation")

    assert [result["text"] for result in response.json()["results"]] == ["Acme"]


# --- Reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Script, Hook, Schedule, Run, RefusedCall, ScriptVersion])
def test_pages_of_a_viewer_have_no_form_to_save(
    as_viewer: Client, rows: dict[type, Any], model: type
) -> None:
    page = text_of(as_viewer.get(page_of(rows[model])))

    assert 'name="_save"' not in page
    assert "disabled" not in page.split("</header>")[-1].split("<fieldset")[-1][:2000]
    assert page_of(rows[Hook], "rotate") not in page
    assert list_of(Hook, "add") not in page


def test_viewer_reads_the_source_as_text(as_viewer: Client, rows: dict[type, Any]) -> None:
    page = text_of(as_viewer.get(page_of(rows[Script])))

    assert "Acme source" in page
    assert "try-form" not in page
    assert "<textarea" not in page


@pytest.mark.parametrize("model", [Run, RefusedCall, QueueEntry, Hook, Script])
def test_viewer_reads_no_payload(as_viewer: Client, rows: dict[type, Any], model: type) -> None:
    page, listed = as_viewer.get(page_of(rows[model])), as_viewer.get(list_of(model))

    for text in (text_of(page), text_of(listed)):
        assert "Acme payload" not in text
        assert "Acme refused" not in text
        assert "203.0.113.9" not in text or model is Run


def test_operator_reads_payloads(as_operator: Client, rows: dict[type, Any]) -> None:
    assert "Acme payload" in text_of(as_operator.get(page_of(rows[Run])))


def test_viewer_cannot_search_runs_by_what_came_in(
    as_viewer: Client, rows: dict[type, Any]
) -> None:
    response = as_viewer.get(list_of(Run), {"payload": "Acme"})

    assert response.status_code == 400


def test_viewer_does_not_read_the_error_of_a_run(as_viewer: Client, acme: Organisation) -> None:
    script = factories.make_script(acme, "error('quoted from the payload')", "failing")
    run = factories.run_of(script) if hasattr(factories, "run_of") else None
    if run is None:
        hook = factories.make_hook(script, "of failing").hook
        from tests.admin.pages import run_of  # noqa: PLC0415

        run = run_of(hook)

    page, listed = as_viewer.get(page_of(run)), as_viewer.get(list_of(Run))

    assert "quoted from the payload" not in text_of(page).split("mh-card", 1)[1].split("Source")[0]
    assert "quoted from the payload" not in text_of(listed)


def test_operator_reads_a_stored_value_as_text(as_operator: Client, rows: dict[type, Any]) -> None:
    page = text_of(as_operator.get(page_of(rows[StoredValue])))

    assert "Acme value" in page
    assert "<textarea" not in page
    assert 'name="_save"' not in page


# --- Running --------------------------------------------------------------------------------------


def try_it(client: Client, script: Script, source: str) -> Any:
    body = {"method": "POST", "query": "", "headers": "", "body": "", "source": source}
    return client.post(page_of(script, "try"), body, content_type="application/json")


def test_operator_tries_the_saved_source(as_operator: Client, rows: dict[type, Any]) -> None:
    response = try_it(as_operator, rows[Script], rows[Script].source)

    assert response.status_code == 200
    assert "Acme source" in response.json()["html"]


def test_operator_does_not_try_a_changed_source(as_operator: Client, rows: dict[type, Any]) -> None:
    with nothing_written():
        response = try_it(as_operator, rows[Script], "return secrets.get('ACME_KEY')")

    assert response.status_code == 403
    assert "role Author" in text_of(response)


def test_author_tries_a_changed_source(as_author: Client, rows: dict[type, Any]) -> None:
    assert try_it(as_author, rows[Script], "return 'changed'").status_code == 200


def test_author_saves_a_script(as_author: Client, rows: dict[type, Any]) -> None:
    form = {"name": "renamed", "timeout_seconds": "5", "is_enabled": "on", "source": "return 1"}

    response = as_author.post(page_of(rows[Script]), form)

    assert response.status_code == 302
    assert Script.objects.get(pk=rows[Script].pk).source == "return 1"


def test_operator_pauses_the_queue_and_a_viewer_does_not(
    as_operator: Client, as_viewer: Client, acme: Organisation
) -> None:
    steer = reverse("admin:jobs_queueentry_steer")
    form = {"organisation": str(acme.pk), "pause": "1"}

    refused = as_viewer.post(steer, form)
    before = PausedQueue.objects.exists()
    as_operator.post(steer, form)

    assert (refused.status_code, before) == (403, False)
    assert PausedQueue.objects.filter(organisation=acme).exists()


@pytest.mark.parametrize("as_list_action", [True, False])
def test_script_with_hooks_is_not_deleted_by_a_role_without_their_scope(
    acme: Organisation,
    rows: dict[type, Any],
    as_list_action: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bare = factories.make_script(acme, "return 1", "a bare one")
    client = client_of(acme, Role.AUTHOR)
    monkeypatch.setitem(ROLE_SCOPES, Role.AUTHOR, Role.AUTHOR.scopes - {Scope.WRITE_HOOKS})
    script, action = rows[Script], "delete_selected_by_flow"
    selected = {"_selected_action": [str(bare.pk), str(script.pk)]}

    if as_list_action:
        response = client.post(list_of(Script), action_on(script, action) | selected)
    else:
        response = client.post(page_of(script, "delete"), {"post": "yes", **CONFIRMED})

    assert response.status_code == 403
    assert "role Administrator in Acme" in text_of(response)
    assert Script.objects.existing().filter(pk__in=[bare.pk, script.pk]).count() == 2
    assert not LogEntry.objects.exists()


def test_a_viewer_reads_the_labels_of_those_who_change_the_row(
    as_viewer: Client, acme: Organisation
) -> None:
    script = make_script(acme)
    schedule = create_schedule(script, name="nightly", cron="0 0 * * *")

    of_script = text_of(as_viewer.get(page_of(script)))
    of_schedule = text_of(as_viewer.get(page_of(schedule)))

    assert "Time limit (seconds)" in of_script
    assert "Timeout seconds" not in of_script
    assert "Catch-up window (seconds)" in of_schedule
    assert "Payload" in of_schedule


def test_runs_have_a_column_of_errors_for_those_alone_who_read_them(acme: Organisation) -> None:
    hook = make_hook(make_script(acme)).hook
    run_of(hook)

    texts = {
        role: text_of(client_of(acme, role).get(list_of(Run)))
        for role in (Role.VIEWER, Role.OPERATOR)
    }

    assert "column-shown_error" not in texts[Role.VIEWER]
    assert "column-shown_error" in texts[Role.OPERATOR]
