"""What the timeline says of a host call, and what it must not say."""

from typing import Any

import pytest
from django.test import override_settings

from accounts.models import Organisation
from scripts_engine.models import Run
from scripts_engine.redaction import Redactor
from scripts_engine.runs.rows import MAX_SUBJECT_CHARS, summaries_of
from scripts_engine.sandbox import HostCall
from scripts_engine.secrets import set_secret
from tests.factories import make_script, reply_of, run_lua
from tests.scripts_engine.host.test_http import Site, site

__all__ = ["site"]

SECRET = "Sk/Live=12 34"


def summaries(run: Run) -> list[str]:
    return [call["summary"] for call in run.host_calls]


def summary(name: str, subject: bytes, result: str = "", secrets: Any = ()) -> str:
    call = HostCall(name, 0, 0, None, subject=subject, result=result)
    return next(summaries_of([call], Redactor(secrets), 10_000))


def test_a_request_says_method_url_and_status(acme: Organisation, site: Site) -> None:
    run = run_lua(
        acme,
        f"""http.get("{site.url}/teapot") http.put("{site.url}/hello", "x")
        http.request{{url = "{site.url}/to/302/hello?a=b#c", method = "post"}}""",
    )

    host = f"127.0.0.1:{site.port}"
    assert summaries(run) == [
        f"GET {host}/teapot → 418",
        f"PUT {host}/hello → 200",
        f"POST {host}/to/302/hello?… → 200",
    ]


def test_the_store_says_key_and_size(acme: Organisation) -> None:
    run = run_lua(
        acme,
        """store.get("seen:7") store.set("seen:7", "0123456789") store.get("seen:7")
        store.set_if_absent("seen:7", 1) store.set_if_absent("other", 1)
        store.increment("other", 2) store.list("", 9) store.list("o", 9) store.delete("other")""",
    )

    assert summaries(run) == [
        "store.get seen:7 → not set",
        "store.set seen:7 → stored 12 bytes",
        "store.get seen:7 → 12 bytes",
        "store.set_if_absent seen:7 → already set",
        "store.set_if_absent other → stored 1 byte",
        "store.increment other → 3",
        "store.list → 2 keys",
        "store.list o → 1 key",
        "store.delete other",
    ]


def test_a_push_says_the_script_and_its_run(acme: Organisation) -> None:
    make_script(acme, name="ship")
    run = run_lua(
        acme,
        """local id = queue.push("ship", "", {key = "k"}) queue.push("ship", "", {key = "k"})
        pcall(queue.push, "sail", "") return id""",
    )

    pushed = reply_of(run)
    assert summaries(run) == [
        f"queue.push ship → run {pushed}",
        f"queue.push ship → run {pushed}, queued before",
        "queue.push sail",
    ]


def test_a_url_encoded_in_more_layers_than_are_undone_is_hidden() -> None:
    encoded = b"Sk%2525252525252FLive"
    shown = summary("http.get", b"GET https://example.com/" + encoded, secrets=[b"Sk/Live"])

    assert shown == "GET [redacted]"


def test_a_secret_is_named_but_neither_its_value_nor_its_size_is_shown(
    acme: Organisation,
) -> None:
    set_secret(acme, name="stripe", value="sk_live_1234")
    run = run_lua(acme, 'secrets.get("stripe") secrets.get("paypal")')

    assert summaries(run) == ["secrets.get stripe", "secrets.get paypal → not set"]


def test_a_call_that_failed_has_no_result(acme: Organisation) -> None:
    run = run_lua(acme, 'pcall(http.get, "http://10.0.0.1/stock?key=1") pcall(store.set, "", 1)')

    assert summaries(run) == ["GET 10.0.0.1/stock?…", "store.set"]


@pytest.mark.parametrize(
    "url",
    [
        "http://user:password@shop.example/",
        "http://password@shop.example/",
        "http://user:pass/word@shop.example/",
        "//user:password@shop.example/",
        "ftp://user:password@shop.example/",
        "http://user:password@[",
        "password",
        "http://shop.example:password@/",
    ],
)
def test_a_url_that_is_refused_is_not_shown(acme: Organisation, url: str) -> None:
    run = run_lua(acme, f'pcall(http.get, "{url}")')

    assert summaries(run) == ["GET"]
    assert "pass" not in str(run.host_calls)


@pytest.mark.parametrize(
    "source",
    [
        'http.get("http://10.0.0.1/" .. s)',
        'http.get("http://10.0.0.1/" .. url.encode(s))',
        'http.get("http://10.0.0.1/" .. url.encode(url.encode(s)):lower())',
        'http.get("http://10.0.0.1/?key=" .. url.encode(s))',
        'http.get("http://10.0.0.1/#" .. s)',
        'http.get("http://10.0.0.1/", {["X-Key"] = s})',
        'http.get("http://10.0.0.1/", {["X-" .. s] = "x"})',
        'http.get("http://" .. s .. "/")',
        'http.get("http://" .. s .. ":x@10.0.0.1/")',
        'http.request{url = "http://10.0.0.1/", method = s}',
        'store.get("token:" .. s)',
        "store.set(s:upper(), s)",
        "store.list(s, 9)",
        "store.increment(url.encode(s))",
        "secrets.get(s)",
    ],
)
def test_no_part_of_a_call_shows_a_secret(acme: Organisation, source: str) -> None:
    set_secret(acme, name="KEY", value=SECRET)
    run = run_lua(acme, f'local s = secrets.get("KEY") pcall(function() {source} end)')

    kept = str(run.host_calls).lower()
    assert len(run.host_calls) == 2
    assert "live" not in kept
    assert "12 34" not in kept
    assert "sk" not in kept


def test_a_secret_in_a_host_name_is_redacted_in_the_errors_too(acme: Organisation) -> None:
    set_secret(acme, name="KEY", value="TenantSecret")
    with override_settings(HTTP_ALLOWED_NETWORKS=[]):
        run = run_lua(acme, 'http.get("http://" .. secrets.get("KEY") .. ".invalid/")')

    assert summaries(run)[1] == "GET [redacted].invalid/"
    assert run.error_message == "echo:1: http.get: the host is not a known host name"
    assert "tenantsecret" not in f"{run.host_calls}{run.error_message}{run.error_traceback}".lower()


def test_the_error_of_a_request_names_no_host_that_is_part_of_a_secret(
    acme: Organisation, site: Site
) -> None:
    set_secret(acme, name="HOOK", value=f"127.0.0.1:{site.port}/silent/T0/B0/xyz")
    set_secret(acme, name="PATH", value="silent/T0")
    hook, path = (
        run_lua(acme, f'http.request{{timeout = 0.1, url = "http://" .. {url}}}')
        for url in ('secrets.get("HOOK")', f'"127.0.0.1:{site.port}/" .. secrets.get("PATH")')
    )

    assert hook.error_message == "echo:1: http.request: the host did not answer within 0.1 s"
    assert path.error_message == "echo 2:1: http.request: 127.0.0.1 did not answer within 0.1 s"


def test_a_secret_url_is_redacted_as_a_whole(acme: Organisation) -> None:
    set_secret(acme, name="HOOK", value="https://10.0.0.1/services/T0/B0/xyz")
    run = run_lua(acme, 'pcall(http.post, secrets.get("HOOK") .. "?a=b", "{}")')

    assert summaries(run)[1] == "POST [redacted]?…"


def test_a_long_subject_is_cut_after_it_was_redacted() -> None:
    secret = b"sk_live_" + b"0123456789" * 8
    shown = summary("store.get", b"x" * (MAX_SUBJECT_CHARS - 20) + secret, "1 byte", [secret])

    assert shown == f"store.get {'x' * (MAX_SUBJECT_CHARS - 20)}[redacted] → 1 byte"
    assert summary("store.get", b"x" * 256) == f"store.get {'x' * (MAX_SUBJECT_CHARS - 1)}…"


def test_control_characters_and_invalid_bytes_are_escaped() -> None:
    key = b"a\0\n\x1b[31m\xff" + "\u202e\u200b\u2028é".encode()

    shown = summary("store.get", key)
    assert shown == r"store.get a\x00\n\x1b[31m\xff\u202e\u200b\u2028é"


def test_the_summaries_of_a_run_are_bounded() -> None:
    calls = [HostCall("store.get", 0, 0, None, subject=b"k" * 150)] * 1000

    kept = list(summaries_of(calls, Redactor(), 64 * 1024))
    assert sum(map(len, kept)) < 80_000
    assert (kept[0], kept[-1]) == (f"store.get {'k' * 150}", "store.get")


# --- Hints for administrators ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message", "setting"),
    [
        ('http.get("http://10.0.0.1/")', "10.0.0.1 is not reachable", "HTTP_ALLOWED_NETWORKS"),
        ('http.request{url = "SITE/silent", timeout = 0.1}', "within 0.1 s", "timeout option"),
        ('http.get("SITE/silent")', "before the end of the run", "page of its script"),
        ('http.get("TLS/")', "TLS handshake failed", "HTTP_CA_BUNDLE"),
    ],
)
def test_the_setting_concerned_is_for_administrators_alone(
    acme: Organisation, site: Site, source: str, message: str, setting: str
) -> None:
    source = source.replace("SITE", site.url).replace("TLS", site.url.replace("http", "https"))
    run = run_lua(
        acme, f"local ok, e = pcall(function() {source} end) return e", timeout_seconds=0.6
    )

    call = run.host_calls[0]
    seen = bytes(run.response_body).decode() + run.error_message
    assert message in call["error"]
    assert setting in call["hint"]
    assert setting not in seen + call["error"]


def test_an_unreadable_secret_names_the_peppers_for_administrators_alone(
    acme: Organisation,
) -> None:
    row = set_secret(acme, name="KEY", value="value")
    row.ciphertext = bytes(row.ciphertext)[:-1] + b"x"
    row.save()
    run = run_lua(acme, 'local ok, e = pcall(secrets.get, "KEY") return e')

    assert bytes(run.response_body) == b"secrets.get: KEY cannot be read; set it again"
    assert "MOONHOOK_PEPPERS" in run.host_calls[0]["hint"]
