import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from accounts.models import User
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.runs.spec import NOBODY
from scripts_engine.sandbox import SandboxBusy, SandboxPool
from tests.admin.pages import CONFIRMED, list_of, page_of, text_of


@pytest.fixture
def two_versions(acme_script: Script) -> tuple[ScriptVersion, ScriptVersion]:
    update_script(acme_script, author=NOBODY, source="-- now shorter\nreturn '<new>'")
    second, first = acme_script.versions.all()
    return first, second


def test_the_page_shows_the_diff(
    as_bob: Client, two_versions: tuple[ScriptVersion, ScriptVersion]
) -> None:
    text = text_of(as_bob.get(page_of(two_versions[1])))

    assert '<span class="mh-added">+return &#x27;&lt;new&gt;&#x27;</span>' in text
    assert '<span class="mh-removed">-return params.get(&quot;body&quot;)</span>' in text


def test_the_first_version_is_all_new(
    as_bob: Client, two_versions: tuple[ScriptVersion, ScriptVersion]
) -> None:
    text = text_of(as_bob.get(page_of(two_versions[0])))

    assert '<span class="mh-added">+return params.get(&quot;body&quot;)</span>' in text
    assert "mh-removed" not in text


def test_asking_to_restore_restores_nothing(
    as_bob: Client, two_versions: tuple[ScriptVersion, ScriptVersion]
) -> None:
    response = as_bob.get(page_of(two_versions[0], "restore"))

    assert response.status_code == 200
    assert "becomes the script" in text_of(response)
    assert ScriptVersion.objects.count() == 2


def test_bob_restores_the_first_version(
    as_bob: Client, bob: User, two_versions: tuple[ScriptVersion, ScriptVersion]
) -> None:
    first, _ = two_versions

    response = as_bob.post(page_of(first, "restore"), CONFIRMED)

    script = Script.objects.get()
    assert response["Location"] == page_of(script)
    assert (script.source, script.versions.count()) == (first.source, 3)
    assert script.current_version is not None
    assert script.current_version.created_by == bob
    assert LogEntry.objects.get().change_message == "Restored."


def test_the_current_version_has_nothing_to_restore(
    as_bob: Client, two_versions: tuple[ScriptVersion, ScriptVersion]
) -> None:
    _, current = two_versions

    response = as_bob.post(page_of(current, "restore"), CONFIRMED)

    assert response.status_code == 403
    assert page_of(current, "restore") not in text_of(as_bob.get(page_of(current)))
    assert ScriptVersion.objects.count() == 2


def test_a_deleted_script_stays_deleted(
    as_bob: Client, two_versions: tuple[ScriptVersion, ScriptVersion]
) -> None:
    delete_script(Script.objects.get())

    response = as_bob.post(page_of(two_versions[0], "restore"), CONFIRMED)

    assert response.status_code == 403
    assert Script.objects.get().deleted_at <= timezone.now()
    assert ScriptVersion.objects.count() == 2


def test_a_busy_sandbox_restores_nothing_and_says_so(
    as_bob: Client,
    two_versions: tuple[ScriptVersion, ScriptVersion],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def busy(*arguments: object) -> None:
        raise SandboxBusy(retry_after=1)

    monkeypatch.setattr(SandboxPool, "check_syntax", busy)

    response = as_bob.post(page_of(two_versions[0], "restore"), CONFIRMED, follow=True)

    assert response.status_code == 200
    assert "No sandbox slot became free" in text_of(response)
    assert ScriptVersion.objects.count() == 2


def test_the_scripts_page_leads_to_its_versions(
    as_bob: Client, two_versions: tuple[ScriptVersion, ScriptVersion]
) -> None:
    script = Script.objects.get()

    text = text_of(as_bob.get(page_of(script)))

    assert page_of(two_versions[0]) in text
    assert page_of(two_versions[1]) in text
    assert f"{list_of(ScriptVersion)}?script__id__exact={script.pk}" in text
