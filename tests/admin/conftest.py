"""Who enters the admin: root (superuser), bob (Acme), charlie (Globex); and what Globex owns."""

from typing import Any

import pytest
from django.test import Client

from accounts.flows.users import update_user
from accounts.models import Organisation, Role, User
from hooks.models import Hook
from scripts_engine.models import Script
from tests import factories
from tests.admin import pages
from tests.one_of_each import one_of_each


@pytest.fixture(autouse=True)
def _plain_static_files(settings: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Any) -> None:
    """Nearly every test here makes a superuser; a hash that is good takes a third of a second."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


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
    """Of Globex, and a member of Acme too."""
    dora = factories.make_user(globex, "dora@example.com", name="Dora", phone="+491709999999")
    dora.memberships.create(organisation=acme)
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
def acme_script(script: Script) -> Script:
    return script


@pytest.fixture
def acme_hook(hook: Hook) -> Hook:
    return hook


@pytest.fixture
def acme_objects(acme: Organisation, bob: User) -> dict[type, Any]:
    return one_of_each(acme)


@pytest.fixture
def globex_objects(globex: Organisation, charlie: User) -> dict[type, Any]:
    """One of each model, all of Globex, and all recognisable by the name."""
    return one_of_each(globex)
