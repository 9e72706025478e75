"""The tests' databases: migrated once and copied, and emptied after tests that commit."""

import hashlib
import shutil
import sqlite3
from collections.abc import Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.color import no_style
from django.db import connection, connections

# A migration may use their code.
_SOURCES_OF_MIGRATIONS = ("core/database/**/*.py",)
# Migrating fills these; no test changes them.
_GIVEN = {ContentType._meta.db_table, Permission._meta.db_table}


def place_migrated_database(directory: Path) -> None:
    """Puts a migrated SQLite database where the tests expect theirs.

    The first process to come migrates it; the others, and later runs with the same migrations,
    copy its file from the directory.
    """
    migrated = directory / f"{_digest_of_migrations()}.sqlite3"
    own = Path(connection.settings_dict["TEST"]["NAME"])
    with (directory / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not migrated.exists():
            for outdated in directory.glob("*.sqlite3"):
                outdated.unlink()
            connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
            unfinished = directory / "unfinished"
            unfinished.unlink(missing_ok=True)
            with connection.cursor() as cursor:
                cursor.execute("VACUUM INTO %s", [str(unfinished)])
            connection.close()
            unfinished.replace(migrated)
    for leftover in (own, Path(f"{own}-wal"), Path(f"{own}-shm")):
        leftover.unlink(missing_ok=True)
    shutil.copyfile(migrated, own)


def _digest_of_migrations() -> str:
    """Differs after each change of what migrating would run."""
    digest = hashlib.sha256(f"{django.VERSION} {sqlite3.sqlite_version}".encode())
    for path in _sources():
        digest.update(f"{path}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    for app in apps.get_app_configs():
        yield from sorted(Path(app.path).glob("migrations/*.py"))
        # Content types and permissions are made of models.
        yield from sorted(Path(app.path).glob("models.py"))
        yield from sorted(Path(app.path).glob("models/*.py"))
    for pattern in _SOURCES_OF_MIGRATIONS:
        yield from sorted(Path(settings.BASE_DIR).glob(pattern))


def empty_tables(test_case: Any) -> None:
    """Ends a test that commits, in place of Django's ``flush``.

    Content types and permissions stay: ``flush`` deletes them and makes them again, which takes
    longer than most of these tests.
    """
    for name in test_case._databases_names(include_mirrors=False):
        operations = connections[name].ops
        tables = _tables_to_empty(name)
        if tables:
            operations.execute_sql_flush(operations.sql_flush(no_style(), tables))


def _tables_to_empty(name: str) -> list[str]:
    introspection = connections[name].introspection
    tables = [
        table
        for table in introspection.django_table_names(only_existing=True, include_views=False)
        if table not in _GIVEN
    ]
    if connections[name].vendor != "sqlite":
        # TRUNCATE must name each table that refers to another.
        return tables
    columns = ", ".join(f'EXISTS(SELECT 1 FROM "{table}")' for table in tables)
    with connections[name].cursor() as cursor:
        [has_rows] = cursor.execute(f"SELECT {columns}").fetchall()
    return [table for table, is_filled in zip(tables, has_rows, strict=True) if is_filled]
