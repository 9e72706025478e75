"""*Update dependents* on the page of a library's version, and pins that it does not reach."""

import pytest
from django.test import Client

from accounts.models import Organisation, Role, User
from hooks.flows.hooks import pin_hook
from scripts_engine.flows.drafts import save_draft
from scripts_engine.flows.scripts import create_script
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.runs.spec import Author
from tests.admin.pages import CONFIRMED, page_of, text_of
from tests.admin.roles import client_of
from tests.factories import NOBODY, make_hook, make_script
from tests.written import nothing_written


@pytest.fixture
def library(acme: Organisation) -> Script:
    return create_script(acme, name="prices", source="return 1", author=NOBODY, is_library=True)


@pytest.fixture
def dependents(acme: Organisation, library: Script) -> list[Script]:
    return [make_script(acme, 'return require("prices")', name) for name in ("shop", "till")]


@pytest.fixture
def draft(library: Script, dependents: list[Script], bob: User) -> ScriptVersion:
    return save_draft(library, "return 2", author=Author(user=bob))


def test_dependents_are_named_then_published_with_the_draft_as_one_release(
    as_bob: Client, bob: User, library: Script, dependents: list[Script], draft: ScriptVersion
) -> None:
    page = page_of(draft, "update_dependents")
    releases = Release.objects.count()
    with nothing_written():
        asked = text_of(as_bob.get(page))
    assert "shop" in asked
    assert "till" in asked

    answer = as_bob.post(page, {**CONFIRMED, "note": "Twice the price"})

    release = Release.objects.latest("number")
    assert answer["Location"] == page_of(release)
    assert Release.objects.count() == releases + 1
    assert (release.note, release.actor_label) == ("Twice the price", bob.email)
    assert {change.object_id for change in release.changes.all()} == {
        library.pk,
        *(script.pk for script in dependents),
    }
    library.refresh_from_db()
    assert library.current_version == draft
    live = [Script.objects.get(pk=script.pk).current_version for script in dependents]
    required = [version.requirements.get().library_version for version in live if version]
    assert required == [draft, draft]


def test_library_that_no_longer_compiles_with_its_dependents_changes_nothing(
    as_bob: Client, acme: Organisation, library: Script, bob: User, dependents: list[Script]
) -> None:
    """The draft requires a library that a dependent, too, requires: a cycle."""
    other = create_script(
        acme, name="other", source='return require("prices")', author=NOBODY, is_library=True
    )
    draft = save_draft(library, "return 3", author=Author(user=bob))
    ScriptVersion.objects.filter(pk=draft.pk).update(source='return require("other")')
    before = (Release.objects.count(), ScriptVersion.objects.count())

    answer = as_bob.post(page_of(draft, "update_dependents"), {**CONFIRMED, "note": ""})

    assert answer.status_code == 200
    assert (Release.objects.count(), ScriptVersion.objects.count()) == before
    assert Script.objects.get(pk=other.pk).current_version == other.current_version


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_update_dependents_is_closed_to_roles_that_do_not_publish(
    acme: Organisation, draft: ScriptVersion, role: Role
) -> None:
    client = client_of(acme, role)

    with nothing_written():
        answers = [
            client.get(page_of(draft, "update_dependents")),
            client.post(page_of(draft, "update_dependents"), CONFIRMED),
        ]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert all("role Author or Administrator" in text_of(answer) for answer in answers)


def test_scripts_page_warns_of_hooks_that_stay_at_a_pinned_version(
    as_bob: Client, dependents: list[Script], draft: ScriptVersion
) -> None:
    shop = dependents[0]
    hook = make_hook(shop, "counter").hook
    pinned = pin_hook(hook, shop.current_version).pinned_version

    as_bob.post(page_of(draft, "update_dependents"), {**CONFIRMED, "note": ""})

    hook.refresh_from_db()
    assert hook.pinned_version == pinned
    text = text_of(as_bob.get(page_of(shop)))
    _, found, panel = text.partition('aria-label="Pinned hooks"')
    assert found
    assert page_of(hook) in panel
    assert "Instead of what is live" in panel
