"""Who enters the admin: root (superuser), bob (Acme), charlie (Globex); and what Globex owns."""

from typing import Any

import pytest
from django.test import Client

from accounts.flows.update_user import update_user
from accounts.models import (
    ApiKey,
    AuthEvent,
    AuthEventKind,
    DeviceToken,
    Organisation,
    PinChallenge,
    PinFailures,
    Role,
    User,
)
from scripts_engine.flows.set_secret import set_secret
from scripts_engine.models import Hook, Run, Script, ScriptVersion, Secret, StoredValue
from sessions_api.models import Session
from tests import factories
from tests.admin import pages


@pytest.fixture(autouse=True)
def _plain_static_files(settings: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


def _make_staff(user: User) -> User:
    user.is_staff = True
    user.save()
    return user


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root@example.com", "a password of root")


@pytest.fixture
def bob(bob: User) -> User:
    return _make_staff(bob)


@pytest.fixture
def charlie(charlie: User, globex: Organisation) -> User:
    update_user(globex, charlie, role=Role.ADMINISTRATOR)
    return _make_staff(charlie)


@pytest.fixture
def erin(acme: Organisation) -> User:
    """Staff, but a plain member: an administrator of nothing."""
    return _make_staff(factories.make_user(acme, "erin@example.com", name="Erin"))


@pytest.fixture
def dora(acme: Organisation, globex: Organisation) -> User:
    """A member of Acme and of Globex."""
    dora = factories.make_user(acme, "dora@example.com", name="Dora", phone="+491709999999")
    dora.memberships.create(organisation=globex)
    return dora


@pytest.fixture
def as_root(root: User) -> Client:
    return pages.logged_in(root)


@pytest.fixture
def as_bob(bob: User) -> Client:
    return pages.logged_in(bob)


@pytest.fixture
def as_erin(erin: User) -> Client:
    return pages.logged_in(erin)


@pytest.fixture
def acme_script(acme: Organisation) -> Script:
    return factories.make_script(acme)


@pytest.fixture
def acme_hook(acme_script: Script) -> Hook:
    return factories.make_hook(acme_script).hook


@pytest.fixture
def globex_objects(globex: Organisation, charlie: User) -> dict[type, Any]:
    """One of each model, all of Globex, and all recognisable by the name."""
    user = factories.make_user(
        globex, "globex-member@example.org", name="Globex member", phone="+15550100199"
    )
    key = factories.make_api_key(globex, "Globex key")
    script = factories.make_script(globex, "return 'Globex source'", "Globex script")
    hook = factories.make_hook(script, "Globex hook").hook
    device = factories.make_device_token(user, label="Globex phone").device_token
    factories.make_pin(user)
    factories.open_session(factories.api_key_login(key, email="globex-program@example.org"))
    return {
        Organisation: globex,
        User: user,
        ApiKey: key.api_key,
        AuthEvent: AuthEvent.objects.of_organisation(globex).get(kind=AuthEventKind.API_KEY_ISSUED),
        DeviceToken: device,
        Session: Session.objects.get(),
        Script: script,
        ScriptVersion: script.current_version,
        Hook: hook,
        Run: pages.run_of(hook, body=b"Globex payload"),
        Secret: set_secret(globex, name="GLOBEX_KEY", value="Globex value"),
        StoredValue: StoredValue.objects.create(
            organisation=globex, key=b"globex key", value='"Globex value"'
        ),
        PinChallenge: PinChallenge.objects.open_for(user.email),
        PinFailures: PinFailures.objects.get(bucket=user.email),
    }
