import html
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session as AdminSession
from django.utils import timezone

from accounts.models import AuthEvent, User
from hooks.audit_kinds import HookEvent
from hooks.models import Hook
from scripts_engine.models import Script
from tests import factories
from tests.admin.pages import CONFIRMED, action_on, list_of, page_of, run_of, text_of
from tests.client import Client


def issue(client: Client, script: Script) -> Any:
    return client.post(
        list_of(Hook, "add"), {"script": str(script.pk), "name": "shop"}, follow=True
    )


def rotate(client: Client, hook: Hook, *, overlap: str = "0") -> Any:
    form = {**CONFIRMED, "overlap_seconds": overlap}
    return client.post(page_of(hook, "rotate"), form, follow=True)


def token_in(response: Any) -> str:
    found = re.search(r"mhc_\w{46}", text_of(response))
    assert found is not None
    return found[0]


def call(hook: Hook, call_token: str) -> Any:
    return Client().post(
        urlsplit(hook.url_with(call_token)).path, b"hello", content_type="text/plain"
    )


def test_bob_creates_a_hook_and_both_urls_run_the_script(
    as_bob: Client, acme_script: Script
) -> None:
    response = issue(as_bob, acme_script)

    hook = Hook.objects.get()
    text = html.unescape(text_of(response))
    token = token_in(response)
    assert response.status_code == 200
    assert f"curl -sS {hook.url_with(token)} \\\n" in text
    assert f"curl -sS {hook.secure_url} \\\n  -u {hook.pk}:{token} \\\n" in text
    assert call(hook, token).content == b"hello"
    by_basic = Client().post(
        urlsplit(hook.secure_url).path,
        b"hello",
        content_type="text/plain",
        headers=factories.basic(hook.pk, token),
    )
    assert by_basic.content == b"hello"


def test_the_token_is_in_that_response_only(as_bob: Client, acme_script: Script) -> None:
    response = issue(as_bob, acme_script)

    token, hook = token_in(response), Hook.objects.get()
    assert "no-store" in response["Cache-Control"]
    assert token not in str(response.cookies)
    assert token not in str([session.get_decoded() for session in AdminSession.objects.all()])
    assert token not in str(list(LogEntry.objects.values()))
    assert token not in text_of(as_bob.get(page_of(hook)))
    assert hook.digest not in text_of(as_bob.get(page_of(hook)))


def test_asking_to_rotate_rotates_nothing(as_bob: Client, acme_script: Script) -> None:
    issued = factories.make_hook(acme_script)

    response = as_bob.get(page_of(issued.hook, "rotate"))

    assert response.status_code == 200
    assert "mhc_" not in text_of(response)
    assert call(issued.hook, issued.call_token).status_code == 200


def test_rotating_shows_a_new_token_and_refuses_the_old_one(
    as_bob: Client, acme_script: Script
) -> None:
    issued = factories.make_hook(acme_script)

    response = rotate(as_bob, issued.hook)

    assert response.status_code == 200
    assert call(issued.hook, token_in(response)).status_code == 200
    assert call(issued.hook, issued.call_token).status_code == 404
    assert LogEntry.objects.get().change_message == "Rotated the call token."


def test_with_an_overlap_the_old_token_runs_the_script_too(
    as_bob: Client, bob: User, acme_script: Script
) -> None:
    issued = factories.make_hook(acme_script)

    response = rotate(as_bob, issued.hook, overlap="3600")

    assert call(issued.hook, token_in(response)).status_code == 200
    assert call(issued.hook, issued.call_token).status_code == 200
    assert "Valid until" in text_of(as_bob.get(page_of(issued.hook)))
    event = AuthEvent.objects.get(kind=HookEvent.CALL_TOKEN_ROTATED)
    assert (event.user, event.client_address) == (bob, "127.0.0.1")


@pytest.mark.parametrize("overlap", ["", "5", "-1", "604801", "for ever"])
def test_an_overlap_that_is_not_offered_rotates_nothing(
    as_bob: Client, acme_script: Script, overlap: str
) -> None:
    issued = factories.make_hook(acme_script)

    response = as_bob.post(
        page_of(issued.hook, "rotate"), {**CONFIRMED, "overlap_seconds": overlap}
    )

    assert response.status_code == 200
    assert "mhc_" not in text_of(response)
    assert call(issued.hook, issued.call_token).status_code == 200
    assert Hook.objects.get().previous_valid_until is None


def test_a_disabled_hook_answers_404_until_it_is_enabled(
    as_bob: Client, acme_script: Script
) -> None:
    issued = factories.make_hook(acme_script)

    as_bob.post(list_of(Hook), action_on(issued.hook, "disable_selected"))
    disabled = call(issued.hook, issued.call_token)
    as_bob.post(list_of(Hook), action_on(issued.hook, "enable_selected"))
    enabled = call(issued.hook, issued.call_token)

    assert (disabled.status_code, enabled.status_code) == (404, 200)


def test_the_form_disables_and_renames(as_bob: Client, acme_hook: Hook) -> None:
    response = as_bob.post(page_of(acme_hook), {"name": "renamed"})

    assert response.status_code == 302
    acme_hook.refresh_from_db()
    assert (acme_hook.name, acme_hook.is_enabled) == ("renamed", False)


def test_the_script_of_a_hook_stays(as_bob: Client, acme_hook: Hook) -> None:
    other = factories.make_script(acme_hook.organisation, name="other")

    as_bob.post(page_of(acme_hook), {"name": "shop", "script": str(other.pk)})

    assert Hook.objects.get().script == acme_hook.script


@pytest.mark.parametrize("page", ["delete", "list"])
def test_deleting_stops_the_hook_and_keeps_its_row(
    as_bob: Client, acme_script: Script, page: str
) -> None:
    issued = factories.make_hook(acme_script)
    requests = {
        "delete": (page_of(issued.hook, "delete"), CONFIRMED),
        "list": (list_of(Hook), action_on(issued.hook, "delete_selected_by_flow")),
    }

    response = as_bob.post(*requests[page])

    assert response.status_code == 302
    assert Hook.objects.get().deleted_at is not None
    assert call(issued.hook, issued.call_token).status_code == 404
    assert as_bob.get(page_of(issued.hook)).status_code == 404


def test_a_hook_of_a_deleted_script_is_gone_too(as_bob: Client, acme_hook: Hook) -> None:
    as_bob.post(page_of(acme_hook.script, "delete"), CONFIRMED)

    assert as_bob.get(page_of(acme_hook)).status_code == 404


def test_the_script_page_leads_to_the_form_with_the_script_chosen(
    as_bob: Client, acme_script: Script
) -> None:
    response = as_bob.get(page_of(acme_script, "issue_hook"), follow=True)

    assert f'name="script" value="{acme_script.pk}"' in text_of(response)


def test_the_page_shows_both_urls_with_a_token_placeholder(as_bob: Client, acme_hook: Hook) -> None:
    text = html.unescape(text_of(as_bob.get(page_of(acme_hook))))

    assert f">{acme_hook.url}</code>" in text
    assert acme_hook.url.endswith("/<call-token>")
    assert f">{acme_hook.secure_url}</code>" in text
    assert f"curl -sS '{acme_hook.url}' " in text
    assert f"-u '{acme_hook.pk}:<call-token>'" in text
    assert "HookID" in text
    assert page_of(acme_hook, "rotate") in text


def test_the_page_says_when_the_hook_was_last_called(as_bob: Client, acme_hook: Hook) -> None:
    before = text_of(as_bob.get(page_of(acme_hook)))
    run_of(acme_hook)
    run = run_of(acme_hook)

    after = text_of(as_bob.get(page_of(acme_hook)))

    assert "Waiting for the first call." in before
    assert re.search(rf"Called at {run.started_at:%Y-%m-%d}.*?{page_of(run)}", after, re.DOTALL)


def test_a_new_hook_has_no_previous_token(as_bob: Client, acme_hook: Hook) -> None:
    text = text_of(as_bob.get(page_of(acme_hook)))

    assert "Not set" in text
    assert "is valid until" not in text
    assert "Calls return 404" not in text


def test_after_a_rotation_with_overlap_both_pages_say_how_long_the_old_token_is_valid(
    as_bob: Client, acme_hook: Hook
) -> None:
    shown_once = rotate(as_bob, acme_hook, overlap="3600")

    acme_hook.refresh_from_db()
    until = f"is valid until {acme_hook.previous_valid_until:%Y-%m-%d %H:%M} UTC"
    assert until in text_of(shown_once)
    assert until in text_of(as_bob.get(page_of(acme_hook)))


def test_after_the_overlap_the_page_no_longer_mentions_the_old_token(
    as_bob: Client, acme_hook: Hook
) -> None:
    as_bob.post(page_of(acme_hook, "rotate"), {**CONFIRMED, "overlap_seconds": "3600"})
    Hook.objects.update(previous_valid_until=timezone.now())

    text = text_of(as_bob.get(page_of(acme_hook)))
    assert "No longer valid" in text
    assert "is valid until" not in text


@pytest.mark.parametrize("switched_off", [Hook, Script], ids=["hook", "script"])
def test_the_page_says_when_calls_of_the_hook_return_404(
    as_bob: Client, acme_hook: Hook, switched_off: type[Any]
) -> None:
    switched_off.objects.update(is_enabled=False)

    assert "Calls return 404" in text_of(as_bob.get(page_of(acme_hook)))


def test_the_form_for_a_new_hook_shows_no_commands(as_bob: Client) -> None:
    assert "curl" not in text_of(as_bob.get(list_of(Hook, "add")))
