"""The cast: Acme with alice (member) and bob (administrator); Globex with charlie."""

import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.servers.basehttp import get_internal_wsgi_application
from django.db import connection
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from accounts.flows.api_keys import IssuedApiKey
from accounts.models import Organisation, Role, User
from accounts.password_hasher import BoundedPasswordHasher
from accounts.rate_limits import limiter
from hooks.flows.call_notes import call_notes
from hooks.models import Hook
from scripts_engine.models import Script
from scripts_engine.sandbox_pool import sandbox_pool
from tests import factories
from tests.client import Client
from tests.databases import empty_tables, place_migrated_database
from tests.postgresql import may_differ_on_postgresql
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


_EVERYDAY = "not slow and not browser and not conformance"
_NONE_OF_EVERYDAY = re.compile(
    r"^pytestmark = \[?\s*pytest\.mark\.(slow|browser|conformance)\b", re.MULTILINE
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spares everyday runs the import of modules of which they run no test, and of libraries."""
    is_module = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if not is_module or config.option.markexpr != _EVERYDAY:
        return None
    is_named = any(arg.split("::")[0].endswith(collection_path.name) for arg in config.args)
    if is_named or not _NONE_OF_EVERYDAY.search(collection_path.read_text()):
        return None
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what PostgreSQL cannot change, where the tests run on it."""
    if connection.vendor != "postgresql":
        return
    left_out = [item for item in items if not may_differ_on_postgresql(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if may_differ_on_postgresql(item)]


# Less often than by default: nothing that a test leaves behind is worth looking for at once.
gc.set_threshold(50_000, 20, 50)


def pytest_collection_finish() -> None:
    """Spares the garbage collector what stays to the end anyway: modules, and the tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def django_db_keepdb(
    request: pytest.FixtureRequest,
    django_db_keepdb: bool,
    django_db_modify_db_settings: None,
    django_test_environment: None,
    django_db_blocker: DjangoDbBlocker,
) -> bool:
    """Spares each process the migrations: its database is there before it would be made."""
    if connection.vendor != "sqlite" or django_db_keepdb:
        return django_db_keepdb
    with django_db_blocker.unblock():
        place_migrated_database(request.config.cache.mkdir("migrated"))
    return True


@pytest.fixture(autouse=True, scope="session")
def _empty_tables_after_commits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_tables)
        yield


@pytest.fixture(autouse=True, scope="session")
def _quick_passwords() -> Iterator[None]:
    """The product's hashes with one iteration: a good one takes a third of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoundedPasswordHasher, "iterations", 1)
        yield


@pytest.fixture(autouse=True)
def _no_notes_of_other_tests() -> None:
    """Calls are noted after their reply, some in a process that then runs another test."""
    call_notes._take(with_uses=True)
    call_notes._taken.clear()


@pytest.fixture(autouse=True)
def _no_full_counters_of_other_tests() -> None:
    """A process remembers them, and looks whether they still are: one more query."""
    limiter._known_full.clear()


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
    fields = {"name": "Alice", "phone": "+491701234567", "role": Role.MEMBER}
    return factories.make_user(acme, "alice@example.com", **fields)


@pytest.fixture
def bob(acme: Organisation) -> User:
    fields = {"name": "Bob", "role": Role.ADMINISTRATOR}
    return factories.make_user(acme, "bob@example.com", **fields)


@pytest.fixture
def charlie(globex: Organisation) -> User:
    fields = {"name": "Charlie", "phone": "+15550100100"}
    return factories.make_user(globex, "charlie@example.org", **fields)


@pytest.fixture
def acme_key(acme: Organisation) -> IssuedApiKey:
    return factories.make_api_key(acme)


@pytest.fixture
def acme_token(acme_key: IssuedApiKey) -> str:
    """The bearer token of a session of Acme's key."""
    return _session_of_key(acme_key)


@pytest.fixture
def globex_token(globex: Organisation) -> str:
    return _session_of_key(factories.make_api_key(globex))


def _session_of_key(issued: IssuedApiKey) -> str:
    return factories.open_session(factories.api_key_login(issued))


@pytest.fixture
def script(acme: Organisation) -> Script:
    """Acme's, which replies with the body of its call."""
    return factories.make_script(acme)


@pytest.fixture
def hook(script: Script) -> Hook:
    return factories.make_hook(script).hook


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def sms_gateway() -> Iterator[SmsGateway]:
    with SmsGateway().running() as gateway:
        yield gateway
