"""Three web nodes and a worker on one PostgreSQL."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.node import Node, Worker
from tests.postgresql import IS_POSTGRESQL, URL, url_of
from tests.servers import MailServer

DATABASE = f"moonhook_nodes_{os.getpid()}"


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """Of a database of its own on the tests' PostgreSQL server."""
    if not IS_POSTGRESQL:
        pytest.skip("several nodes need PostgreSQL: TEST_POSTGRES_URL and DATABASE_URL name none")
    name = sql.Identifier(DATABASE)
    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield url_of(DATABASE)
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture(scope="module")
def mail_server() -> Iterator[MailServer]:
    with MailServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def environment(database_url: str, mail_server: MailServer) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "DATABASE_POOL_SIZE": "12",
        "EMAIL_URL": mail_server.url,
        "TRUSTED_PROXY_COUNT": "1",
        "HTTP_ALLOWED_NETWORKS": "127.0.0.1/32",
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
