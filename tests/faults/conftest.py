from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node import Node
from tests.private_servers import PrivatePostgres, private_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[PrivatePostgres]:
    with private_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def node(postgres: PrivatePostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """On a database that can be stopped."""
    server = Node(
        Path(tmp_path_factory.mktemp("node")),
        DATABASE_URL=postgres.url,
        DATABASE_TIMEOUT="2",
        HTTP_ALLOWED_NETWORKS="127.0.0.1/32",
    )
    server.manage("migrate", "-v0")
    with server.running():
        yield server
