from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.moonhook_server import MoonhookServer
from tests.servers import MailServer, SmsGateway


@pytest.fixture(scope="module")
def mail_server() -> Iterator[MailServer]:
    with MailServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def gateway() -> Iterator[SmsGateway]:
    with SmsGateway().running() as server:
        yield server


@pytest.fixture(scope="module")
def moonhook(
    tmp_path_factory: pytest.TempPathFactory, mail_server: MailServer, gateway: SmsGateway
) -> Iterator[MoonhookServer]:
    server = MoonhookServer(
        Path(tmp_path_factory.mktemp("data")), EMAIL_URL=mail_server.url, SMS_URL=gateway.url
    )
    with server.running():
        yield server
