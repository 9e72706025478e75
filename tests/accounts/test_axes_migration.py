"""An installation that counted wrong passwords with django-axes is left without a trace of it."""

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

migration = import_module("accounts.migrations.0009_drop_axes")


@pytest.mark.django_db(transaction=True)
def test_tables_permissions_and_history_of_axes_go() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE axes_accessattempt (id integer PRIMARY KEY)")
        cursor.execute(
            "CREATE TABLE axes_accessattemptexpiration"
            " (attempt_id integer REFERENCES axes_accessattempt (id))"
        )
    content_type = ContentType.objects.create(app_label="axes", model="accessattempt")
    Permission.objects.create(content_type=content_type, codename="view_accessattempt")
    MigrationRecorder(connection).record_applied("axes", "0001_initial")

    with connection.schema_editor() as editor:
        migration.drop_tables(apps, editor)
        migration.forget_app(apps, editor)

    assert not [name for name in connection.introspection.table_names() if "axes" in name]
    assert not ContentType.objects.filter(app_label="axes").exists()
    assert not Permission.objects.filter(codename="view_accessattempt").exists()
    assert not MigrationRecorder(connection).migration_qs.filter(app="axes").exists()


@pytest.mark.django_db(transaction=True)
def test_an_installation_without_it_is_left_alone() -> None:
    before = connection.introspection.table_names()

    with connection.schema_editor() as editor:
        migration.drop_tables(apps, editor)
        migration.forget_app(apps, editor)

    assert connection.introspection.table_names() == before
