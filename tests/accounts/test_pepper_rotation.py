"""Credentials move to a new pepper at their next use."""

from datetime import timedelta

from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from accounts import credentials
from accounts.flows.api_keys import IssuedApiKey
from accounts.models import ApiKey, DeviceToken, Organisation, User
from sessions_api.models import Session
from tests.client import Client
from tests.factories import (
    api_key_login,
    bearer,
    device_login,
    make_device_token,
    make_hook,
    make_script,
    post_session,
)

NEW = {99: b"9" * 32}


def under_new_pepper() -> override_settings:
    return override_settings(PEPPERS=NEW | settings.PEPPERS)


def test_a_key_moves_under_the_newest_pepper(client: Client, acme_key: IssuedApiKey) -> None:
    with under_new_pepper():
        assert post_session(client, api_key_login(acme_key)).status_code == 201
    with override_settings(PEPPERS=NEW):
        assert post_session(client, api_key_login(acme_key)).status_code == 201

    assert ApiKey.objects.get().pepper_version == 99


def test_a_device_moves_under_the_newest_pepper(client: Client, alice: User) -> None:
    login = device_login(make_device_token(alice))
    with under_new_pepper():
        assert post_session(client, login).status_code == 201
    with override_settings(PEPPERS=NEW):
        assert post_session(client, login).status_code == 201

    assert DeviceToken.objects.get().pepper_version == 99


def test_a_session_moves_when_its_use_is_written(acme_token: str) -> None:
    Session.objects.update(last_used_at=timezone.now() - timedelta(minutes=5))
    with under_new_pepper():
        assert Client().get("/session", headers=bearer(acme_token)).status_code == 200
    with override_settings(PEPPERS=NEW):
        assert Client().get("/session", headers=bearer(acme_token)).status_code == 200


def test_a_call_token_moves_with_its_next_call(client: Client, acme: Organisation) -> None:
    hook, call_token = make_hook(make_script(acme))
    path = "/hook/" + hook.url_with(call_token).split("/hook/")[1]
    with under_new_pepper():
        assert client.get(path).status_code == 200
    with override_settings(PEPPERS=NEW):
        assert client.get(path).status_code == 200


def test_a_failure_moves_nothing(client: Client, acme_key: IssuedApiKey) -> None:
    before = ApiKey.objects.values("digest", "pepper_version").get()
    wrong = credentials.generate_secret(credentials.SecretKind.API_KEY)
    with under_new_pepper():
        post_session(client, api_key_login(acme_key, password=wrong))

    assert ApiKey.objects.values("digest", "pepper_version").get() == before
