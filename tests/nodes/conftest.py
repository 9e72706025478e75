"""Three web nodes and a worker on one PostgreSQL."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.node import Node, Worker
from tests.private_servers import PrivateRedis, private_redis
from tests.servers import MailServer

DATABASE = f"moonhook_nodes_{os.getpid()}"


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """Of a database of its own beside that of DATABASE_URL."""
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        pytest.skip("several nodes need PostgreSQL: DATABASE_URL names none")
    name = sql.Identifier(DATABASE)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield urlsplit(server)._replace(path=f"/{DATABASE}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture(scope="module")
def mail_server() -> Iterator[MailServer]:
    with MailServer().running() as server:
        yield server


@pytest.fixture(scope="module", params=["without Redis", "with Redis"])
def redis_server(request: pytest.FixtureRequest) -> Iterator[PrivateRedis | None]:
    if request.param == "without Redis":
        yield None
    else:
        with private_redis() as server:
            yield server


@pytest.fixture(scope="module")
def environment(
    database_url: str, mail_server: MailServer, redis_server: PrivateRedis | None
) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "DATABASE_POOL_SIZE": "12",
        "EMAIL_URL": mail_server.url,
        "TRUSTED_PROXY_COUNT": "1",
        "REDIS_URL": redis_server.url if redis_server else "",
    }


@pytest.fixture(scope="module")
def nodes(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Node]]:
    directory = Path(tmp_path_factory.mktemp("nodes"))
    nodes = [Node(directory / str(number), **environment) for number in range(3)]
    nodes[0].manage("migrate", "-v0")
    # Each begins without failures of an address: the tests share theirs.
    nodes[0].manage("flush", "--no-input", "-v0")
    with ExitStack() as running:
        for node in nodes:
            node.start()
            running.callback(node.stop)
        for node in nodes:
            node.wait_until_ready()
        yield nodes


@pytest.fixture(scope="module")
def worker(
    nodes: list[Node], environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    worker = Worker(Path(tmp_path_factory.mktemp("worker")), **environment)
    worker.start()
    yield worker
    worker.stop()


@pytest.fixture(scope="module")
def organisation_id(nodes: list[Node]) -> str:
    made = json.loads(nodes[0].manage("create_organisation", "Acme", "--json"))
    return str(made["id"])
