import string

import pytest
from django.test import override_settings

from accounts import credentials
from accounts.credentials import SecretKind

OLD_PEPPER = {1: b"1" * 32}
BOTH_PEPPERS = {2: b"2" * 32, 1: b"1" * 32}


@pytest.mark.parametrize("kind", SecretKind)
def test_a_secret_is_its_prefix_40_random_characters_and_a_checksum(kind: SecretKind) -> None:
    secret = credentials.generate_secret(kind)

    assert secret.startswith(kind)
    assert len(secret) == 4 + 40 + 6
    assert set(secret[4:]) <= set(string.ascii_letters + string.digits)
    assert credentials.is_well_formed(secret, kind)


def test_no_two_secrets_are_alike() -> None:
    secrets = {credentials.generate_secret(SecretKind.SESSION) for _ in range(1000)}

    assert len(secrets) == 1000


def test_every_single_changed_character_is_noticed() -> None:
    secret = credentials.generate_secret(SecretKind.SESSION)
    changed = [
        secret[:i] + ("A" if secret[i] != "A" else "B") + secret[i + 1 :]
        for i in range(len(secret))
    ]

    assert [text for text in changed if credentials.is_well_formed(text, SecretKind.SESSION)] == []


@pytest.mark.parametrize(
    "text", ["", "mhx_", "mhx_" + "0" * 46, "ｍhx_" + "0" * 46, "mhx_" + "é" * 46, None, 5, b"mhx_"]
)
def test_other_text_is_not_a_well_formed_secret(text: object) -> None:
    assert not credentials.is_well_formed(text, SecretKind.SESSION)


def test_a_secret_of_one_kind_is_none_of_another() -> None:
    secret = credentials.generate_secret(SecretKind.API_KEY)

    assert not credentials.is_well_formed(secret, SecretKind.SESSION)


def test_a_digest_matches_its_own_secret_only() -> None:
    secret, other = (credentials.generate_secret(SecretKind.SESSION) for _ in range(2))
    stored = credentials.digest(secret)

    assert credentials.matches(secret, stored)
    assert not credentials.matches(other, stored)
    assert not credentials.matches(secret, None)


def test_secrets_from_before_a_pepper_rotation_still_match() -> None:
    with override_settings(PEPPERS=OLD_PEPPER):
        stored = credentials.digest("mhx_secret")

    with override_settings(PEPPERS=BOTH_PEPPERS):
        assert credentials.matches("mhx_secret", stored)
        assert stored.value in credentials.digests("mhx_secret")
        assert credentials.digest("mhx_secret").pepper_version == 2


def test_secrets_under_a_retired_pepper_are_refused() -> None:
    with override_settings(PEPPERS=BOTH_PEPPERS):
        stored = credentials.digest("mhx_secret")

    with override_settings(PEPPERS=OLD_PEPPER):
        assert not credentials.matches("mhx_secret", stored)


def test_a_pin_is_six_digits_with_leading_zeros() -> None:
    pins = [credentials.derive_pin(number, credentials.newest_pepper()) for number in range(2000)]

    assert {len(pin) for pin in pins} == {6}
    assert all(pin.isdecimal() and pin.isascii() for pin in pins)
    assert any(pin.startswith("0") for pin in pins)


def test_a_code_has_the_same_pin_each_time_and_another_under_another_pepper() -> None:
    with override_settings(PEPPERS=BOTH_PEPPERS):
        pins = [credentials.derive_pin("a code's id", version) for version in (1, 1, 2)]

    assert pins[0] == pins[1] != pins[2]
