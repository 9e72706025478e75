"""Versions and hooks count against the storage quota, and those that nobody needs are deleted."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client, TestCase
from django.utils import timezone

from accounts.models import AuthEvent, Organisation
from core.errors import LimitExceededError
from core.upkeep import do_upkeep
from core.waiting import DatabaseThreads
from hooks.flows.hooks import delete_hook, issue_hook
from hooks.models import Hook
from scripts_engine.definition_quota import ROW_BYTES
from scripts_engine.flows.definitions import forget_definitions
from scripts_engine.flows.scripts import create_script, delete_script, update_script
from scripts_engine.models import Release, Run, RunStorage, Script, ScriptVersion, Trigger
from scripts_engine.runs import quota
from scripts_engine.runs.execution import run_script
from scripts_engine.runs.quota import settle_run_bytes
from scripts_engine.runs.spec import Event, SavedRun
from tests import factories
from tests.concurrency import at_once
from tests.eventually import eventually
from tests.factories import NOBODY, admin_graphql, make_hook, make_script

KIB = 1024
CREATE = 'mutation($source: String!) { createScript(name: "x", source: $source) { id } }'
UPDATE = """mutation($id: ID!, $source: String, $name: String) {
    updateScript(id: $id, source: $source, name: $name) { id } }"""
CREATE_HOOK = "mutation($id: ID!) { createHook(script: $id) { callToken } }"
USED = "{ organisation { runBytesUsed } }"


def counted(organisation: Organisation) -> int:
    return RunStorage.objects.get(pk=organisation.pk).definition_bytes


def stored(organisation: Organisation) -> int:
    versions = ScriptVersion.objects.filter(script__organisation=organisation)
    hooks = Hook.objects.filter(script__organisation=organisation).count()
    sources = sum(len(source.encode()) for source in versions.values_list("source", flat=True))
    releases = sum(
        Release.objects.filter(organisation=organisation).values_list("bytes", flat=True)
    )
    return sources + ROW_BYTES * (versions.count() + hooks) + releases


def source_of(number: int, size: int = 100) -> str:
    return f"return {number} -- ".ljust(size, "-")


def save(script: Script, *numbers: int, size: int = 100) -> Script:
    for number in numbers:
        script = update_script(script, author=NOBODY, source=source_of(number, size))
    return script


def numbers_of(script: Script) -> list[int]:
    return sorted(script.versions.values_list("number", flat=True))


def create_until_refused(create: Callable[[], None]) -> int:
    """How often it was possible, of 20 times."""
    for created in range(20):
        try:
            create()
        except LimitExceededError:
            return created
    return 20


def age(rows: Any) -> None:
    rows.update(deleted_at=timezone.now() - timedelta(hours=2))


def age_releases() -> None:
    """Only those stay that put live what is live."""
    Release.objects.update(at=timezone.now() - timedelta(days=401))


def age_versions() -> None:
    ScriptVersion.objects.update(created_at=timezone.now() - timedelta(hours=2))


@pytest.mark.django_db
def test_versions_and_hooks_are_counted_in_bytes(acme: Organisation, acme_token: str) -> None:
    script = save(make_script(acme), 1, 2)
    save(script, 2)
    make_hook(script)

    assert (script.versions.count(), counted(acme)) == (3, stored(acme))
    assert admin_graphql(USED, acme_token).data["organisation"]["runBytesUsed"] == stored(acme)


@pytest.mark.django_db
def test_what_does_not_fit_the_quota_is_refused_and_changes_nothing(
    acme: Organisation, acme_token: str, settings: Any
) -> None:
    twin, script = make_script(acme, name="twin"), make_script(acme)
    before = counted(acme)
    update_script(twin, source=source_of(1, 2 * KIB), author=NOBODY)
    growth = counted(acme) - before
    settings.RUN_BYTES_PER_ORGANISATION = counted(acme) + growth
    source, events = source_of(1, 2 * KIB + 1), AuthEvent.objects.count()
    answers = [
        admin_graphql(CREATE, acme_token, source=source_of(1, 4 * KIB)),
        admin_graphql(UPDATE, acme_token, id=str(script.pk), source=source, name="next"),
    ]
    settings.RUN_BYTES_PER_ORGANISATION = counted(acme) + KIB - 1
    answers.append(admin_graphql(CREATE_HOOK, acme_token, id=str(script.pk)))

    assert [answer.code for answer in answers] == ["LIMIT_EXCEEDED"] * 3
    assert "use up its storage quota" in answers[0].errors[0]["message"]
    assert set(Script.objects.values_list("name", flat=True)) == {"twin", "echo"}
    assert (ScriptVersion.objects.count(), Hook.objects.count()) == (3, 0)
    assert (counted(acme), AuthEvent.objects.count()) == (stored(acme), events)
    settings.RUN_BYTES_PER_ORGANISATION = counted(acme) + growth
    fits = admin_graphql(UPDATE, acme_token, id=str(script.pk), source=source_of(1, 2 * KIB))
    assert (fits.code, counted(acme)) == (None, settings.RUN_BYTES_PER_ORGANISATION)


@pytest.mark.django_db
def test_creating_and_deleting_in_turn_does_not_escape_the_quota(
    acme: Organisation, settings: Any
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 40 * KIB
    scripts = create_until_refused(lambda: delete_script(make_script(acme, "return 1")))
    script_rows = Script.objects.count()
    age(Script.objects.all())
    age_releases()
    forget_definitions()
    settings.RUN_BYTES_PER_ORGANISATION = 12 * KIB
    script = make_script(acme)
    hooks = create_until_refused(lambda: delete_hook(issue_hook(script).hook))

    # Each takes a version or a hook, and two releases.
    assert scripts == script_rows == 12
    assert (Script.objects.count(), Hook.objects.count()) == (1, hooks)
    assert 0 < hooks < 12 / 3
    assert counted(acme) == stored(acme)


@pytest.mark.django_db
def test_payloads_of_runs_make_room_for_versions(
    acme: Organisation, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "STEP_BYTES", 1)
    script = make_script(acme)
    with TestCase.captureOnCommitCallbacks(execute=True):
        run = factories.run_lua(acme, "return ('x'):rep(20000)")
    settings.RUN_BYTES_PER_ORGANISATION = 40 * KIB
    settle_run_bytes()
    kept = Run.objects.get(pk=run.pk).payload_bytes
    save(script, 1, size=30 * KIB)
    settle_run_bytes()

    assert kept
    assert Run.objects.get(pk=run.pk).payload_bytes == 0


@pytest.mark.django_db
def test_upkeep_keeps_the_newest_versions_and_those_that_runs_name(
    acme: Organisation, globex: Organisation, client: Client, settings: Any
) -> None:
    settings.VERSIONS_KEPT_PER_SCRIPT = 3
    script = save(make_script(acme), 1)
    hook, call_token = make_hook(script)
    path = "/hook/" + hook.url_with(call_token).split("/hook/")[1]
    assert client.post(path).status_code == 200
    save(script, 2, 3, 4, 5)
    few, other = save(make_script(acme), 1, 2), save(make_script(globex), 1, 2, 3)
    age_versions()
    age_releases()
    done = do_upkeep((forget_definitions,))

    # Releases whose version is not live any more, and versions.
    assert (done.failed, done.done) == ([], {"forget_definitions": 11 + 3})
    assert (numbers_of(script), numbers_of(few)) == ([2, 4, 5, 6], [1, 2, 3])
    assert numbers_of(other) == [2, 3, 4]
    assert (counted(acme), counted(globex)) == (stored(acme), stored(globex))
    run = Run.objects.get()
    assert run.script_version is not None
    assert run.script_version.number == 2
    Run.objects.all().delete()
    forget_definitions()
    assert numbers_of(script) == [4, 5, 6]


@pytest.mark.django_db
def test_deleted_scripts_and_hooks_go_with_their_last_run(acme: Organisation) -> None:
    deleted, kept = save(make_script(acme), 1, 2), save(make_script(acme), 1, 2)
    make_hook(deleted)
    unused = make_hook(kept).hook
    used = make_hook(kept, "used").hook
    run = factories.run_lua(acme, "return 1")
    Run.objects.filter(pk=run.pk).update(
        script=deleted, script_version=deleted.versions.get(number=1), hook_id=used.pk
    )
    for each in (unused, used):
        delete_hook(each)
    delete_script(deleted)
    age_releases()
    releases = Release.objects.count()
    at_first = forget_definitions()
    releases -= Release.objects.count()
    age(Script.objects.filter(pk=deleted.pk))
    age(Hook.objects.filter(deleted_at__isnull=False))
    while_named = forget_definitions()
    numbers = numbers_of(deleted)
    Run.objects.all().delete()
    forget_definitions()

    # The version between the one that the run names and the current one, and two hooks.
    assert (at_first, while_named, numbers) == (releases, 3, [1, 3])
    assert not Script.objects.filter(pk=deleted.pk).exists()
    assert not Hook.objects.exists()
    assert numbers_of(kept) == [1, 2, 3]
    assert counted(acme) == stored(acme)


# The release that put live what is live names the version before it.
@pytest.mark.parametrize(("is_deleted", "kept"), [(False, [2, 3, 4]), (True, [2, 4])])
@pytest.mark.django_db
def test_a_version_that_a_call_in_progress_runs_is_kept(
    acme: Organisation, settings: Any, is_deleted: bool, kept: list[int]
) -> None:
    settings.VERSIONS_KEPT_PER_SCRIPT = 1
    script = save(make_script(acme), 1)
    in_progress = SavedRun.of_script(script, trigger=Trigger.HOOK)
    save(script, 2, 3)
    if is_deleted:
        delete_script(script)
    forget_definitions()
    run_script(in_progress, Event("POST", "", (), b"", ""))
    age_versions()
    age_releases()
    age(Script.objects.filter(deleted_at__isnull=False))
    releases = Release.objects.count()
    forgotten = forget_definitions()
    releases -= Release.objects.count()

    run = Run.objects.select_related("script_version").get()
    assert run.script_version is not None
    assert run.script_version.source == source_of(1)
    assert (numbers_of(script), forgotten) == (kept, 4 - len(kept) + releases)


@pytest.mark.django_db(transaction=True)
def test_concurrent_saves_do_not_exceed_the_quota(acme: Organisation, settings: Any) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 12 * KIB

    def create(number: int) -> bool:
        try:
            source = source_of(number, 3 * KIB)
            create_script(acme, name=f"x{number}", source=source, author=NOBODY)
        except LimitExceededError:
            return False
        return True

    assert at_once(6, create).count(True) == 2
    assert (Script.objects.count(), counted(acme)) == (2, stored(acme))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no row locks")
@pytest.mark.django_db(transaction=True)
def test_a_new_hook_comes_after_a_save_of_its_script_without_a_deadlock(acme: Organisation) -> None:
    script = make_script(acme)
    with DatabaseThreads(1) as threads:
        with transaction.atomic():
            update_script(script, author=NOBODY, name="new")
            creation = threads.submit(issue_hook, Script.objects.get(pk=script.pk))
            eventually(waits_for_a_lock)
            save(script, 1)
        hook = creation.result().hook

    assert hook == Hook.objects.get()
    assert (script.versions.count(), counted(acme)) == (2, stored(acme))


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])
