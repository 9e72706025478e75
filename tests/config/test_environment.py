import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import (
    GeneratedSecrets,
    integer,
    integers,
    networks,
    parse_peppers,
    required_in_production,
    usable_cores,
)

KEY = "ab" * 32


def test_peppers_are_read_newest_first() -> None:
    peppers = parse_peppers(f"2:{KEY}, 1:{'cd' * 32}")

    assert list(peppers) == [2, 1]
    assert peppers[2] == bytes.fromhex(KEY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        KEY,
        f"x:{KEY}",
        f"0:{KEY}",
        f"{2**31}:{KEY}",
        f"1:{KEY},1:{'cd' * 32}",
        f"2:{KEY},1:{KEY}",
        f"2:{KEY},1:{KEY.upper()}",
        "1:abcd",
        "1:zz",
        f"1:{KEY},",
    ],
)
def test_bad_peppers_stop_the_start_and_are_not_printed(text: str) -> None:
    with pytest.raises(ImproperlyConfigured) as raised:
        parse_peppers(text)

    assert KEY not in str(raised.value)


def test_generated_secrets_stay_the_same_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secrets.json"
    first = GeneratedSecrets(path).get("SECRET_KEY")

    assert GeneratedSecrets(path).get("SECRET_KEY") == first
    assert len(first) >= 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert parse_peppers(GeneratedSecrets(path).get("MOONHOOK_PEPPERS"))


def test_processes_that_start_at_once_agree_on_the_secrets(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    with ThreadPoolExecutor(16) as executor:
        got = set(executor.map(lambda _: GeneratedSecrets(path).get("SECRET_KEY"), range(64)))

    assert got == {json.loads(path.read_text())["SECRET_KEY"]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["secrets.json"]


def test_a_required_variable_may_stand_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv("MOONHOOK_TEST_SECRET_FILE", str(tmp_path / "secret"))

    assert required_in_production("MOONHOOK_TEST_SECRET", "production", "") == "from a file"


def test_a_file_that_is_not_there_is_named_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOONHOOK_TEST_SECRET_FILE", str(tmp_path / "secret"))

    with pytest.raises(ImproperlyConfigured, match="MOONHOOK_TEST_SECRET_FILE names cannot be"):
        required_in_production("MOONHOOK_TEST_SECRET", "production", "")


def test_a_file_that_is_not_text_is_refused_without_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_bytes(b"\xff\xfesecret")
    monkeypatch.setenv("MOONHOOK_TEST_SECRET_FILE", str(tmp_path / "secret"))

    with pytest.raises(ImproperlyConfigured, match="it is not text in UTF-8") as raised:
        required_in_production("MOONHOOK_TEST_SECRET", "production", "")

    assert raised.value.__context__ is None or raised.value.__suppress_context__


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "", "0"])
def test_a_bad_number_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MOONHOOK_TEST_NUMBER", text)

    with pytest.raises(ImproperlyConfigured, match="MOONHOOK_TEST_NUMBER must be a whole number"):
        integer("MOONHOOK_TEST_NUMBER", 5, minimum=1)


def test_a_bad_network_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOONHOOK_TEST_NETWORKS", "10.0.0.0/8, foo")

    with pytest.raises(ImproperlyConfigured, match="MOONHOOK_TEST_NETWORKS must list networks"):
        networks("MOONHOOK_TEST_NETWORKS")


def test_development_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_what_is_no_list_of_numbers_stops_the_start(
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
def test_a_containers_limit_counts_as_cores(
    limit: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    limit_file = tmp_path / "cpu.max"
    limit_file.write_text(limit)

    assert usable_cores(limit_file) == expected
    assert usable_cores(tmp_path / "none") == 4
