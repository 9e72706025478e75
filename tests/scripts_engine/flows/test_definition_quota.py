"""Versions and hooks count against the storage quota, and those that nobody needs are deleted."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client, TestCase
from django.utils import timezone

from accounts.models import AuthEvent, Organisation, RunStorage
from config.operations.upkeep import do_upkeep
from core.database.threads import DatabaseThreads
from core.errors import LimitExceededError
from scripts_engine.event import Event
from scripts_engine.flows import run_quota
from scripts_engine.flows.definition_quota import ROW_BYTES
from scripts_engine.flows.forget_definitions import forget_definitions
from scripts_engine.flows.hooks import delete_hook, issue_hook
from scripts_engine.flows.run_quota import settle_run_bytes
from scripts_engine.flows.run_script import run_script
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.flows.scripts import create_script, delete_script, update_script
from scripts_engine.models import Hook, Run, Script, ScriptVersion, Trigger
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
    return sources + ROW_BYTES * (versions.count() + hooks)


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
    script = make_script(acme)
    settings.RUN_BYTES_PER_ORGANISATION = counted(acme) + 3 * KIB
    source, events = source_of(1, 2 * KIB + 1), AuthEvent.objects.count()
    answers = [
        admin_graphql(CREATE, acme_token, source=source),
        admin_graphql(UPDATE, acme_token, id=str(script.pk), source=source, name="new"),
    ]
    settings.RUN_BYTES_PER_ORGANISATION = counted(acme) + KIB - 1
    answers.append(admin_graphql(CREATE_HOOK, acme_token, id=str(script.pk)))

    assert [answer.code for answer in answers] == ["LIMIT_EXCEEDED"] * 3
    assert "use up its storage quota" in answers[0].errors[0]["message"]
    assert Script.objects.get().name == "echo"
    assert (ScriptVersion.objects.count(), Hook.objects.count()) == (1, 0)
    assert (counted(acme), AuthEvent.objects.count()) == (stored(acme), events)
    settings.RUN_BYTES_PER_ORGANISATION = counted(acme) + 3 * KIB
    fits = admin_graphql(UPDATE, acme_token, id=str(script.pk), source=source_of(1, 2 * KIB))
    assert (fits.code, counted(acme)) == (None, settings.RUN_BYTES_PER_ORGANISATION)


@pytest.mark.django_db
def test_creating_and_deleting_in_turn_does_not_escape_the_quota(
    acme: Organisation, settings: Any
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 10 * KIB
    scripts = create_until_refused(lambda: delete_script(make_script(acme, "return 1")))
    script_rows = Script.objects.count()
    age(Script.objects.all())
    forget_definitions()
    script = make_script(acme)
    hooks = create_until_refused(lambda: delete_hook(issue_hook(script).hook))

    assert scripts == script_rows == 9
    assert (Script.objects.count(), Hook.objects.count(), hooks) == (1, 8, 8)
    assert counted(acme) == stored(acme)


@pytest.mark.django_db
def test_payloads_of_runs_make_room_for_versions(
    acme: Organisation, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_quota, "STEP_BYTES", 1)
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
    done = do_upkeep((forget_definitions,))

    assert (done.failed, done.done) == ([], {"forget_definitions": 3})
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
    used = make_hook(kept).hook
    run = factories.run_lua(acme, "return 1")
    Run.objects.filter(pk=run.pk).update(
        script=deleted, script_version=deleted.versions.get(number=1), hook=used
    )
    for each in (unused, used):
        delete_hook(each)
    delete_script(deleted)
    at_first = forget_definitions()
    age(Script.objects.filter(pk=deleted.pk))
    age(Hook.objects.filter(deleted_at__isnull=False))
    while_named = forget_definitions()
    numbers = numbers_of(deleted)
    Run.objects.all().delete()
    forget_definitions()

    # The version between the one that the run names and the current one, and two hooks.
    assert (at_first, while_named, numbers) == (0, 3, [1, 3])
    assert not Script.objects.filter(pk=deleted.pk).exists()
    assert not Hook.objects.exists()
    assert numbers_of(kept) == [1, 2, 3]
    assert counted(acme) == stored(acme)


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.django_db
def test_a_version_that_a_call_in_progress_runs_is_kept(
    acme: Organisation, settings: Any, is_deleted: bool
) -> None:
    settings.VERSIONS_KEPT_PER_SCRIPT = 1
    script = save(make_script(acme), 1)
    in_progress = RunSpec.of_script(script, trigger=Trigger.HOOK)
    save(script, 2, 3)
    if is_deleted:
        delete_script(script)
    forget_definitions()
    run_script(in_progress, Event("POST", "", (), b"", ""))
    age_versions()
    age(Script.objects.filter(deleted_at__isnull=False))
    forgotten = forget_definitions()

    run = Run.objects.select_related("script_version").get()
    assert run.script_version is not None
    assert run.script_version.source == source_of(1)
    assert (numbers_of(script), forgotten) == ([2, 4], 2)


@pytest.mark.django_db(transaction=True)
def test_concurrent_saves_do_not_exceed_the_quota(acme: Organisation, settings: Any) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 10 * KIB

    def create(number: int) -> bool:
        try:
            create_script(acme, name="x", source=source_of(number, 3 * KIB), author=NOBODY)
        except LimitExceededError:
            return False
        return True

    assert at_once(6, create).count(True) == 2
    assert (Script.objects.count(), counted(acme)) == (2, stored(acme))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no row locks")
@pytest.mark.django_db(transaction=True)
def test_a_new_hook_and_a_save_of_its_script_do_not_wait_for_each_other(acme: Organisation) -> None:
    script = make_script(acme)
    with DatabaseThreads(1) as threads, transaction.atomic():
        update_script(script, author=NOBODY, name="new")
        creation = threads.submit(issue_hook, Script.objects.get(pk=script.pk))
        eventually(lambda: creation.done() or waits_for_a_lock())
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
