"""The commands of docs/quickstart.md, typed into a shell, print what the page says."""

import shutil
import subprocess
import sys

import pytest

from tests.moonhook_server import ROOT, MoonhookServer

PROGRAMS = ("bash", "curl", "jq", "openssl")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]
# The PIN of the next section comes by mail.
SECTIONS = (ROOT / "docs" / "quickstart.md").read_text().partition("## Log in by PIN")[0]

# What the page waits for: refused calls are written after the answer, and queued runs end.
UNTIL_WRITTEN = """
sleep() {
  command sleep 3
  until admin '{"query": "{ refusedCalls(first: 1) { nodes { id } } }"}' | grep -q '"id"'; do
    command sleep 0.1
  done
}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]


def commands_at(server: MoonhookServer) -> str:
    lines = [line.removeprefix("    ") for line in SECTIONS.splitlines() if line.startswith("    ")]
    return (
        "\n".join(line for line in lines if line != "make run")
        .replace("http://127.0.0.1:8000", server.url)
        .replace(".venv/bin/python", sys.executable)
    )


def test_the_commands_print_what_the_page_says(moonhook: MoonhookServer) -> None:
    commands = commands_at(moonhook)
    expected = [line.removeprefix("# ") for line in commands.splitlines() if line.startswith("# ")]

    shell = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", UNTIL_WRITTEN + commands],
        cwd=ROOT,
        env=moonhook.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert shell.returncode == 0, shell.stderr
    assert len(expected) > 8
    rest = shell.stdout
    for line in expected:
        _, found, rest = rest.partition(line)
        assert found == line, shell.stdout
