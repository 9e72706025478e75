"""`manage.py rehearse_upgrade` tries the pending migrations, and never on the real database."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from tests.eventually import eventually
from tests.moonhook_server import ROOT, prepare_database
from tests.postgresql import URL, empty_database, needs_postgresql, url_of

SETTINGS = "from config.settings import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'shop']\n"
GOOD = """
from django.db import migrations, models
class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_first_release")]
    operations = [
        migrations.RunSQL("ALTER TABLE accounts_organisation ADD COLUMN probe integer"),
        migrations.RunSQL("CREATE TABLE shop_new (id integer)"),
    ]
"""
ONLINE = """
from django.db import migrations, connection
def count(apps, schema_editor):
    # Names no database, as a careless migration does.
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_organisation SET probe = 1")
class Migration(migrations.Migration):
    atomic = False
    dependencies = [("shop", "0001_good")]
    operations = [
        migrations.RunSQL("CREATE INDEX IF NOT EXISTS shop_probe ON accounts_organisation (probe)"),
        migrations.RunPython(count),
    ]
"""
BROKEN = """
from django.db import migrations
class Migration(migrations.Migration):
    dependencies = [("shop", "0002_online")]
    operations = [migrations.RunSQL("ALTER TABLE no_such_table ADD COLUMN probe integer")]
"""
SLOW = """
import time
from pathlib import Path
from django.db import migrations
def wait(apps, schema_editor):
    Path({reached!r}).touch()
    time.sleep(600)
class Migration(migrations.Migration):
    dependencies = [("shop", "0002_online")]
    operations = [migrations.RunPython(wait)]
"""
PROBE = "SELECT count(*) FROM django_migrations WHERE app = 'shop'"


@dataclass
class Release:
    """A newer release: with one more app, whose migrations are pending."""

    directory: Path
    url: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        migrations = self.directory / "code" / "shop" / "migrations"
        migrations.mkdir(parents=True)
        (migrations / "__init__.py").touch()
        (migrations.parent / "__init__.py").touch()
        (self.directory / "code" / "newer_settings.py").write_text(SETTINGS)
        self.environment = {
            "PATH": os.environ["PATH"],
            "MOONHOOK_DATA_DIR": str(self.data),
            "PYTHONPATH": str(self.directory / "code"),
        } | ({"DATABASE_URL": self.url} if self.url else {})

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def add(self, name: str, text: str) -> None:
        (self.directory / "code" / "shop" / "migrations" / f"{name}.py").write_text(text)

    def start(self, *command: str, settings: str = "newer_settings") -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env=self.environment | {"DJANGO_SETTINGS_MODULE": settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def rehearse(self) -> tuple[int, str, str]:
        process = self.start("rehearse_upgrade")
        output, errors = process.communicate()
        return process.returncode, output, errors

    def query(self, statement: str) -> list[tuple[object, ...]]:
        if self.url:
            with psycopg.connect(self.url) as database:
                return database.execute(statement.encode()).fetchall()
        with closing(sqlite3.connect(self.data / "moonhook.sqlite3")) as opened:
            return opened.execute(statement).fetchall()

    def copies(self) -> list[object]:
        """What rehearsals have made and not removed."""
        if self.url:
            return self.query(
                "SELECT datname FROM pg_database"
                " WHERE datname LIKE current_database() || '_rehearsal_%'"
            )
        return list(self.data.glob("*rehearsal*"))

    def assert_unchanged(self) -> None:
        columns = (
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_name = 'accounts_organisation'"
            if self.url
            else "SELECT name FROM pragma_table_info('accounts_organisation')"
        )
        assert self.query(PROBE) == [(0,)]
        assert "probe" not in [name for (name,) in self.query(columns)]
        assert self.copies() == []


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param(
            "postgresql",
            marks=[
                needs_postgresql,
                pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is missing"),
            ],
        ),
    ]
)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Release]:
    if request.param == "sqlite":
        prepare_database(tmp_path / "data")
        yield Release(tmp_path)
        return
    with empty_database() as name:
        release = Release(tmp_path, url_of(name))
        migrated = release.start("migrate", "-v0", settings="config.settings")
        _, errors = migrated.communicate()
        assert migrated.returncode == 0, errors
        yield release


def test_pending_migrations_are_tried_and_their_locks_shown(release: Release) -> None:
    release.add("0001_good", GOOD)
    release.add("0002_online", ONLINE)
    status, output, errors = release.rehearse()
    expected = (
        {
            "  accounts_organisation: AccessExclusiveLock, blocks reads and writes",
            "  accounts_organisation: ShareLock, blocks writes",
        }
        if release.url
        else {"  all tables: write lock, blocks writes"}
    )
    lines = output.splitlines()

    assert status == 0, errors
    assert [line.split(":")[0] for line in lines if line.endswith(" s")] == [
        "shop.0001_good",
        "shop.0002_online",
    ]
    assert {line for line in lines if line.startswith("  ")} == expected
    assert lines[-1].startswith("2 migrations can be applied. The database is unchanged")
    release.assert_unchanged()


def test_a_failing_migration_fails_the_rehearsal(release: Release) -> None:
    release.add("0001_good", GOOD)
    release.add("0002_online", ONLINE)
    release.add("0003_broken", BROKEN)
    status, output, errors = release.rehearse()

    assert status == 1
    assert "shop.0002_online" in output
    assert "shop.0003_broken failed: " in errors
    assert "no_such_table" in errors
    assert "The database is unchanged, and the copy is removed." in errors
    release.assert_unchanged()


@pytest.mark.parametrize(
    ("signal_number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_an_interrupted_rehearsal_removes_its_copy(
    release: Release, signal_number: int, expected: int
) -> None:
    reached = release.directory / "reached"
    release.add("0001_good", GOOD)
    release.add("0002_online", ONLINE)
    release.add("0003_slow", SLOW.format(reached=str(reached)))
    process = release.start("rehearse_upgrade")
    try:
        eventually(reached.exists)
        during = release.copies()
        process.send_signal(signal_number)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()

    assert len(during) == 1
    assert process.returncode == expected, errors
    release.assert_unchanged()


def test_nothing_pending_is_nothing_to_rehearse(release: Release) -> None:
    status, output, errors = release.rehearse()

    assert (status, output) == (0, "Nothing to migrate.\n"), errors
    release.assert_unchanged()


@needs_postgresql
def test_a_role_that_may_not_create_databases_gets_the_reason(tmp_path: Path) -> None:
    role = "moonhook_test_without_createdb"
    with empty_database() as name, psycopg.connect(URL, autocommit=True) as server:
        server.execute(f"DROP ROLE IF EXISTS {role}".encode())
        server.execute(f"CREATE ROLE {role} LOGIN".encode())
        server.execute(f'ALTER DATABASE "{name}" OWNER TO {role}'.encode())
        try:
            release = Release(tmp_path, url_of(name).replace("postgres@", f"{role}@"))
            release.add("0001_good", GOOD)
            status, output, errors = release.rehearse()
        finally:
            server.execute(f'ALTER DATABASE "{name}" OWNER TO postgres'.encode())
            server.execute(f"DROP OWNED BY {role}".encode())
            server.execute(f"DROP ROLE {role}".encode())

    assert (status, output) == (1, "")
    assert "a scratch database is needed (CREATEDB): permission denied" in errors
