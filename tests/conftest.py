"""The cast: Acme with alice (member) and bob (administrator); Globex with charlie."""

import gc
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.servers.basehttp import get_internal_wsgi_application

from accounts.flows.api_keys import IssuedApiKey
from accounts.models import Organisation, Role, User
from scripts_engine.flows.call_notes.collector import call_notes
from scripts_engine.sandbox_pool import sandbox_pool
from tests import factories
from tests.client import Client
from tests.servers import SmsGateway

# An example that takes long says that the machine is busy.
hypothesis.settings.register_profile("without a deadline", deadline=None)
hypothesis.settings.load_profile("without a deadline")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs: list[Any]) -> None:
    """Gives each process of a parallel run a data directory of its own, before it reads settings.

    With it come databases, secrets, the outbox and the directory of the metrics.
    """
    for number, spec in enumerate(specs):
        spec.env["MOONHOOK_DATA_DIR"] = str(settings.DATA_DIR / "tests" / str(number))


def pytest_collection_finish() -> None:
    """Spares the garbage collector what stays to the end anyway: modules, and the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_notes_of_other_tests() -> None:
    """Calls are noted after their reply, some in a process that then runs another test."""
    call_notes._take(with_uses=True)
    call_notes._taken.clear()


@pytest.fixture(autouse=True, scope="session")
def _static_files_have_a_directory() -> None:
    """As where `manage.py serve` has collected them: WhiteNoise warns where there is none."""
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)


@pytest.fixture(autouse=True, scope="session")
def _servers_have_the_whole_application(_static_files_have_a_directory: None) -> Iterator[None]:
    """Those of ``live_server`` would have Django's handler alone, which knows no hooks.

    The application is loaded before a test follows the log, which loading configures.
    """
    application = get_internal_wsgi_application()
    with pytest.MonkeyPatch.context() as patch:
        # It wraps Django's handler, and takes every path for a file's where no MEDIA_URL is set.
        patch.setattr("django.test.testcases._MediaFilesHandler", lambda handler: application)
        yield


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
