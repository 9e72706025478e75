"""login, logout, whoami and session against a real server."""

import json
import re
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from conftest import Client
from server import Key, Server


def printed_code(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"[B-Z]{4}-[B-Z]{4}", line)
    assert found is not None, line + process.stdout.read()
    return found[0]


def test_a_person_approves_the_login_in_a_browser(
    client: Client, server: Server, organisation: str, organisation_name: str
) -> None:
    email = f"bob{organisation}@example.com"
    server.manage(
        "create_user", "--email", email, "--organisation", organisation,
        "--role", "administrator",
    )  # fmt: skip
    process = client.start("login", server.url)
    code = printed_code(process)
    server.approve(organisation, email, code)
    output, _ = process.communicate(timeout=60)

    assert process.returncode == 0, output
    assert "mhs_" not in output
    assert client.json("whoami")["organisation"] == organisation_name


def test_a_key_from_standard_input_logs_in(
    client: Client, server: Server, key: Key, organisation_name: str
) -> None:
    done = client.run("login", server.url, "--api-key", stdin=f"{key.key}\n{key.secret}\n")

    assert done.returncode == 0, done.stderr
    assert key.secret not in done.stdout + done.stderr
    assert client.json("whoami") == {
        "organisation": organisation_name,
        "url": server.url,
        "key": key.key,
        "profile": "default",
    }
    assert client.json("session")["credential"] == "ApiKey"


def test_the_environment_gives_a_key_for_ci(client: Client, server: Server, key: Key) -> None:
    environment = {
        "MOONHOOK_URL": server.url, "MOONHOOK_KEY": key.key, "MOONHOOK_SECRET": key.secret,
    }  # fmt: skip

    assert client.json("whoami", **environment)["key"] == key.key
    assert not client.configuration.exists()


def test_half_a_key_in_the_environment_is_refused(client: Client, server: Server, key: Key) -> None:
    output = client.fails(3, "whoami", MOONHOOK_URL=server.url, MOONHOOK_KEY=key.key)

    assert "MOONHOOK_SECRET is not set" in output


def test_a_wrong_secret_is_refused_and_nothing_is_kept(
    client: Client, server: Server, key: Key
) -> None:
    wrong = key.secret[:-1] + ("a" if key.secret[-1] != "a" else "b")

    output = client.fails(3, "login", server.url, "--api-key", stdin=f"{key.key}\n{wrong}\n")

    assert "does not accept this key" in output
    assert wrong not in output
    assert not client.configuration.exists()


def test_logout_ends_the_session_and_forgets_the_secret(logged_in: Client, key: Key) -> None:
    logged_in.ok("logout")

    assert "not logged in" in logged_in.fails(3, "whoami")
    assert key.secret not in (logged_in.configuration / "secrets.json").read_text()


def test_secrets_are_in_a_file_that_only_the_owner_reads(logged_in: Client, key: Key) -> None:
    secrets = logged_in.configuration / "secrets.json"

    assert key.secret in secrets.read_text()
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert logged_in.configuration.stat().st_mode & 0o777 == 0o700
    assert key.secret not in (logged_in.configuration / "profiles.toml").read_text()


def test_a_file_of_secrets_that_others_can_read_is_refused(logged_in: Client) -> None:
    (logged_in.configuration / "secrets.json").chmod(0o644)

    assert "chmod 600" in logged_in.fails(1, "whoami")


KEYRING = """
import json, os
from keyring.backend import KeyringBackend

class Keyring(KeyringBackend):
    priority = 5
    path = os.environ["TEST_KEYRING"]
    def _all(self):
        return json.load(open(self.path)) if os.path.exists(self.path) else {}
    def _write(self, values):
        with open(self.path, "w") as file:
            json.dump(values, file)
    def get_password(self, service, name):
        return self._all().get(name)
    def set_password(self, service, name, password):
        self._write(self._all() | {name: password})
    def delete_password(self, service, name):
        values = self._all()
        del values[name]
        self._write(values)
"""


def test_secrets_are_in_the_keyring_where_there_is_one(
    client: Client, server: Server, key: Key, tmp_path: Path
) -> None:
    (tmp_path / "test_backend.py").write_text(KEYRING)
    kept = tmp_path / "keyring.json"
    client.environment |= {
        "PYTHONPATH": str(tmp_path),
        "PYTHON_KEYRING_BACKEND": "test_backend.Keyring",
        "TEST_KEYRING": str(kept),
    }
    client.log_in(server, key)

    assert client.json("whoami")["key"] == key.key
    assert key.secret in kept.read_text()
    assert not (client.configuration / "secrets.json").exists()

    client.ok("logout")
    assert kept.read_text() == "{}"


def test_an_ended_session_is_renewed(logged_in: Client) -> None:
    secrets = logged_in.configuration / "secrets.json"
    stored = json.loads(secrets.read_text())
    default = json.loads(stored["default"])
    stored["default"] = json.dumps(default | {"token": "mhx_ended"})
    secrets.write_text(json.dumps(stored))

    assert logged_in.json("whoami")["profile"] == "default"
    assert json.loads(json.loads(secrets.read_text())["default"])["token"] != "mhx_ended"


def test_profiles_are_separate(logged_in: Client, server: Server, organisation_name: str) -> None:
    other = f"{organisation_name} staging"
    staging = server.make_key(server.make_organisation(other))
    logged_in.log_in(server, staging, "--profile", "staging")

    assert logged_in.json("whoami")["organisation"] == organisation_name
    assert logged_in.json("whoami", "--profile", "staging")["organisation"] == other


def test_an_unknown_profile_names_the_known_ones(logged_in: Client) -> None:
    output = logged_in.fails(3, "whoami", "--profile", "missing")

    assert "There is no profile “missing”" in output
    assert "known profiles: default" in output


def test_a_server_that_is_away_is_unreachable(client: Client) -> None:
    output = client.fails(4, "login", "http://127.0.0.1:9", "--api-key", stdin="k\nsecret\n")

    assert "cannot be reached" in output
    assert "Check the address" in output


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://moonhook.example.com", "Over http:// the secret could be read"),
        ("moonhook.example.com", "is not the address of a server"),
        ("https://user:pass@moonhook.example.com", "has a user name"),
    ],
    ids=["clear-http", "no-scheme", "user-name"],
)
def test_an_unfit_address_is_refused(client: Client, url: str, message: str) -> None:
    assert message in client.fails(1, "login", url, "--api-key", stdin="k\nsecret\n")


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler], certificate: Path | None) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), handler)
    scheme = "http"
    if certificate:
        scheme = "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Busy(BaseHTTPRequestHandler):
    """Answers 503 at first, and then a session."""

    requests = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).requests += 1
        if type(self).requests == 1:
            self.send_response(503)
            self.send_header("Retry-After", "1")
            body = b"{}"
        else:
            self.send_response(201)
            body = b'{"token": "mhx_new", "organisation": {"name": "Acme"}}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def test_a_busy_server_is_asked_again(client: Client) -> None:
    with answering(Busy, None) as url:
        output = client.ok("login", url, "--api-key", stdin="k\nsecret\n")

    assert "Logged in to Acme" in output
    assert Busy.requests == 2


def test_a_self_signed_certificate_says_what_to_do(client: Client, tmp_path: Path) -> None:
    pem = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem, "-out",
         tmp_path / "certificate.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    certificate = tmp_path / "certificate.pem"
    pem.write_text(pem.read_text() + certificate.read_text())
    Busy.requests = 1
    with answering(Busy, pem) as url:
        refused = client.fails(4, "login", url, "--api-key", stdin="k\nsecret\n")
        trusted = client.run(
            "login", url, "--api-key", stdin="k\nsecret\n", SSL_CERT_FILE=str(certificate)
        )

    assert "is not trusted: self-signed certificate" in refused
    assert "SSL_CERT_FILE" in refused
    assert trusted.returncode == 0, trusted.stderr


SLOW_ANSWERS = ["authorization_pending", "slow_down", "authorization_pending"]


def test_slow_down_makes_the_interval_longer_for_good() -> None:
    device_login = pytest.importorskip("moonhook_cli.device_login")
    answers = iter([{"error": error} for error in SLOW_ANSWERS])
    last = {"key": "k", "secret": "mhs_1", "access_token": "mhx_1"}

    class Response:
        def __init__(self, document: dict[str, str]) -> None:
            self.document = document
            self.status_code = 400 if "error" in document else 200

        def json(self) -> dict[str, str]:
            return self.document

    class Scripted:
        def request(self, *given: object, **named: object) -> Response:
            return Response(next(answers, last))

    slept: list[float] = []
    started = device_login.Started("code", "WDJB-MJHT", "a", "a", 5)

    assert device_login.wait_for_approval(Scripted(), started, slept.append) == last
    assert slept == [5, 5, 10, 10]


def test_debug_shows_requests_without_secrets(logged_in: Client, key: Key) -> None:
    secrets = (logged_in.configuration / "secrets.json").read_text()
    done = logged_in.run("login", "http://127.0.0.1:9", "--api-key", "--debug",
                         stdin=f"{key.key}\n{key.secret}\n")  # fmt: skip
    shown = logged_in.run("whoami", "--debug")

    assert "GET /session 200" in shown.stderr
    token = json.loads(json.loads(secrets)["default"])["token"]
    for text in (shown.stdout, shown.stderr, done.stdout, done.stderr):
        assert key.secret not in text
        assert token not in text


def test_no_command_takes_a_secret_as_an_argument(client: Client, key: Key) -> None:
    output = client.fails(1, "login", "http://127.0.0.1:9", "--api-key", f"--secret={key.secret}")

    assert "No such option" in output
    assert key.secret not in output


def test_an_unexpected_error_shows_no_secret(logged_in: Client, key: Key) -> None:
    path = logged_in.configuration / "secrets.json"
    stored = json.loads(path.read_text())
    stored["default"] = f"{{broken {key.secret}"
    path.write_text(json.dumps(stored))

    output = logged_in.fails(1, "whoami")

    assert key.secret not in output
    assert "Traceback" not in output


def test_errors_are_json_for_programs(client: Client) -> None:
    done = client.run("whoami", "--json")

    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert error["message"] == "You are not logged in."
    assert error["advice"].startswith("Log in: moonhook login URL")
