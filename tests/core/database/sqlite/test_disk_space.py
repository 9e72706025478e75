"""Free pages of SQLite are returned by upkeep, and by `manage.py compact`."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from config.management.commands import compact
from core.database.sqlite import disk_space
from core.upkeep import all_duties
from tests.commands import manage
from tests.eventually import eventually
from tests.moonhook_server import prepare_database
from tests.postgresql import URL, needs_postgresql

FILL = (
    "CREATE TABLE filler (content);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
    " INSERT INTO filler SELECT randomblob(5000) FROM n;"
    "DELETE FROM filler WHERE rowid % 10;"
)


def pragma(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute(f"PRAGMA {name}").fetchone()[0])


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of which nine tenths are free."""
    prepare_database(tmp_path)
    path = tmp_path / "moonhook.sqlite3"
    with closing(sqlite3.connect(path)) as filled:
        filled.executescript(FILL)
    return path


@pytest.fixture
def old_database(database: Path) -> Path:
    """As earlier releases created it."""
    with closing(sqlite3.connect(database)) as old:
        old.executescript("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM;")
        old.executescript("DROP TABLE filler;" + FILL + "PRAGMA journal_mode = WAL;")
    return database


def count_rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return int(database.execute("SELECT count(*) FROM filler").fetchone()[0])


def test_a_new_database_can_return_its_pages(tmp_path: Path) -> None:
    prepare_database(tmp_path)

    assert pragma(tmp_path / "moonhook.sqlite3", "auto_vacuum") == 2


def test_upkeep_returns_pages_but_keeps_some_for_new_rows(database: Path) -> None:
    before = database.stat().st_size
    upkeep = manage(database.parent, "upkeep")

    assert disk_space.return_free_pages in all_duties()
    assert upkeep.returncode == 0, upkeep.stderr
    assert database.stat().st_size < before / 2
    assert pragma(database, "freelist_count") == disk_space.KEPT_PAGES
    assert count_rows(database) == 400


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite")
def test_pages_are_returned_in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "STEP_PAGES", 7)
    monkeypatch.setattr(disk_space, "KEPT_PAGES", 10)
    monkeypatch.setattr(disk_space, "KEPT_SHARE", 10**9)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE filler (content)")
        for _ in range(50):
            cursor.execute("INSERT INTO filler VALUES (randomblob(5000))")
        cursor.execute("DROP TABLE filler")
    free = disk_space.pages().free
    steps: list[int] = []
    returned = disk_space._return_all_but(10, steps.append)

    assert free > 60
    assert returned == free - 10
    assert steps[0] == 7
    assert len(steps) == -(-returned // 7)
    assert disk_space.return_free_pages() == 0


def test_upkeep_leaves_a_database_that_cannot_return_pages(old_database: Path) -> None:
    upkeep = manage(old_database.parent, "upkeep")

    assert "return_free_pages: 0" in upkeep.stdout
    assert pragma(old_database, "freelist_count") > 4000


@pytest.mark.parametrize("kind", ["database", "old_database"])
def test_compact_returns_every_free_page(kind: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    before = path.stat().st_size
    finished = manage(path.parent, "compact")

    assert finished.returncode == 0, finished.stderr
    assert "KiB before" in finished.stdout
    # VACUUM reports no steps of its own: a fast one has ended before its first tenth is seen.
    assert "%" in finished.stderr or kind == "old_database"
    assert path.stat().st_size < before / 4
    assert (pragma(path, "freelist_count"), pragma(path, "auto_vacuum")) == (0, 2)
    assert count_rows(path) == 400


def test_compact_while_others_write_loses_no_write(old_database: Path) -> None:
    is_over = Event()

    def keep_writing() -> int:
        written = 0
        with closing(sqlite3.connect(old_database, timeout=20, isolation_level=None)) as writer:
            while not is_over.is_set():
                writer.execute("INSERT INTO filler VALUES (zeroblob(1))")
                written += 1
                if written == 10:
                    has_begun.set()
        return written

    has_begun = Event()
    with ThreadPoolExecutor(1) as executor:
        writing = executor.submit(keep_writing)
        try:
            eventually(has_begun.is_set)
            finished = manage(old_database.parent, "compact")
        finally:
            is_over.set()

    assert finished.returncode == 0, finished.stderr
    assert count_rows(old_database) == 400 + writing.result()
    assert pragma(old_database, "auto_vacuum") == 2


@pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite")
def test_compact_of_a_large_database_asks_first(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    rewritten: list[object] = []
    monkeypatch.setattr(compact, "rewrite", rewritten.append)
    large = disk_space.Pages(total=10**6, free=0, size_bytes=4096, can_return=False)
    monkeypatch.setattr(compact, "pages", lambda: large)

    with pytest.raises(CommandError, match=r"3906 MiB .* 195 seconds.* Nothing was changed"):
        call_command("compact")
    assert rewritten == []


@pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite")
def test_compact_without_room_for_a_copy_is_refused(
    monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    vast = disk_space.Pages(total=10**15, free=0, size_bytes=4096, can_return=False)
    monkeypatch.setattr(disk_space, "pages", lambda: vast)
    monkeypatch.setattr(compact, "pages", lambda: vast)

    with pytest.raises(CommandError, match=r"MiB of free space\. Nothing was changed"):
        call_command("compact", "--yes")


@needs_postgresql
def test_compact_on_postgresql_says_what_to_do(tmp_path: Path) -> None:
    finished = manage(tmp_path, "compact", DATABASE_URL=URL)

    assert (finished.returncode, finished.stdout) == (1, "")
    assert "VACUUM (FULL)" in finished.stderr
