import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.secret_keys import GeneratedSecrets, parse_peppers

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
def test_invalid_peppers_stop_the_start_and_are_not_printed(text: str) -> None:
    with pytest.raises(ImproperlyConfigured) as raised:
        parse_peppers(text)

    assert KEY not in str(raised.value)


def test_generated_secrets_are_stable_and_readable_by_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secrets.json"
    first = GeneratedSecrets(path).get("SECRET_KEY")

    assert GeneratedSecrets(path).get("SECRET_KEY") == first
    assert len(first) >= 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert parse_peppers(GeneratedSecrets(path).get("MOONHOOK_PEPPERS"))


def test_processes_that_start_together_share_the_secrets(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    with ThreadPoolExecutor(16) as executor:
        read = set(executor.map(lambda _: GeneratedSecrets(path).get("SECRET_KEY"), range(64)))

    assert read == {json.loads(path.read_text())["SECRET_KEY"]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["secrets.json"]
