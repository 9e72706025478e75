"""http.request, from scripts, to a real server on loopback."""

import datetime as dt
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address, ip_network
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.test import override_settings

from accounts.models import Organisation
from scripts_engine.host.handler import RunHost
from scripts_engine.sandbox import CallNote, HostCallError
from tests.factories import reply_of, run_lua

LOOPBACK = [ip_network("127.0.0.0/8")]


class Site:
    """A web server that records its requests; the path selects its behaviour."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.other = ""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                site.requests.append((self.command, self.path, headers, body))
                getattr(self, f"serve_{self.path[1:].split('/')[0].split('?')[0]}")()

            do_GET = do_POST = do_PUT = do_PATCH = do_HEAD = do_DELETE = answer  # noqa: N815

            def reply(self, status: int, body: bytes, **headers: str) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def serve_hello(self) -> None:
                self.reply(200, b"hello", X_Shop="tea")

            def serve_teapot(self) -> None:
                self.reply(418, b"")

            def serve_to(self) -> None:
                _, _, status, target = self.path.split("/", 3)
                self.reply(int(status), b"", Location=f"/{target}")

            def serve_away(self) -> None:
                self.reply(307, b"", Location=site.other)

            def serve_malformed_redirect(self) -> None:
                self.reply(302, b"", Location="http://[")

            def serve_malformed_chunks(self) -> None:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nx")

            def serve_loop(self) -> None:
                self.reply(302, b"", Location="/loop")

            def serve_large(self) -> None:
                self.reply(200, b"x" * (2 * 1024 * 1024 + 1))

            def serve_fits(self) -> None:
                self.reply(200, b"x" * (1024 * 1024))

            def serve_silent(self) -> None:
                time.sleep(20)

            def serve_drip(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                self.drip(b"x")

            def serve_dripping_headers(self) -> None:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
                self.drip(b"x")

            def drip(self, drop: bytes) -> None:
                for _ in range(200):
                    self.wfile.write(drop)
                    self.wfile.flush()
                    time.sleep(0.1)

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.port = self.server.server_port
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    server = Site()
    with override_settings(HTTP_ALLOWED_NETWORKS=LOOPBACK):
        yield server
    server.close()


def fetch(organisation: Organisation, url: str, options: str = "") -> str:
    """Status and body of a request from a script, or the error."""
    source = f"""local ok, r = pcall(http.request, {{url = "{url}" {options}}})
        if not ok then return "error: " .. r end
        return r.status .. " " .. r.body"""
    return reply_of(run_lua(organisation, source))


def test_get_answers_status_headers_and_body(acme: Organisation, site: Site) -> None:
    source = f"""local r = http.get("{site.url}/hello?a=b%20c")
        return {{r.status, r.headers["x-shop"], r.body}}"""

    assert reply_of(run_lua(acme, source)) == '[200,"tea","hello"]'
    assert site.requests[0][:2] == ("GET", "/hello?a=b%20c")
    assert site.requests[0][2]["host"] == f"127.0.0.1:{site.port}"


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_each_function_without_a_body_sends_its_method_and_headers(
    acme: Organisation, site: Site, method: str
) -> None:
    call = f'http.{method.lower()}("{site.url}/hello", {{["X-A"] = 7}})'

    assert reply_of(run_lua(acme, f"return {call}.status")) == "200"
    [(sent, _, headers, body)] = site.requests
    assert (sent, headers["x-a"], body) == (method, "7", b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_each_function_with_a_body_sends_it_with_its_method_and_headers(
    acme: Organisation, site: Site, method: str
) -> None:
    call = f'http.{method.lower()}("{site.url}/hello", "a=1", {{["X-A"] = "b"}})'

    assert reply_of(run_lua(acme, f"return {call}.body")) == "hello"
    [(sent, _, headers, body)] = site.requests
    assert (sent, headers["x-a"], body) == (method, "b", b"a=1")


@pytest.mark.parametrize("method", ["get", "head", "post", "put", "patch", "delete"])
def test_each_function_is_kept_from_internal_addresses_and_names_itself(
    acme: Organisation, site: Site, method: str
) -> None:
    source = f'local ok, e = pcall(http.{method}, "{site.url}/hello") return e'
    with override_settings(HTTP_ALLOWED_NETWORKS=[]):
        answer = reply_of(run_lua(acme, source))

    assert answer == (
        f"http.{method}: 127.0.0.1 is not reachable from scripts: its address is not public"
    )
    assert site.requests == []


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_307_repeats_the_method(acme: Organisation, site: Site, method: str) -> None:
    reply_of(run_lua(acme, f'return http.{method.lower()}("{site.url}/to/307/hello").body'))

    assert [sent for sent, *_ in site.requests] == [method] * 2


def test_all_functions_share_the_calls_of_a_run(acme: Organisation, site: Site) -> None:
    source = f"""local names = {{"get", "head", "post", "put", "patch", "delete"}}
        for i = 1, 30 do
            local ok, problem = pcall(http[names[i % 6 + 1]], "{site.url}/hello")
            if not ok then return i .. ": " .. problem end end"""

    assert "21: http.put: more than 20 calls" in reply_of(run_lua(acme, source))
    assert len(site.requests) == 20


def test_a_child_cannot_give_a_function_another_method(acme: Organisation, site: Site) -> None:
    options = {b"url": f"{site.url}/hello".encode(), b"headers": {}, b"method": b"POST"}
    with pytest.raises(HostCallError, match=r"http\.get: wrong arguments"):
        RunHost(acme.pk)("http.get", [options], deadline=time.monotonic() + 5, note=CallNote())

    assert site.requests == []


def test_post_sends_bytes(acme: Organisation, site: Site) -> None:
    reply_of(run_lua(acme, f'return http.post("{site.url}/hello", "a\\0\\255").body'))

    assert (site.requests[0][0], site.requests[0][3]) == ("POST", b"a\x00\xff")


def test_json_is_encoded_and_named(acme: Organisation, site: Site) -> None:
    fetch(
        acme, f"{site.url}/hello", ', method = "PUT", json = {a = {1}}, headers = {["X-A"] = "1"}'
    )

    method, _, headers, body = site.requests[0]
    assert (method, body) == ("PUT", b'{"a":[1]}')
    assert (headers["content-type"], headers["x-a"]) == ("application/json", "1")


def test_error_statuses_are_responses_too(acme: Organisation, site: Site) -> None:
    assert fetch(acme, f"{site.url}/teapot") == "418 "


def test_redirects_are_followed(acme: Organisation, site: Site) -> None:
    assert fetch(acme, f"{site.url}/to/302/to/307/hello") == "200 hello"


def test_a_303_turns_a_post_into_a_get_without_its_body(acme: Organisation, site: Site) -> None:
    fetch(acme, f"{site.url}/to/303/hello", ', method = "POST", body = "x"')

    assert [(method, body) for method, _, _, body in site.requests] == [
        ("POST", b"x"),
        ("GET", b""),
    ]


def test_a_307_repeats_the_post(acme: Organisation, site: Site) -> None:
    fetch(acme, f"{site.url}/to/307/hello", ', method = "POST", body = "x"')

    assert [(method, body) for method, _, _, body in site.requests] == [("POST", b"x")] * 2


def test_credentials_do_not_follow_a_redirect_to_another_origin(
    acme: Organisation, site: Site
) -> None:
    other = Site()
    site.other = f"{other.url}/hello"
    headers = ', headers = {Authorization = "Bearer x", ["X-A"] = "1"}'
    fetch(acme, f"{site.url}/away", headers)
    fetch(acme, f"{site.url}/to/302/hello", headers)
    other.close()

    assert "authorization" not in other.requests[0][2]
    assert other.requests[0][2]["x-a"] == "1"
    assert [request[2].get("authorization") for request in site.requests] == ["Bearer x"] * 3


@pytest.mark.parametrize("path", ["malformed_redirect", "malformed_chunks"])
def test_a_malformed_response_is_an_error_of_the_call(
    acme: Organisation, site: Site, path: str
) -> None:
    assert fetch(acme, f"{site.url}/{path}").startswith("error: http")


def test_the_number_of_redirects_is_limited(acme: Organisation, site: Site) -> None:
    assert "more than 5 redirects" in fetch(acme, f"{site.url}/loop")
    assert len(site.requests) == 6


def test_a_redirect_to_an_internal_address_is_refused(acme: Organisation, site: Site) -> None:
    site.other = "http://127.0.0.2:1/"
    with override_settings(HTTP_ALLOWED_NETWORKS=[ip_network("127.0.0.1/32")]):
        assert "not public" in fetch(acme, f"{site.url}/away")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/hello",
        "http://localhost:{port}/hello",
        "http://127.1:{port}/hello",
        "http://2130706433:{port}/hello",
        "http://0x7f000001:{port}/hello",
        "http://0177.0.0.1:{port}/hello",
        "http://[::ffff:127.0.0.1]:{port}/hello",
        "http://[::1]:{port}/hello",
        "http://0.0.0.0:{port}/hello",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/latest/meta-data/",
        "http://10.0.0.1/",
    ],
)
def test_internal_addresses_are_refused_by_default(
    acme: Organisation, site: Site, url: str
) -> None:
    with override_settings(HTTP_ALLOWED_NETWORKS=[]):
        answer = fetch(acme, url.format(port=site.port))

    assert answer.startswith("error:")
    assert "not public" in answer
    assert site.requests == []


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "must begin with"),
        ("ftp://example.com/", "must begin with"),
        ("gopher://127.0.0.1/", "must begin with"),
        ("//example.com", "must begin with"),
        ("", "must begin with"),
        ("http://", "must begin with"),
        ("http://user:pw@127.0.0.1/", "credentials belong"),
        ("http://127.0.0.1:99999/", "malformed"),
        ("http://nobody.invalid/", "not a known host name"),
        ("http://exa mple/", "error"),
    ],
)
def test_an_invalid_url_is_refused(acme: Organisation, url: str, reason: str) -> None:
    answer = fetch(acme, url)

    assert answer.startswith("error:")
    assert reason in answer


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (', method = "CONNECT"', "the method must be"),
        (', method = "GET\\r\\nX: 1"', "the method must be"),
        (', headers = {Host = "x"}', "may not set the header Host"),
        (', headers = {["Content-Length"] = "5"}', "may not set the header"),
        (', headers = {["X-A"] = "a\\r\\nX-B: 1"}', "characters"),
        (', headers = {["X A"] = "a"}', "characters"),
        (", timeout = 60", "at most 5 s"),
        (", timeout = 0", "at most 5 s"),
        (", timeout = 0/0", "at most 5 s"),
        (', nonsense = "x"', "unknown option"),
    ],
)
def test_an_invalid_request_is_refused_and_nothing_is_sent(
    acme: Organisation, site: Site, options: str, reason: str
) -> None:
    assert reason in fetch(acme, f"{site.url}/hello", options)
    assert site.requests == []


def test_an_answer_over_2_mib_is_an_error(acme: Organisation, site: Site) -> None:
    assert "larger than 2 MiB" in fetch(acme, f"{site.url}/large")


def test_a_large_answer_arrives_whole(acme: Organisation, site: Site) -> None:
    run = run_lua(acme, f'return #http.get("{site.url}/fits").body')

    assert reply_of(run) == str(1024 * 1024)


@pytest.mark.parametrize("path", ["silent", "drip", "dripping_headers"])
def test_a_slow_answer_is_an_error_after_the_timeout(
    acme: Organisation, site: Site, path: str
) -> None:
    answer = fetch(acme, f"{site.url}/{path}", ", timeout = 0.3")

    assert answer == "error: http.request: 127.0.0.1 did not answer within 0.3 s"


def test_a_run_does_not_outlive_its_time_in_a_call(acme: Organisation, site: Site) -> None:
    run = run_lua(acme, f'return http.get("{site.url}/drip").body', timeout_seconds=0.5)

    assert run.status in {"timed-out", "failed"}
    assert run.duration_ms < 3000


def test_a_refused_connection_is_an_error(acme: Organisation, site: Site) -> None:
    assert "the connection failed" in fetch(acme, "http://127.0.0.1:1/")


def test_a_run_has_20_calls(acme: Organisation, site: Site) -> None:
    source = f"""for i = 1, 21 do
        local ok, problem = pcall(http.get, "{site.url}/hello")
        if not ok then return i .. ": " .. problem end end"""

    assert "21: " in reply_of(run_lua(acme, source))
    assert len(site.requests) == 20


def test_calls_are_recorded_in_the_run(acme: Organisation, site: Site) -> None:
    run = run_lua(acme, f'http.get("{site.url}/hello") pcall(http.get, "ftp://x")')

    names = [(call["name"], bool(call["error"])) for call in run.host_calls]
    assert names == [("http.get", False), ("http.get", True)]
    assert run.host_calls[0]["durationMs"] > 0


# --- TLS ---------------------------------------------------------------------------------------


def make_certificate(directory: Path, name: x509.GeneralName) -> tuple[Path, Path]:
    """A self-signed certificate for the name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_path, key_path = directory / "certificate.pem", directory / "key.pem"
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate_path, key_path


def serve_tls(tmp_path: Path, name: x509.GeneralName) -> tuple[Site, Path]:
    certificate, key = make_certificate(tmp_path, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return Site(context), certificate


def test_https_checks_the_certificate_against_the_name(acme: Organisation, tmp_path: Path) -> None:
    site, certificate = serve_tls(tmp_path, x509.DNSName("localhost"))
    by_name = f"https://localhost:{site.port}/hello"
    with override_settings(HTTP_ALLOWED_NETWORKS=LOOPBACK, HTTP_CA_BUNDLE=str(certificate)):
        trusted, wrong_name = fetch(acme, by_name), fetch(acme, f"{site.url}/hello")
    with override_settings(HTTP_ALLOWED_NETWORKS=LOOPBACK):
        untrusted = fetch(acme, by_name)
    site.close()

    assert trusted == "200 hello"
    assert "certificate" in wrong_name
    assert "certificate" in untrusted
    assert len(site.requests) == 1


def test_https_to_an_address_checks_the_certificate_too(acme: Organisation, tmp_path: Path) -> None:
    site, certificate = serve_tls(tmp_path, x509.IPAddress(IPv4Address("127.0.0.1")))
    with override_settings(HTTP_ALLOWED_NETWORKS=LOOPBACK, HTTP_CA_BUNDLE=str(certificate)):
        answer = fetch(acme, f"{site.url}/hello")
    site.close()

    assert answer == "200 hello"
