"""Pinning a hook in the admin, and where its pages say so."""

from typing import Any

import pytest
from django.utils import timezone

from hooks.flows.hooks import pin_hook, update_hook
from hooks.models import Hook
from scripts_engine.models import Release, Script, ScriptVersion
from tests.admin.pages import list_of, page_of, text_of
from tests.client import Client
from tests.factories import make_hook, make_organisation, make_script


@pytest.fixture
def hook(acme_script: Script) -> Hook:
    return make_hook(acme_script).hook


def publish(script: Script, **fields: Any) -> ScriptVersion:
    number = script.versions.count() + 1
    published = {"published_at": timezone.now(), **fields}
    return ScriptVersion.objects.create(script=script, number=number, source="", **published)


def pin(client: Client, hook: Hook, version: object, revision: object = "") -> Any:
    form = {"version": str(version), "expected_revision": str(revision)}
    return client.post(page_of(hook, "pin"), form, follow=True)


def test_bob_pins_a_hook_and_every_page_says_so(as_bob: Client, hook: Hook) -> None:
    version = publish(hook.script)
    assert "Pinned to version" not in text_of(as_bob.get(page_of(hook)))

    response = pin(as_bob, hook, version.pk, hook.revision)

    assert "Pinned to version 2" in text_of(response)
    hook.refresh_from_db()
    assert hook.pinned_version == version
    for page in (page_of(hook), list_of(Hook), page_of(hook.script)):
        assert "Pinned to version 2" in text_of(as_bob.get(page))

    pin(as_bob, hook, "", hook.revision)
    hook.refresh_from_db()
    assert hook.pinned_version is None
    assert "Pinned to version" not in text_of(as_bob.get(list_of(Hook)))


def test_only_published_versions_are_offered_and_taken(as_bob: Client, hook: Hook) -> None:
    draft = publish(hook.script, draft_of="user 1", published_at=None)
    theirs = publish(make_script(make_organisation("Initech")))
    releases = Release.objects.count()

    page = text_of(as_bob.get(page_of(hook, "pin")))
    assert str(draft.pk) not in page
    for version in (draft, theirs):
        assert "Select a valid choice" in text_of(pin(as_bob, hook, version.pk))

    hook.refresh_from_db()
    assert (hook.pinned_version, hook.revision) == (None, 1)
    assert Release.objects.count() == releases


def test_a_pin_of_a_hook_that_has_moved_on_is_a_conflict(as_bob: Client, hook: Hook) -> None:
    version = publish(hook.script)
    update_hook(hook, burst=2)

    response = pin(as_bob, hook, version.pk, 1)

    assert "was changed by" in text_of(response)
    assert Hook.objects.get().pinned_version is None
    pin(as_bob, hook, version.pk, 2)
    assert Hook.objects.get().pinned_version == version


def test_the_pin_page_is_closed_to_others(as_bob: Client, hook: Hook, client: Client) -> None:
    version = publish(hook.script)
    theirs = make_hook(make_script(make_organisation("Initech"))).hook

    assert as_bob.get(page_of(theirs, "pin")).status_code == 404
    assert pin(as_bob, theirs, version.pk).status_code == 404
    assert client.get(page_of(hook, "pin")).status_code == 302

    assert not Hook.objects.filter(pinned_version__isnull=False).exists()


def test_a_pinned_version_stays_offered(as_bob: Client, hook: Hook) -> None:
    pin_hook(hook, publish(hook.script))

    assert "Change or unpin" in text_of(as_bob.get(page_of(hook)))
    assert "selected" in text_of(as_bob.get(page_of(hook, "pin")))
