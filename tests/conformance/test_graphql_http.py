"""The public audits of GraphQL over HTTP, against both endpoints of a running server."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.moonhook_server import MoonhookServer
from tests.sessions import machine_token

HERE = Path(__file__).resolve().parent
NODE_MODULES = HERE / "node_modules"

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not NODE_MODULES.exists(), reason="the audits are not installed: npm ci in this folder"
    ),
]


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    with MoonhookServer(tmp_path_factory.mktemp("data")).running() as server:
        yield server


def audit(moonhook: MoonhookServer, path: str, token: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["node", "graphql_http_audit.mjs"],
        cwd=HERE,
        env=moonhook.environment | {"GRAPHQL_URL": moonhook.url + path, "GRAPHQL_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_user_graphql_passes_every_must_and_should(moonhook: MoonhookServer) -> None:
    audited = audit(moonhook, "/user/graphql")

    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "58 of 61 audits passed" in audited.stdout


def test_admin_graphql_passes_every_must_and_should(moonhook: MoonhookServer) -> None:
    audited = audit(moonhook, "/admin/graphql", machine_token(moonhook))

    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "58 of 61 audits passed" in audited.stdout


def test_the_audit_can_fail(moonhook: MoonhookServer) -> None:
    assert audit(moonhook, "/admin/graphql").returncode == 1
