"""One name for one thing: in the sidebar, breadcrumbs, titles, the search and messages."""

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.text import capfirst

from accounts.flows.notices import send_invitation
from accounts.models import (
    ApiKey,
    AuthEvent,
    DeviceToken,
    Invitation,
    Organisation,
    PinFailures,
    User,
)
from config.admin.sidebar import place_of
from core.admin.links import action_of, list_of, page_of
from hooks.models import Hook
from jobs.models import Message, QueueEntry
from scripts_engine.models import Run, Script, ScriptVersion
from sessions_api.models import Session
from tests import factories
from tests.admin.addresses import REGISTERED, object_addresses
from tests.admin.pages import CONFIRMED, text_of

every_model = pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)

# Reached from their script's page.
NOT_IN_THE_SIDEBAR = {ScriptVersion: "Versions", PinFailures: "PIN lockouts"}
# The list is one thing; its rows are another.
NAMED_AFTER_THE_WHOLE = {AuthEvent, QueueEntry}
OF_LIBRARIES = re.compile(
    r"auth event|django|axes|\botp|task result|tasks database|administration", re.IGNORECASE
)


def name_of(model: type[Any]) -> str:
    place = place_of(list_of(model))
    return NOT_IN_THE_SIDEBAR[model] if place is None else place.name


def title_of(response: Any) -> str:
    found = re.search(r"<title>(.*?)</title>", text_of(response), re.DOTALL)
    return " ".join(html.unescape(found[1]).split()) if found else ""


def breadcrumbs_of(response: Any) -> list[str]:
    heading = re.search(r'<h1 class="overflow-hidden.*?</h1>', text_of(response), re.DOTALL)
    parts = re.findall(
        r'tracking-tight">(.*?)</(?:a|span)>', heading[0] if heading else "", re.DOTALL
    )
    return [" ".join(html.unescape(part).split()) for part in parts]


def search_results(client: Client, term: str) -> list[str]:
    text = text_of(client.get(reverse("admin:search"), {"s": term}))
    found = re.findall(r"<a [^>]*>(.*?)</a>", text, re.DOTALL)
    return [" ".join(re.sub("<[^>]+>", "", entry).split()) for entry in found]


# --- Lists --------------------------------------------------------------------------------------


@every_model
def test_a_list_has_one_name(as_root: Client, model: type[Any]) -> None:
    response = as_root.get(list_of(model))

    assert breadcrumbs_of(response) == [name_of(model)]
    assert title_of(response) == f"{name_of(model)} | Moonhook"


@pytest.mark.parametrize(
    "model", [model for model in REGISTERED if model not in NAMED_AFTER_THE_WHOLE]
)
def test_rows_are_called_like_their_list(model: type[Any]) -> None:
    assert capfirst(str(model._meta.verbose_name_plural)) == name_of(model)


def test_the_audit_log_is_called_that(as_bob: Client) -> None:
    assert name_of(AuthEvent) == "Audit log"
    assert search_results(as_bob, "audit") == ["history Audit log Page · Audit"]


def test_the_search_has_the_names_of_the_sidebar(as_root: Client) -> None:
    assert search_results(as_root, "background") == ["schedule Background tasks Page · System"]
    assert search_results(as_root, "pin req") == ["pin PIN requests Page · Identity"]
    assert search_results(as_root, "task result") == []


@pytest.mark.parametrize(
    ("address", "name", "empty"),
    [
        (list_of(Run, dead_letter="yes"), "Dead letters", "No dead letters"),
        (
            list_of(AuthEvent, kind__exact="admin.login-refused"),
            "Failed admin logins",
            "No failed admin logins",
        ),
    ],
    ids=["dead-letters", "failed-admin-logins"],
)
def test_a_filtered_list_of_the_sidebar_has_its_own_title_and_empty_state(
    as_root: Client, address: str, name: str, empty: str
) -> None:
    response = as_root.get(address)

    assert breadcrumbs_of(response) == [name]
    assert title_of(response) == f"{name} | Moonhook"
    assert f"{empty}</h2>" in text_of(response)
    assert "Clear search and filters" not in text_of(response)


# --- Rows ---------------------------------------------------------------------------------------


def test_no_page_has_a_librarys_name(as_root: Client, acme_objects: dict[type, Any]) -> None:
    addresses = [
        address.of(acme_objects, row)
        for model, row in acme_objects.items()
        for address in object_addresses(model)
    ]
    pages = {address: as_root.get(address) for address in addresses}
    names = {address: [title_of(page), *breadcrumbs_of(page)] for address, page in pages.items()}

    assert len(names) > 40
    assert {a: found for a, found in names.items() if OF_LIBRARIES.search(" ".join(found))} == {}


def test_a_background_task_is_named_after_what_it_does(as_root: Client) -> None:
    send_invitation.enqueue("1")
    row = Message.objects.get()

    response = as_root.get(page_of(row))

    assert breadcrumbs_of(response) == ["Background tasks", "Invitation e-mail"]
    assert title_of(response) == "Invitation e-mail | View background task | Moonhook"


@pytest.mark.parametrize("action", ["change", "history", "delete"])
def test_a_name_is_shown_as_its_author_wrote_it(
    as_bob: Client, acme: Organisation, action: str
) -> None:
    script = factories.make_script(acme, name="iPhone orders")

    response = as_bob.get(reverse(f"admin:scripts_engine_script_{action}", args=[script.pk]))

    assert breadcrumbs_of(response) == ["Scripts", "iPhone orders"]
    assert "IPhone" not in text_of(response)


def test_a_breadcrumb_escapes_names(as_bob: Client, acme: Organisation) -> None:
    script = factories.make_script(acme, name="<b>orders")

    assert "<b>orders" not in text_of(as_bob.get(page_of(script)))


def test_the_form_for_a_new_key_is_called_like_its_button(as_bob: Client) -> None:
    assert title_of(as_bob.get(list_of(ApiKey, "add"))) == "Create API key | Moonhook"
    assert title_of(as_bob.get(list_of(Hook, "add"))) == "Create hook | Moonhook"


def test_a_form_for_a_new_row_is_the_last_breadcrumb(as_bob: Client) -> None:
    response = as_bob.get(list_of(Hook, "add"))

    assert breadcrumbs_of(response) == ["Hooks", "Create hook"]
    assert button_names(response) == []


def test_the_form_for_a_new_script_is_called_like_its_button(as_bob: Client) -> None:
    assert title_of(as_bob.get(list_of(Script, "add"))) == "Add script | Moonhook"
    assert button_names(as_bob.get(list_of(Script))) == ["Add script"]


def test_an_empty_list_has_one_button_for_a_new_row(as_bob: Client, acme: Organisation) -> None:
    assert button_names(as_bob.get(list_of(Hook))) == ["Create hook"]
    factories.make_hook(factories.make_script(acme))
    assert button_names(as_bob.get(list_of(Hook))) == ["Create hook"]
    assert button_names(as_bob.get(list_of(Hook), {"q": "nothing"})) == ["Create hook"]


def button_names(response: Any) -> list[str]:
    """The names of the links to the form for a new row, in the page's header and content."""
    page = text_of(response)
    links = re.findall(r'<a href="/admin/\w+/\w+/add/[^"]*"([^>]*)>(.*?)</a>', page, re.DOTALL)
    titles = [re.search(r'title="(.*?)"', attributes) for attributes, _ in links]
    return [
        found[1] if found else " ".join(text.split())
        for found, (_, text) in zip(titles, links, strict=True)
    ]


# --- Empty lists and fields ---------------------------------------------------------------------


def test_an_empty_list_does_not_claim_that_there_never_was_a_row(as_bob: Client) -> None:
    assert "No scripts</h2>" in text_of(as_bob.get(list_of(Script)))


def test_after_the_only_session_ended_there_are_no_open_sessions(
    as_bob: Client, acme: Organisation
) -> None:
    factories.open_session(factories.api_key_login(factories.make_api_key(acme)))
    as_bob.post(
        reverse("admin:sessions_api_session_end", args=[Session.objects.get().pk]), CONFIRMED
    )

    assert "No open sessions</h2>" in text_of(as_bob.get(list_of(Session)))


def test_without_open_invitations_the_list_says_so(as_bob: Client) -> None:
    assert "No open invitations</h2>" in text_of(as_bob.get(list_of(Invitation)))


def test_a_script_with_tried_drafts_only_says_so(as_bob: Client, acme_script: Script) -> None:
    before = text_of(as_bob.get(list_of(Script)))
    address = reverse("admin:scripts_engine_script_try", args=[acme_script.pk])
    form = {"source": "return 1", "method": "POST", "query": "", "headers": "", "body": ""}

    tried = as_bob.post(address, form, content_type="application/json")

    assert tried.status_code == 200
    assert "None recorded" in before
    assert "Only tried out" in text_of(as_bob.get(list_of(Script)))


def test_a_user_whose_devices_are_revoked_has_no_active_devices(
    as_bob: Client, acme: Organisation, alice: User
) -> None:
    token = factories.make_device_token(alice).device_token
    as_bob.post(action_of(token, "revoke"), CONFIRMED)

    assert DeviceToken.objects.get().revoked_at is not None
    assert "No active devices" in text_of(as_bob.get(page_of(alice)))


def test_the_sidebar_marks_a_filtered_list_only_on_its_own_page(as_root: Client) -> None:
    filtered = f"{list_of(AuthEvent)}?kind__exact=admin.login-refused"

    assert not is_marked(as_root.get(list_of(AuthEvent)), filtered)
    assert is_marked(as_root.get(filtered), filtered)
    assert not is_marked(as_root.get(filtered), list_of(AuthEvent))
    assert is_marked(as_root.get(f"{filtered}&q=x"), filtered)
    assert not is_marked(as_root.get(f"{filtered}&q=x"), list_of(AuthEvent))


def is_marked(response: Any, link: str) -> bool:
    groups = response.context["sidebar_navigation"]
    (item,) = [item for group in groups for item in group["items"] if item["link"] == link]
    return bool(item["active"])
