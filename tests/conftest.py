"""The cast: Acme with alice (member) and bob (administrator); Globex with charlie."""

from collections.abc import Iterator

import pytest
from django.test import Client

from accounts.flows.issue_api_key import IssuedApiKey
from accounts.models import Organisation, Role, User
from scripts_engine.sandbox_pool import sandbox_pool
from tests import factories
from tests.servers import SmsGateway


@pytest.fixture(autouse=True, scope="session")
def _end_sandboxes() -> Iterator[None]:
    yield
    sandbox_pool().close()


@pytest.fixture
def acme(db: None) -> Organisation:
    return factories.make_organisation("Acme")


@pytest.fixture
def globex(db: None) -> Organisation:
    return factories.make_organisation("Globex")


@pytest.fixture
def alice(acme: Organisation) -> User:
    return factories.make_user(
        acme, "alice@example.com", name="Alice", phone="+491701234567", role=Role.MEMBER
    )


@pytest.fixture
def bob(acme: Organisation) -> User:
    return factories.make_user(acme, "bob@example.com", name="Bob", role=Role.ADMINISTRATOR)


@pytest.fixture
def charlie(globex: Organisation) -> User:
    return factories.make_user(globex, "charlie@example.org", name="Charlie", phone="+15550100100")


@pytest.fixture
def acme_key(acme: Organisation) -> IssuedApiKey:
    return factories.make_api_key(acme)


@pytest.fixture
def acme_token(acme_key: IssuedApiKey) -> str:
    """The bearer token of a session of Acme's key."""
    return factories.open_session(factories.api_key_login(acme_key))


@pytest.fixture
def globex_token(globex: Organisation) -> str:
    return factories.open_session(factories.api_key_login(factories.make_api_key(globex)))


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def sms_gateway() -> Iterator[SmsGateway]:
    with SmsGateway().running() as gateway:
        yield gateway
