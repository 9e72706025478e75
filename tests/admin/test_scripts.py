from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.models import Organisation, User
from hooks.models import Hook
from scripts_engine.models import Release, Run, Script, ScriptVersion
from scripts_engine.sandbox import SandboxBusy, SandboxPool, SandboxUnavailable
from tests.admin.pages import CONFIRMED, action_on, list_of, page_of, run_of, text_of


def form_of(script: Script, **changes: str) -> dict[str, Any]:
    form = {"name": script.name, "source": script.source, "timeout_seconds": "10"}
    return {**form, "is_enabled": "on", **changes}


def new_script(organisation: Organisation, **changes: str) -> dict[str, Any]:
    form = {"name": "orders", "source": "return 1", "timeout_seconds": "3", "is_enabled": "on"}
    return {**form, "organisation": str(organisation.pk), **changes}


def test_bob_writes_a_script(as_bob: Client, bob: User, acme: Organisation) -> None:
    response = as_bob.post(list_of(Script, "add"), new_script(acme))

    script = Script.objects.get()
    assert response.status_code == 302
    assert (script.organisation, script.source, script.timeout_seconds) == (acme, "return 1", 3)
    assert script.current_version is not None
    assert (script.current_version.number, script.current_version.created_by) == (1, bob)
    assert LogEntry.objects.get().object_id == str(script.pk)


def test_a_script_may_begin_disabled(as_bob: Client, acme: Organisation) -> None:
    as_bob.post(list_of(Script, "add"), new_script(acme, is_enabled=""))

    assert not Script.objects.get().is_enabled


def test_a_syntax_error_is_shown_with_its_line_and_nothing_is_saved(
    as_bob: Client, acme: Organisation
) -> None:
    source = "local a = 1\r\n\r\nlocal = 2\r\n"

    response = as_bob.post(list_of(Script, "add"), new_script(acme, source=source))

    assert response.status_code == 200
    assert "Line 3: &lt;name&gt; expected near &#x27;=&#x27;" in text_of(response)
    assert "local = 2" in text_of(response)
    assert not Script.objects.exists()


def test_a_source_that_is_too_long_is_refused_at_the_field(
    as_bob: Client, acme: Organisation
) -> None:
    response = as_bob.post(list_of(Script, "add"), new_script(acme, source="-" * 70_000))

    assert response.status_code == 200
    assert "A source may have at most" in text_of(response)
    assert not Script.objects.exists()


def test_a_changed_source_is_a_new_version(as_bob: Client, bob: User, acme_script: Script) -> None:
    response = as_bob.post(page_of(acme_script), form_of(acme_script, source="return 2\r\n"))

    acme_script.refresh_from_db()
    assert response.status_code == 302
    assert acme_script.source == "return 2\n"
    assert [version.number for version in acme_script.versions.all()] == [2, 1]
    assert acme_script.versions.get(number=2).created_by == bob


def test_saving_the_same_source_makes_no_version(as_bob: Client, acme_script: Script) -> None:
    as_bob.post(page_of(acme_script), form_of(acme_script, name="renamed"))

    acme_script.refresh_from_db()
    assert acme_script.name == "renamed"
    assert ScriptVersion.objects.count() == 1


def test_a_wrong_change_leaves_the_script_as_it_was(as_bob: Client, acme_script: Script) -> None:
    form = form_of(acme_script, name="renamed", source="return (")

    response = as_bob.post(page_of(acme_script), form)

    assert "Line 1: " in text_of(response)
    acme_script.refresh_from_db()
    assert acme_script.name == "echo"
    assert ScriptVersion.objects.count() == 1


def test_a_timeout_over_the_limit_is_refused_at_the_field(
    as_bob: Client, acme_script: Script
) -> None:
    response = as_bob.post(page_of(acme_script), form_of(acme_script, timeout_seconds="60"))

    assert response.status_code == 200
    assert "less than or equal to 25" in text_of(response)


def test_without_a_sandbox_nothing_is_saved_and_the_source_is_kept(
    as_bob: Client, acme_script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*arguments: object) -> None:
        raise SandboxUnavailable

    monkeypatch.setattr(SandboxPool, "check_syntax", unavailable)

    response = as_bob.post(page_of(acme_script), form_of(acme_script, source="return 'kept'"))

    assert response.status_code == 200
    assert "No sandbox slot became free" in text_of(response)
    assert "return &#x27;kept&#x27;" in text_of(response)
    assert ScriptVersion.objects.count() == 1


def test_a_sandbox_that_is_busy_during_saving_is_a_form_error(
    as_bob: Client, acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*arguments: object) -> None:
        raise SandboxBusy(retry_after=1)

    monkeypatch.setattr(SandboxPool, "check_syntax", busy)

    response = as_bob.post(list_of(Script, "add"), new_script(acme, source="return 'kept'"))

    assert response.status_code == 200
    assert "No sandbox slot became free" in text_of(response)
    assert "return &#x27;kept&#x27;" in text_of(response)
    assert not Script.objects.exists()


def test_bob_cannot_move_a_script_to_globex(
    as_bob: Client, acme: Organisation, globex: Organisation, acme_script: Script
) -> None:
    as_bob.post(page_of(acme_script), form_of(acme_script, organisation=str(globex.pk)))

    acme_script.refresh_from_db()
    assert acme_script.organisation == acme


def test_deleting_asks_first(as_bob: Client, acme_script: Script) -> None:
    response = as_bob.get(page_of(acme_script, "delete"))

    assert response.status_code == 200
    assert "Its runs stay readable" in text_of(response)
    acme_script.refresh_from_db()
    assert acme_script.deleted_at is None


def test_deleting_stops_the_script_and_keeps_its_runs(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)

    response = as_bob.post(page_of(acme_hook.script, "delete"), CONFIRMED)

    assert response.status_code == 302
    assert Script.objects.get().deleted_at is not None
    assert as_bob.get(page_of(acme_hook.script)).status_code == 404
    assert "(deleted)" in text_of(as_bob.get(page_of(run)))


def test_the_list_deletes_selected_scripts(as_bob: Client, acme_hook: Hook) -> None:
    run_of(acme_hook)

    response = as_bob.post(list_of(Script), action_on(acme_hook.script, "delete_selected_by_flow"))

    assert response.status_code == 302
    assert Script.objects.get().deleted_at is not None
    assert Run.objects.count() == 1
    assert LogEntry.objects.get().is_deletion()


def test_djangos_own_deletion_is_not_offered(as_root: Client, acme_script: Script) -> None:
    response = as_root.post(list_of(Script), action_on(acme_script, "delete_selected", post="yes"))

    assert response.status_code == 302
    assert Script.objects.get().deleted_at is None


def test_the_page_leads_to_hooks_runs_and_versions(as_bob: Client, acme_hook: Hook) -> None:
    run = run_of(acme_hook)
    script = acme_hook.script

    text = text_of(as_bob.get(page_of(script)))

    assert page_of(acme_hook) in text
    assert page_of(run) in text
    assert page_of(script.current_version) in text
    assert list_of(Hook, "add") + f"?script={script.pk}" in text


def test_the_list_shows_how_the_last_run_ended(as_bob: Client, acme_hook: Hook) -> None:
    run_of(acme_hook)

    assert "Succeeded" in text_of(as_bob.get(list_of(Script)))


def test_every_column_of_the_panels_has_a_header(as_bob: Client, acme_hook: Hook) -> None:
    text = text_of(as_bob.get(page_of(acme_hook.script)))

    assert "Rotate token" in text
    assert "Changes" in text
    assert text.count('data-label="Actions"') == 2
    assert 'data-label=""' not in text


# --- What another has changed meanwhile ----------------------------------------------------------


def test_the_page_names_the_revision_that_it_shows(as_bob: Client, acme_script: Script) -> None:
    text = text_of(as_bob.get(page_of(acme_script)))

    assert '<input type="hidden" name="expected_revision" value="1"' in text


def test_a_change_of_an_older_revision_is_refused_and_keeps_what_was_typed(
    as_bob: Client, bob: User, acme_script: Script
) -> None:
    as_bob.post(page_of(acme_script), form_of(acme_script, source="return 2"))
    form = form_of(acme_script, name="mine", source="return 'mine'", expected_revision="1")
    response = as_bob.post(page_of(acme_script), form)
    after = Script.objects.get()
    again = as_bob.post(page_of(acme_script), form | {"expected_revision": "2"})

    text = text_of(response)
    assert response.status_code == 200
    assert "“echo” was changed by bob@example.com at " in text
    assert 'value="mine"' in text
    assert "return &#x27;mine&#x27;" in text
    assert '<input type="hidden" name="expected_revision" value="2"' in text
    assert (after.name, after.source, after.revision) == ("echo", "return 2", 2)
    assert again.status_code == 302
    assert Script.objects.get().source == "return 'mine'"


def test_a_name_that_another_script_has_is_refused_at_its_field(
    as_bob: Client, acme: Organisation, acme_script: Script
) -> None:
    response = as_bob.post(list_of(Script, "add"), new_script(acme, name="ECHO"))

    assert response.status_code == 200
    assert "There is one named “ECHO” already. Choose another name." in text_of(response)
    assert Script.objects.get() == acme_script


def test_a_new_script_with_its_settings_is_one_release(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    as_bob.post(list_of(Script, "add"), new_script(acme, is_enabled=""))

    release = Release.objects.get()
    assert release.actor_label == "bob@example.com"
    assert release.changes.get().after["timeoutSeconds"] == 3
