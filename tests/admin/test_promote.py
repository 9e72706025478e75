"""Promoting scripts from one organisation to another: choose, see the plan, apply it."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Organisation, Role, User
from scripts_engine.flows.scripts import create_script, update_script
from scripts_engine.models import Plan, Release, Script, Secret
from scripts_engine.runs.spec import NOBODY
from tests import factories
from tests.admin.pages import CONFIRMED, everything, list_of, logged_in, page_of, text_of

PROMOTE = reverse("admin:scripts_engine_release_promote")


@pytest.fixture
def staging(bob: User) -> Organisation:
    """Another organisation that bob administers, with a script that reads a secret."""
    staging = factories.make_organisation("Acme staging")
    bob.memberships.create(organisation=staging, role=Role.ADMINISTRATOR)
    source = 'return secrets.get("SHOP_KEY")'
    create_script(staging, name="orders", source=source, author=NOBODY)
    return staging


def places(staging: Organisation, acme: Organisation) -> dict[str, Any]:
    return {"source": str(staging.pk), "target": str(acme.pk)}


def plan_page(plan: Plan) -> str:
    return reverse("admin:scripts_engine_release_plan", args=[plan.pk])


@pytest.fixture
def plan(as_bob: Client, staging: Organisation, acme: Organisation) -> Plan:
    as_bob.post(PROMOTE, {**places(staging, acme), "scripts": ["orders"]})
    return Plan.objects.get()


def test_author_of_one_organisation_is_told_what_is_needed(as_bob: Client) -> None:
    answer = as_bob.get(PROMOTE)

    assert "you have it in 1" in text_of(answer)


def test_scripts_of_the_source_are_offered(
    as_bob: Client, staging: Organisation, acme: Organisation
) -> None:
    text = text_of(as_bob.get(PROMOTE, places(staging, acme)))

    assert 'name="scripts" value="orders"' in text
    assert not Plan.objects.exists()


def test_plan_shows_what_would_change_and_which_secrets_are_missing(
    as_bob: Client, acme: Organisation, plan: Plan
) -> None:
    text = text_of(as_bob.get(plan_page(plan)))

    assert "Script “orders” created" in text
    assert "+return secrets.get" in text
    add_secret = list_of(Secret, "add") + f"?organisation={acme.pk}&amp;name=SHOP_KEY"
    assert add_secret in text
    assert not Script.objects.of_organisation(acme).exists()


def test_plan_is_applied_as_one_release(
    as_bob: Client, bob: User, acme: Organisation, plan: Plan
) -> None:
    answer = as_bob.post(plan_page(plan), {**CONFIRMED, "note": "From staging"})

    release = Release.objects.of_organisation(acme).get()
    assert answer["Location"] == page_of(release)
    assert (release.note, release.actor_label) == ("From staging", bob.email)
    script = Script.objects.of_organisation(acme).get()
    assert (script.name, script.is_enabled) == ("orders", False)


def test_applied_plan_is_not_there_any_more(as_bob: Client, plan: Plan) -> None:
    as_bob.post(plan_page(plan), CONFIRMED)

    answer = as_bob.post(plan_page(plan), CONFIRMED)

    assert answer.status_code == 404
    assert "This plan is not there any more" in text_of(answer)


def test_expired_plan_is_told_politely(as_bob: Client, acme: Organisation, plan: Plan) -> None:
    Plan.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    answer = as_bob.post(plan_page(plan), CONFIRMED)

    assert answer.status_code == 404
    assert "Make another plan" in text_of(answer)
    assert not Script.objects.of_organisation(acme).exists()


def test_plan_after_a_change_is_a_conflict_that_names_it(
    as_bob: Client, staging: Organisation, acme: Organisation
) -> None:
    script = create_script(acme, name="orders", source="return 1", author=NOBODY)
    as_bob.post(PROMOTE, {**places(staging, acme), "scripts": ["orders"]})
    update_script(script, author=NOBODY, source="return 2")
    before = everything()

    answer = as_bob.post(plan_page(Plan.objects.get()), CONFIRMED)

    assert "Changed since the plan was made: “orders” (script)." in text_of(answer)
    assert everything() == before


def test_organisation_without_the_role_is_no_choice(
    as_bob: Client, staging: Organisation, globex: Organisation
) -> None:
    before = everything()

    answer = as_bob.post(PROMOTE, {**places(staging, globex), "scripts": ["orders"]})

    assert "Select a valid choice" in text_of(answer)
    assert everything() == before


def test_plan_of_globex_is_out_of_reach(staging: Organisation, charlie: User, plan: Plan) -> None:
    as_charlie = logged_in(charlie)
    before = everything()

    answer = as_charlie.post(plan_page(plan), CONFIRMED)

    assert answer.status_code == 404
    assert everything() == before


def test_viewer_is_told_the_role(acme: Organisation, bob: User) -> None:
    bob.memberships.update(role=Role.VIEWER)

    answer = logged_in(bob).get(PROMOTE)

    assert answer.status_code == 403
    assert "This needs the role Author or Administrator" in text_of(answer)


def test_url_of_a_new_hook_is_shown_once(
    as_bob: Client, staging: Organisation, acme: Organisation
) -> None:
    factories.make_hook(Script.objects.of_organisation(staging).get(), "shop")
    as_bob.post(PROMOTE, {**places(staging, acme), "scripts": ["orders"]})

    shown = as_bob.post(plan_page(Plan.objects.get()), CONFIRMED, follow=True)
    again = as_bob.get(shown.request["PATH_INFO"])

    assert "/hook/" in text_of(shown)
    assert "mhc_" in text_of(shown)
    assert "mhc_" not in text_of(again)
    assert "cannot be shown again" in text_of(again)
