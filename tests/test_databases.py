"""Tests that commit leave nothing behind; a database is migrated once and copied."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.test import TransactionTestCase

from accounts.models import Organisation, User
from tests.admin.pages import everything
from tests.databases import empty_tables
from tests.one_of_each import one_of_each

commits = pytest.mark.django_db(transaction=True)


@commits
def test_committed_rows_are_gone_for_the_next_test() -> None:
    objects = one_of_each(Organisation.objects.create(name="Acme"))
    group = Group.objects.create(name="operators")
    group.permissions.add(Permission.objects.all()[0])
    content_type = ContentType.objects.get_for_model(User)
    LogEntry.objects.create(user=objects[User], content_type=content_type, action_flag=1)
    empty_tables(TransactionTestCase)

    assert not any(everything().values())
    assert not Group.objects.exists()
    assert not LogEntry.objects.exists()


@commits
def test_content_types_and_permissions_stay() -> None:
    cached = ContentType.objects.get_for_model(User)
    Organisation.objects.create(name="Acme")
    empty_tables(TransactionTestCase)
    ContentType.objects.clear_cache()

    assert ContentType.objects.get_for_model(User) == cached
    assert Permission.objects.filter(content_type=cached, codename="change_user").exists()


def test_copied_database_has_every_migration(db: None) -> None:
    call_command("migrate", check_unapplied=True, verbosity=0)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="each process migrates on PostgreSQL")
def test_copied_database_keeps_integrity(db: None) -> None:
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert cursor.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
