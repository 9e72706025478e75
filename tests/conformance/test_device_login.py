"""A login by device code with the npm package openid-client, at its own pace."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from accounts.models import ApiKey, Organisation, User
from core.http.origin import NOWHERE
from sessions_api.device_authorization.flows import find_login, refuse_login
from sessions_api.models import DeviceAuthorization
from tests.device_logins import CLIENT, Started, approve

HERE = Path(__file__).resolve().parent
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not (HERE / "node_modules" / "openid-client").exists(),
        reason="the client is not installed: npm ci in this folder",
    ),
]


@pytest.fixture
def bob(bob: User) -> User:
    bob.is_staff = True
    bob.save()
    return bob


@pytest.fixture
def issuer(live_server: Any, settings: Any) -> str:
    settings.PUBLIC_URL = live_server.url
    return str(live_server.url)


@contextmanager
def openid_client(issuer: str) -> Iterator[Iterator[Any]]:
    """The lines that the client prints, as objects."""
    environment = {"ISSUER": issuer, "CLIENT_ID": CLIENT, "SCOPE": "ReadScripts Publish"}
    with subprocess.Popen(
        ["node", "device_login.mjs"],
        cwd=HERE,
        env={"PATH": os.environ["PATH"], **environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield map(json.loads, process.stdout)


def waiting_login(user: User, codes: Any) -> Started:
    row = find_login(user, codes["user_code"], NOWHERE)
    assert isinstance(row, DeviceAuthorization)
    return Started(codes["device_code"], codes["user_code"], row)


def test_openid_client_gets_key_and_session(issuer: str, acme: Organisation, bob: User) -> None:
    with openid_client(issuer) as lines:
        approve(waiting_login(bob, next(lines)), bob, acme, "Publish")
        token = next(lines)

    assert token["scope"] == "Publish"
    assert token["token_type"] == "bearer"
    assert token["key"] == ApiKey.objects.get().key
    assert token["organisation"] == {"id": str(acme.pk), "name": "Acme"}


def test_openid_client_is_told_of_a_refusal(issuer: str, acme: Organisation, bob: User) -> None:
    with openid_client(issuer) as lines:
        refuse_login(waiting_login(bob, next(lines)).row, by=bob, origin=NOWHERE)
        answer = next(lines)

    assert answer == {"error": "access_denied"}
    assert ApiKey.objects.count() == 0
