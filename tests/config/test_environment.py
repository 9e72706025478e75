from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import (
    database,
    integer,
    integers,
    networks,
    required_in_production,
    usable_cores,
    usable_memory_bytes,
)


def test_a_variable_may_be_read_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("MOONHOOK_TEST_SECRET_FILE", str(tmp_path / "secret"))

    assert required_in_production("MOONHOOK_TEST_SECRET", "production", "") == "from a file"


def test_a_missing_file_is_reported_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOONHOOK_TEST_SECRET_FILE", str(tmp_path / "secret"))

    with pytest.raises(ImproperlyConfigured, match="MOONHOOK_TEST_SECRET_FILE names cannot be"):
        required_in_production("MOONHOOK_TEST_SECRET", "production", "")


def test_a_binary_file_is_refused_without_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_bytes(b"\xff\xfesecret")
    monkeypatch.setenv("MOONHOOK_TEST_SECRET_FILE", str(tmp_path / "secret"))

    with pytest.raises(ImproperlyConfigured, match="it is not text in UTF-8") as raised:
        required_in_production("MOONHOOK_TEST_SECRET", "production", "")

    assert raised.value.__context__ is None or raised.value.__suppress_context__


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "", "0"])
def test_an_invalid_number_is_reported_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("MOONHOOK_TEST_NUMBER", text)

    with pytest.raises(ImproperlyConfigured, match="MOONHOOK_TEST_NUMBER must be a whole number"):
        integer("MOONHOOK_TEST_NUMBER", 5, minimum=1)


def test_an_invalid_network_is_reported_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONHOOK_TEST_NETWORKS", "10.0.0.0/8, foo")

    with pytest.raises(ImproperlyConfigured, match="MOONHOOK_TEST_NETWORKS must list networks"):
        networks("MOONHOOK_TEST_NETWORKS")


def test_a_required_variable_is_optional_in_development(monkeypatch: pytest.MonkeyPatch) -> None:
    assert required_in_production("MOONHOOK_TEST_SECRET", "development", "") is None

    with pytest.raises(ImproperlyConfigured, match=r"MOONHOOK_TEST_SECRET .* is not set\. Hint"):
        required_in_production("MOONHOOK_TEST_SECRET", "production", "Hint")


def test_a_list_of_numbers_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAITS", " 5, 20,60")
    monkeypatch.setenv("NO_WAITS", "")

    assert integers("WAITS", ()) == (5, 20, 60)
    assert integers("NO_WAITS", (1,)) == ()
    assert integers("UNSET_WAITS", (1, 2)) == (1, 2)


@pytest.mark.parametrize("text", ["x", "1,", "1;2", "-1", "1.5"])
def test_an_invalid_list_of_numbers_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("WAITS", text)

    with pytest.raises(ImproperlyConfigured, match="WAITS must list whole numbers"):
        integers("WAITS", ())


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("max 100000", 4), ("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1),
     ("1600000 100000", 4), ("", 4)],
)  # fmt: skip
def test_a_container_limit_bounds_the_cores(
    limit: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    limit_file = tmp_path / "cpu.max"
    limit_file.write_text(limit)

    assert usable_cores(limit_file) == expected
    assert usable_cores(tmp_path / "none") == 4


@pytest.mark.parametrize(("limit", "expected"), [("1048576\n", 1048576), ("max\n", None)])
def test_the_memory_is_that_of_the_container_or_else_the_machine(
    tmp_path: Path, limit: str, expected: int | None
) -> None:
    limit_file = tmp_path / "memory.max"
    limit_file.write_text(limit)
    machine = usable_memory_bytes(tmp_path / "none")

    assert machine > 1048576
    assert usable_memory_bytes(limit_file) == (expected or machine)


def read_database(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    monkeypatch.setenv("DATABASE_URL", url)
    return database(tmp_path, timeout_seconds=10, connect_seconds=5)


@pytest.mark.parametrize(
    ("servers", "hosts", "ports"),
    [
        ("one:5432,two:5433", "one,two", "5432,5433"),
        ("one,two:5433", "one,two", "5432,5433"),
        ("one:5433,two", "one,two", "5433,5432"),
        ("one,two", "one,two", "5432,5432"),
        ("[::1]:5433,[fe80::2]", "::1,fe80::2", "5433,5432"),
    ],
)
def test_each_listed_database_server_has_its_own_port(
    servers: str, hosts: str, ports: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read = read_database(f"postgres://u:p%2Cw@{servers}/name", monkeypatch, tmp_path)

    assert (read["HOST"], read["PORT"]) == (hosts, ports)
    assert (read["USER"], read["PASSWORD"], read["NAME"]) == ("u", "p,w", "name")
    assert read["OPTIONS"]["target_session_attrs"] == "read-write"


def test_options_of_several_database_servers_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = "postgres://u@one,two/name?target_session_attrs=primary&sslmode=require"
    options = read_database(url, monkeypatch, tmp_path)["OPTIONS"]

    assert (options["target_session_attrs"], options["sslmode"]) == ("primary", "require")


def test_a_single_database_server_is_not_asked_what_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read = read_database("postgres://u@one:5433/name", monkeypatch, tmp_path)

    assert (read["HOST"], read["PORT"]) == ("one", 5433)
    assert "target_session_attrs" not in read["OPTIONS"]


@pytest.mark.parametrize("servers", ["one:x,two", "one:70000,two", "[::1,two"])
def test_an_invalid_list_of_database_servers_is_reported(
    servers: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL must list servers like"):
        read_database(f"postgres://u:secret@{servers}/name", monkeypatch, tmp_path)
