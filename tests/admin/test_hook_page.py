"""The page of a hook: its calls of 24 hours, the newest of each kind, its menu, its settings."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation, Role
from hooks.admin.hooks.day import day_of
from hooks.admin.hooks.limits import LimitsForm
from hooks.flows.call_notes import call_notes
from hooks.flows.hooks import IssuedHook
from hooks.models import CredentialUse, Hook, RefusedCall, SigningSecret
from hooks.rules import GROUPS, RULES
from jobs.schedules.schedules import create_schedule
from scripts_engine.models import Run, Script
from tests.admin.pages import page_of, text_of
from tests.admin.roles import client_of
from tests.client import Client
from tests.factories import set_rules
from tests.hooks.github import call, make_github, signed

pytestmark = pytest.mark.postgresql


@pytest.fixture
def github(acme: Organisation) -> IssuedHook:
    """A hook with a verified and a refused call."""
    issued = make_github(acme)
    call(issued)
    call(issued, headers=signed(b"another body"))
    call_notes.write()
    return issued


def words_of(response: Any) -> str:
    return html.unescape(text_of(response))


def field_of(page: Any, name: str) -> str:
    """The opening tag of the element that holds the field."""
    found = re.search(
        rf'<div class="mh-applies-[^>]*>(?=(?:(?!mh-applies).)*name="{name}")',
        text_of(page),
        re.DOTALL,
    )
    assert found is not None
    return found[0]


def test_a_refused_call_does_not_hide_the_verified_one(as_bob: Client, github: IssuedHook) -> None:
    text = words_of(as_bob.get(page_of(github.hook)))

    assert text.index("Verified at") < text.index("Refused at")
    assert page_of(Run.objects.get()) in text
    assert page_of(RefusedCall.objects.get()) in text


def test_calls_of_24_hours_are_counted_by_kind(github: IssuedHook) -> None:
    Run.objects.update(status="failed")
    call(github)

    day = day_of(github.hook)

    assert (day.accepted, day.failed, day.refused_in_words) == (2, 1, "1")
    assert {bar.kind for bar in day.bars.bars} == {"accepted", "failed", "refused"}
    assert all(0 <= bar.y <= day.bars.height - bar.height for bar in day.bars.bars)


def test_older_calls_are_not_counted(github: IssuedHook) -> None:
    RefusedCall.objects.update(at=timezone.now() - timedelta(hours=25))

    assert day_of(github.hook).refused == 0


def test_kept_refused_calls_bound_what_can_be_said(github: IssuedHook) -> None:
    row = RefusedCall.objects.get()
    RefusedCall.objects.bulk_create(
        RefusedCall(
            hook=row.hook,
            script=row.script,
            organisation=row.organisation,
            reason=row.reason,
            method="POST",
        )
        for _ in range(19)
    )

    assert day_of(github.hook).refused_in_words == "20 or more"


def test_the_menu_rotates_switches_and_deletes(as_bob: Client, acme_hook: Hook) -> None:
    text = text_of(as_bob.get(page_of(acme_hook)))

    menu = text[text.index('class="mh-menu"') : text.index("</details>")]
    assert page_of(acme_hook, "rotate") in menu
    assert page_of(acme_hook, "disable") in menu
    assert page_of(acme_hook, "enable") not in menu
    assert page_of(acme_hook, "delete") in menu


def test_a_viewer_sees_outlines_and_no_menu(acme: Organisation, github: IssuedHook) -> None:
    text = words_of(client_of(acme, Role.VIEWER).get(page_of(github.hook)))

    assert "mh-menu" not in text
    assert "Change settings" not in text
    assert "Verified just now." in text
    assert "Refused just now." in text
    assert "Probably the sender has another secret" not in text


@pytest.mark.parametrize(("role", "is_told"), [(Role.VIEWER, False), (Role.OPERATOR, True)])
def test_where_credentials_were_used_from_is_told_with_payloads(
    acme: Organisation, github: IssuedHook, role: Role, is_told: bool
) -> None:
    CredentialUse.objects.filter(hook=github.hook).delete()
    secret = SigningSecret.objects.get(hook=github.hook)
    CredentialUse.objects.create(
        hook=github.hook,
        credential=str(secret.pk),
        last_used_at=timezone.now(),
        last_used_from="203.0.113.9",
        count=1,
    )

    text = words_of(client_of(acme, role).get(page_of(github.hook)))

    assert "used once, last at" in text
    assert ("203.0.113.9" in text) is is_told


def test_each_rule_is_in_one_group_of_the_settings(acme_hook: Hook) -> None:
    groups = LimitsForm(acme_hook, None).groups()

    shown = [field.name for _, fields in groups for _, field in fields]
    assert [title for title, _ in groups] == list(GROUPS)
    assert sorted(shown) == sorted(rule.name for rule in RULES)


def test_defaults_are_placeholders_with_units(as_bob: Client, acme_hook: Hook) -> None:
    text = text_of(as_bob.get(page_of(acme_hook, "limits")))

    assert 'placeholder="1 MiB"' in text
    assert 'placeholder="24 h"' in text


@pytest.mark.parametrize(
    ("sender", "is_hidden"), [("", True), ("github", True), ("stripe", False)], ids=str
)
def test_the_age_of_signatures_is_asked_where_a_time_is_signed(
    as_bob: Client, acme_hook: Hook, sender: str, is_hidden: bool
) -> None:
    set_rules(acme_hook, sender=sender)

    page = as_bob.get(page_of(acme_hook, "limits"))

    assert (" hidden" in field_of(page, "tolerance_seconds")) == is_hidden
    assert (" hidden" in field_of(page, "signed_url")) == (sender == "")


def test_a_field_with_an_error_is_shown_wherever_it_applies(
    as_bob: Client, acme_hook: Hook
) -> None:
    typed = {"methods": ["GET", "POST"], "accepted_status": "999", "burst": "2"}
    page = as_bob.post(page_of(acme_hook, "limits"), typed)

    assert "mh-applies-always" in field_of(page, "accepted_status")
    assert "mh-applies-rate" in field_of(page, "burst")
    assert 'value="2"' in text_of(page)


def test_pages_of_a_hook_and_a_schedule_say_that_no_version_is_live(
    as_bob: Client, acme_hook: Hook
) -> None:
    pages = [
        page_of(each) for each in (acme_hook, create_schedule(acme_hook.script, cron="0 * * * *"))
    ]
    live = [text_of(as_bob.get(page)) for page in pages]
    Script.objects.filter(pk=acme_hook.script_id).update(current_version=None)

    not_live = [text_of(as_bob.get(page)) for page in pages]

    told = "no version of the script is live"
    assert [told in text for text in [*live, *not_live]] == [False, False, True, True]
