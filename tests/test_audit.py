"""`make audit` asks the package index that pip is configured with, and no file names another."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Hosts of package indexes and their mirrors. `simple/` is the path of PEP 503.
INDEX = re.compile(
    r"https?://[^\s/\"'`<>)]*(?:pypi|pythonhosted|npmjs|yarnpkg|devpi|artifactory|nexus|osv\.dev)"
    r"|https?://[^\s\"'`<>)]+/simple\b"
    r"|(?:--index-url|--extra-index-url|--find-links|--registry)[ =]\S*//",
    re.IGNORECASE,
)
KNOWN = {"id": "PYSEC-1", "fixed_in": ["2.1"], "withdrawn": None}
WITHDRAWN = {"id": "PYSEC-2", "fixed_in": [], "withdrawn": "2026-01-01T00:00:00Z"}


class PackageIndex:
    """The JSON API of a package index on loopback; ``asked`` collects the paths."""

    def __init__(self) -> None:
        self.releases: dict[str, list[dict[str, object]]] = {}
        self.asked: list[str] = []
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                known = index.releases.get(self.path)
                body = json.dumps({"vulnerabilities": known}).encode()
                self.send_response(404 if known is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://user:hidden@127.0.0.1:{self.server.server_port}/team/simple/"


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    index = PackageIndex()
    threading.Thread(target=index.server.serve_forever, args=[0.02], daemon=True).start()
    yield index
    index.server.shutdown()
    index.server.server_close()


@pytest.fixture
def lock_file(tmp_path: Path) -> Path:
    path = tmp_path / "locked.txt"
    path.write_text("wheelbarrow==2.0 \\\n    --hash=sha256:00\nspade==1.1 ; os_name == 'nt' \\\n")
    return path


def audit(lock_file: Path, index_url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "requirements/audit.py", str(lock_file)],
        cwd=ROOT,
        # pip-audit is installed in an environment of its own, so OSV is not reached here.
        env={"PATH": os.environ["PATH"], "PIP_INDEX_URL": index_url},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_index_of_pip_is_asked_for_every_locked_release(
    index: PackageIndex, lock_file: Path
) -> None:
    index.releases = {"/team/pypi/wheelbarrow/2.0/json": [], "/team/pypi/spade/1.1/json": []}
    finished = audit(lock_file, index.url)

    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "audit: locked.txt, by pip's index: 0 known vulnerabilities\n"
    assert index.asked == list(index.releases)


def test_a_known_vulnerability_fails_the_audit(index: PackageIndex, lock_file: Path) -> None:
    index.releases = {
        "/team/pypi/wheelbarrow/2.0/json": [KNOWN, WITHDRAWN],
        "/team/pypi/spade/1.1/json": [],
    }
    finished = audit(lock_file, index.url)

    assert finished.returncode == 1
    assert "  wheelbarrow 2.0: PYSEC-1, fixed in 2.1\n" in finished.stdout
    assert "PYSEC-2" not in finished.stdout


def test_an_index_without_the_api_checks_nothing(index: PackageIndex, lock_file: Path) -> None:
    finished = audit(lock_file, index.url)

    assert (finished.returncode, finished.stdout) == (2, "")
    assert "NOTHING WAS CHECKED" in finished.stderr
    assert "pip's index: does not know 2 releases, such as wheelbarrow 2.0" in finished.stderr


def test_an_unreachable_index_checks_nothing_and_its_password_is_not_printed(
    index: PackageIndex, lock_file: Path
) -> None:
    index.server.server_close()
    finished = audit(lock_file, index.url)

    assert (finished.returncode, finished.stdout) == (2, "")
    assert "NOTHING WAS CHECKED" in finished.stderr
    assert "hidden" not in finished.stderr


def test_no_tracked_file_names_a_package_index() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    files = [ROOT / name for name in listed if name]
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        if path != Path(__file__)
        for match in INDEX.finditer(path.read_text(errors="replace"))
    }

    assert len(files) > 500
    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        "https://pypi.example.com/pypi/pip/json",
        "https://packages.example.com/team/simple/",
        "pip install --index-url=https://packages.example.com",
        "npm ci --registry https://packages.example.com",
    ],
)
def test_an_address_of_a_package_index_would_be_found(text: str) -> None:
    assert INDEX.search(text) is not None
