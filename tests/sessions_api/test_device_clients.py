"""A device client that others wrote: oauthlib's, with requests-oauthlib as its HTTP."""

from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from oauthlib.oauth2 import DeviceClient, OAuth2Error
from requests_oauthlib import OAuth2Session

from accounts.models import ApiKey, Organisation, User
from core.http.origin import NOWHERE
from sessions_api.device_authorization.flows import find_login
from tests.device_logins import CLIENT, Started, approve

SCOPES = ["ReadScripts", "Publish"]


@pytest.fixture
def bob(bob: User) -> User:
    bob.is_staff = True
    bob.save()
    return bob


@pytest.mark.django_db(transaction=True)
def test_oauthlibs_device_client_logs_in(
    live_server: Any,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    acme: Organisation,
    bob: User,
) -> None:
    settings.PUBLIC_URL = live_server.url
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    where = requests.get(
        f"{live_server.url}/.well-known/oauth-authorization-server", timeout=60
    ).json()
    client = DeviceClient(CLIENT, scope=SCOPES)
    form = urlsplit(client.prepare_request_uri(where["device_authorization_endpoint"])).query
    codes = requests.post(
        where["device_authorization_endpoint"],
        form,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        timeout=60,
    ).json()

    with OAuth2Session(client=client) as session:
        with pytest.raises(OAuth2Error, match="authorization_pending"):
            fetch(session, where, codes)
        row = find_login(bob, codes["user_code"], NOWHERE)
        assert row is not None
        approve(Started(codes["device_code"], codes["user_code"], row), bob, acme)
        token = fetch(session, where, codes)
        shown = session.get(f"{live_server.url}/session", timeout=60).json()

    assert token["scope"] == SCOPES
    assert token["key"] == ApiKey.objects.get().key
    assert shown["organisation"] == token["organisation"]


def fetch(session: OAuth2Session, where: dict[str, str], codes: dict[str, str]) -> Any:
    return session.fetch_token(
        where["token_endpoint"], device_code=codes["device_code"], include_client_id=True
    )
