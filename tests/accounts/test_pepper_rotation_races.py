"""Concurrent re-hashing: right secrets are accepted, wrong ones refused."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as project_settings

from accounts import credentials
from accounts.flows import authenticate
from accounts.flows.api_keys import IssuedApiKey, revoke_api_key, rotate_api_key
from accounts.models import (
    ApiKey,
    AuthEvent,
    AuthEventKind,
    DeviceToken,
    Organisation,
    RateCounter,
    User,
)
from core.encryption import Cipher, key_version, reencrypt
from core.http.origin import NOWHERE
from hooks.flows.hooks import rotate_call_token
from hooks.models import Hook
from scripts_engine.models import Secret
from scripts_engine.secrets import context_of, decrypt, encrypt, set_secret
from tests.client import Client
from tests.concurrency import at_once
from tests.factories import (
    api_key_login,
    device_login,
    make_device_token,
    make_hook,
    make_script,
    post_session,
)

pytestmark = pytest.mark.django_db(transaction=True)

NEW = 99
AT_ONCE = 24


@pytest.fixture
def new_pepper(settings: Any) -> Callable[[], None]:
    """Puts another pepper in front, after what the test has issued under the first."""

    def put() -> None:
        settings.PEPPERS = {NEW: b"9" * 32, **project_settings.PEPPERS}

    return put


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Does something once, between a login's look at its credential and its hold on it."""

    def between(function: str, action: Callable[[], object]) -> None:
        original, waiting = getattr(authenticate, function), [action]

        def look(*arguments: Any, **options: Any) -> Any:
            found = original(*arguments, **options)
            while waiting:
                waiting.pop()()
            return found

        monkeypatch.setattr(f"sessions_api.flows.{function}", look)

    return between


def statuses(login: dict[str, Any]) -> list[int]:
    return at_once(AT_ONCE, lambda _: post_session(Client(), login).status_code)


def refusals() -> list[str]:
    refused = AuthEvent.objects.filter(kind=AuthEventKind.SESSION_REFUSED)
    return list(refused.values_list("reason", flat=True))


def test_a_right_key_passes_however_many_logins_move_its_digest(
    acme_key: IssuedApiKey, new_pepper: Callable[[], None]
) -> None:
    new_pepper()

    assert statuses(api_key_login(acme_key)) == [201] * AT_ONCE
    assert ApiKey.objects.get().pepper_version == NEW
    assert refusals() == []
    assert not RateCounter.objects.filter(key__contains="login-failure").exists()


def test_a_right_device_token_passes_however_many_logins_move_its_digest(
    alice: User, new_pepper: Callable[[], None]
) -> None:
    login = device_login(make_device_token(alice))
    new_pepper()

    assert statuses(login) == [201] * AT_ONCE
    assert DeviceToken.objects.get().pepper_version == NEW
    assert refusals() == []


def test_a_login_overtaken_by_a_sibling_is_judged_by_the_moved_digest(
    acme_key: IssuedApiKey, new_pepper: Callable[[], None], meanwhile: Any
) -> None:
    new_pepper()
    login = api_key_login(acme_key)
    meanwhile("authenticate_api_key", lambda: post_session(Client(), login))

    assert post_session(Client(), login).status_code == 201
    assert refusals() == []


def test_a_login_overtaken_by_a_rotation_with_an_overlap_passes(
    acme_key: IssuedApiKey, meanwhile: Any
) -> None:
    meanwhile(
        "authenticate_api_key",
        lambda: rotate_api_key(acme_key.api_key, overlap_seconds=60, origin=NOWHERE),
    )

    assert post_session(Client(), api_key_login(acme_key)).status_code == 201
    assert ApiKey.objects.get().last_used_at is not None


def test_a_login_overtaken_by_a_rotation_brings_no_old_secret_back(
    acme_key: IssuedApiKey, new_pepper: Callable[[], None], meanwhile: Any
) -> None:
    new_pepper()
    rotated: list[str] = []
    meanwhile(
        "authenticate_api_key",
        lambda: rotated.append(rotate_api_key(acme_key.api_key, origin=NOWHERE).secret),
    )

    assert post_session(Client(), api_key_login(acme_key)).status_code == 401
    assert refusals() == ["wrong-secret"]
    assert ApiKey.objects.get().has_secret(rotated[0])
    assert not ApiKey.objects.get().has_secret(acme_key.secret)
    assert ApiKey.objects.get().last_used_at is None


def test_a_login_overtaken_by_a_revocation_is_refused(
    acme_key: IssuedApiKey, meanwhile: Any
) -> None:
    meanwhile("authenticate_api_key", lambda: revoke_api_key(acme_key.api_key, origin=NOWHERE))

    assert post_session(Client(), api_key_login(acme_key)).status_code == 401
    assert refusals() == ["revoked"]
    assert ApiKey.objects.get().sessions.count() == 0


def test_a_device_login_overtaken_by_a_new_login_on_the_device_is_refused(
    alice: User, meanwhile: Any
) -> None:
    issued = make_device_token(alice)
    device = issued.device_token.device
    meanwhile("authenticate_device", lambda: make_device_token(alice, device))

    assert post_session(Client(), device_login(issued)).status_code == 401
    assert refusals() == ["revoked"]
    assert issued.device_token.sessions.count() == 0


def test_a_right_call_token_passes_however_many_calls_move_its_digest(
    acme: Organisation, new_pepper: Callable[[], None]
) -> None:
    hook, call_token = make_hook(make_script(acme))
    path = "/hook/" + hook.url_with(call_token).split("/hook/")[1]
    new_pepper()
    answers = at_once(AT_ONCE, lambda _: Client().head(path).status_code)

    assert answers == [200] * AT_ONCE
    assert Hook.objects.get().pepper_version == NEW


def test_concurrent_rotations_of_a_key_leave_the_last_secret_valid(
    acme_key: IssuedApiKey, new_pepper: Callable[[], None]
) -> None:
    new_pepper()
    login = api_key_login(acme_key)

    def act(number: int) -> str | int:
        if number % 6:
            return int(post_session(Client(), login).status_code)
        return rotate_api_key(acme_key.api_key, overlap_seconds=600, origin=NOWHERE).secret

    secrets = [outcome for outcome in at_once(12, act) if isinstance(outcome, str)]

    good = [secret for secret in secrets if ApiKey.objects.get().has_secret(secret)]
    assert len(good) == len(secrets) == 2


def test_concurrent_rotations_of_a_call_token_leave_the_last_token_valid(
    acme: Organisation, new_pepper: Callable[[], None]
) -> None:
    hook, call_token = make_hook(make_script(acme))
    path = "/hook/" + hook.url_with(call_token).split("/hook/")[1]
    new_pepper()

    def act(number: int) -> str | int:
        if number % 6:
            return int(Client().head(path).status_code)
        return rotate_call_token(hook, overlap_seconds=600).call_token

    tokens = [outcome for outcome in at_once(12, act) if isinstance(outcome, str)]
    digests = {Hook.objects.get().digest, Hook.objects.get().previous_digest}

    assert digests == {credentials.digest(token).value for token in tokens}


# --- Secrets of scripts ---------------------------------------------------------------------------


def test_a_secret_that_another_node_sets_meanwhile_is_moved_too(
    acme: Organisation, new_pepper: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_secret(acme, name="SHOP_KEY", value="old")
    context = context_of(acme.pk, "SHOP_KEY")
    # As a node writes it that does not put the new pepper in front yet.
    by_the_other_node = encrypt(b"new", context)
    new_pepper()
    waiting = [by_the_other_node]

    of_cipher = Cipher.encrypt

    def encrypt_late(cipher: Cipher, plaintext: bytes, place: str) -> bytes:
        while waiting:
            Secret.objects.update(ciphertext=waiting.pop())
        return of_cipher(cipher, plaintext, place)

    monkeypatch.setattr(Cipher, "encrypt", encrypt_late)

    assert reencrypt() == 1
    ciphertext = bytes(Secret.objects.get().ciphertext)
    assert (key_version(ciphertext), decrypt(ciphertext, context)) == (NEW, b"new")


def test_moving_secrets_from_several_places_at_once_moves_each_once(
    acme: Organisation, new_pepper: Callable[[], None]
) -> None:
    for number in range(10):
        set_secret(acme, name=f"KEY_{number}", value=str(number))
    new_pepper()
    moved = at_once(4, lambda _: reencrypt())

    assert sum(moved) == 10
    assert {key_version(bytes(secret.ciphertext)) for secret in Secret.objects.all()} == {NEW}
