"""The values that a script returns, and the reply made of them."""

from __future__ import annotations

import pytest

from scripts_engine.sandbox.limits import Limits

JSON = ("Content-Type", "application/json")
TEXT = ("Content-Type", "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("source", "status", "headers", "body"),
    [
        ("", 200, (), b""),
        ("return nil", 200, (), b""),
        ("return 'hello'", 200, (TEXT,), b"hello"),
        (r"return '\xff\0'", 200, (TEXT,), b"\xff\x00"),
        ("return ''", 200, (TEXT,), b""),
        ("return {a = 1}", 200, (JSON,), b'{"a":1}'),
        ("return {}", 200, (JSON,), b"[]"),
        ("return 7", 200, (JSON,), b"7"),
        ("return 7.5", 200, (JSON,), b"7.5"),
        ("return true", 200, (JSON,), b"true"),
        ("return false", 200, (JSON,), b"false"),
        ("return null", 200, (JSON,), b"null"),
        ("return Reply{}", 200, (), b""),
        ("return Reply{status = 201, body = 'made'}", 201, (TEXT,), b"made"),
        ("return Reply{status = 599, body = {1, 2}}", 599, (JSON,), b"[1,2]"),
        ("return Reply{body = null}", 200, (JSON,), b"null"),
        ("return Reply{body = false}", 200, (JSON,), b"false"),
        (
            "return Reply{headers = {['content-type'] = 'text/csv'}, body = 'a,b'}",
            200,
            (("content-type", "text/csv"),),
            b"a,b",
        ),
        (
            "return Reply{headers = {['X-B'] = 2, ['X-A'] = 'one'}}",
            200,
            (("X-A", "one"), ("X-B", "2")),
            b"",
        ),
        ("return Reply{headers = {Location = '/é'}}", 200, (("Location", "/Ã©"),), b""),
    ],
)
def test_the_result_of_a_script_becomes_the_reply(run, source, status, headers, body):
    reply = run(source).reply
    assert (reply.status, reply.headers, reply.body) == (status, headers, body)


# Headers to the connection, to a browser about the origin, to a proxy or server.
RESERVED = """
Connection Content-Length HTTP2-Settings Keep-Alive TE Trailer Transfer-Encoding Upgrade
Proxy-Authenticate Proxy-Authentication-Info Proxy-Connection Proxy-Status

Date Moonhook-Anything Moonhook-Duplicate-Of Moonhook-Run-Id Server Status Via X-Request-Id

Content-Security-Policy Content-Security-Policy-Report-Only Referrer-Policy
X-Content-Security-Policy X-Content-Type-Options X-WebKit-CSP

Clear-Site-Data Set-Cookie Set-Cookie2 Set-Login IdP-SignIn-Status Activate-Storage-Access
Secure-Session-Registration Sec-Session-Registration Sec-WebSocket-Accept
Authentication-Control Authentication-Info Optional-WWW-Authenticate WWW-Authenticate

Accept-CH Accept-CH-Lifetime Critical-CH Alt-Svc Alternate-Protocol Expect-CT NEL Report-To
Reporting-Endpoints Public-Key-Pins Public-Key-Pins-Report-Only Strict-Transport-Security
Cross-Origin-Opener-Policy Observe-Browsing-Topics Onion-Location Origin-Agent-Cluster
Origin-Trial P3P Service-Worker-Allowed Shared-Storage-Write Speculation-Rules Use-As-Dictionary
X-Permitted-Cross-Domain-Policies Attribution-Reporting-Register-Source Ad-Auction-Signals
Cache-Groups Cache-Group-Invalidation

Edge-Control Surrogate-Control Surrogate-Key X-Accel-Buffering X-Accel-Redirect
X-AppEngine-BlobKey X-Lighttpd-Send-File X-LiteSpeed-Cache-Control X-LiteSpeed-Location
X-Reproxy-File X-Reproxy-URL X-Send-File X-Sendfile X-Sendfile-Type X-Sendfile2
"""
# Spellings that some server or proxy normalises to the name.
RESPELLED = """
set-cookie SET-COOKIE Set_Cookie set_cookie SET_COOKIE Set.Cookie Set--Cookie -Set-Cookie
Set-Cookie. Set-Cookie- _Set-Cookie X_Sendfile x_accel_redirect X-Accel_Redirect WWW_Authenticate
nel Nel- report_to PROXY_STATUS moonhook_run_id Sec_Foo
"""
ALLOWED = """
Access-Control-Allow-Credentials Access-Control-Allow-Headers Access-Control-Allow-Methods
Access-Control-Allow-Origin Access-Control-Expose-Headers Access-Control-Max-Age Accept-Ranges
Age Allow Cache-Control CDN-Cache-Control Content-Disposition Content-Digest Content-Encoding
Content-Language Content-Location Content-Range Content-Type Cross-Origin-Resource-Policy
Deprecation ETag Expires Last-Modified Link Location Pragma Preference-Applied RateLimit
Refresh Retry-After Server-Timing Signature Signature-Input Sunset Timing-Allow-Origin Vary
WebHook-Allowed-Origin X-Custom X-Frame-Options X-Hook-Secret X-Robots-Tag X-Secret Securely
Nelson Datetime Via-Ferrata X-Request-Id-Of-Shop
"""


@pytest.mark.parametrize("name", [*RESERVED.split(), *RESPELLED.split()])
def test_a_header_that_speaks_for_the_host_is_dropped_with_a_line_in_the_log(run, name):
    outcome = run(f"return Reply{{headers = {{['{name}'] = 'x', ['X-Kept'] = 'y'}}}}")
    assert outcome.reply.headers == (("X-Kept", "y"),)
    assert [(line.level, line.text) for line in outcome.logs] == [
        ("warn", f"the header {name} was dropped: a script may not set it")
    ]


@pytest.mark.parametrize("name", ALLOWED.split())
def test_a_header_of_the_scripts_own_resource_is_sent(run, name):
    outcome = run(f"return Reply{{headers = {{['{name}'] = 'x'}}}}")
    assert outcome.reply.headers == ((name, "x"),)
    assert outcome.logs == ()


def test_a_reply_has_up_to_100_headers_besides_its_default_content_type(run):
    source = """local headers = {} for i = 1, %d do headers["X-" .. i] = "a" end
        return Reply{headers = headers, body = "text"}"""
    assert len(run(source % 100).reply.headers) == 101
    refused = run(source % 101)
    assert refused.kind == "failed"
    assert "more than 100 headers or 16384 bytes of them" in refused.error.message


def test_the_headers_of_a_reply_have_up_to_16_kib(run):
    source = 'return Reply{headers = {["X-A"] = ("a"):rep(%d)}, body = "text"}'
    assert len(run(source % (16 * 1024 - 3)).reply.headers) == 2
    refused = run(source % (16 * 1024 - 2))
    assert refused.kind == "failed"
    assert "more than 100 headers or 16384 bytes of them" in refused.error.message


@pytest.mark.parametrize("status", [204, 205, 304])
def test_a_status_without_a_body_drops_it_with_a_line_in_the_log(run, status):
    outcome = run(f"return Reply{{status = {status}, body = 'text'}}")
    assert (outcome.reply.status, outcome.reply.headers, outcome.reply.body) == (status, (), b"")
    assert [line.text for line in outcome.logs] == [
        f"the body was dropped: status {status} has none"
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("return Reply{status = 199}", "status must be an integer from 200 to 599"),
        ("return Reply{status = 600}", "status must be an integer from 200 to 599"),
        ("return Reply{status = 200.5}", "status must be an integer from 200 to 599"),
        ("return Reply{status = '200'}", "status must be an integer from 200 to 599"),
        ("return Reply{headers = 'x'}", "headers must be a table"),
        ("return Reply{headers = {['A:'] = 'x'}}", "a header has an invalid name"),
        ("return Reply{headers = {[''] = 'x'}}", "a header has an invalid name"),
        ("return Reply{headers = {[':status'] = '200'}}", "a header has an invalid name"),
        ("return Reply{headers = {['Set-Cookie:'] = 'x'}}", "a header has an invalid name"),
        ("return Reply{headers = {['Set-Cookie '] = 'x'}}", "a header has an invalid name"),
        (r"return Reply{headers = {['Set\u{2010}Cookie'] = 'x'}}", "a header has an invalid name"),
        ("return Reply{headers = {'x'}}", "a header has an invalid name"),
        ("return Reply{headers = {A = {}}}", "the header A must be a string"),
        ("return Reply{headers = {A = 'a', a = 'b'}}", "is given twice"),
        (r"return Reply{headers = {A = 'a\rb'}}", "holds a control character"),
        (r"return Reply{headers = {A = 'a\nb'}}", "holds a control character"),
        (r"return Reply{headers = {A = 'a\0b'}}", "holds a control character"),
        ("return Reply{code = 200}", "unknown field code"),
        ("return Reply(200)", "Reply: table expected, got number"),
    ],
)
def test_an_invalid_reply_fails_the_script_in_its_line(run, source, message):
    error = run(source.replace("return ", "\nlocal reply = ") + "\nreturn reply").error
    assert error.message.startswith("demo:2: Reply: ")
    assert message in error.message
    assert error.line == 2


def test_a_table_with_the_fields_of_a_reply_is_not_a_reply(run):
    source = "Reply{} return {status = 404, headers = {a = 'b'}, body = 'x'}"
    reply = run(source).reply
    assert (reply.status, reply.headers) == (200, (JSON,))


def test_a_tail_call_leaves_no_line_to_blame(run):
    error = run("return Reply{status = 1}").error
    assert error.message == "Reply: status must be an integer from 200 to 599"
    assert error.line is None


def test_nil_and_a_message_fail_the_script_with_it(run):
    outcome = run("return nil, 'no stock'")
    assert outcome.kind == "failed"
    assert outcome.reply is None
    assert outcome.error.message == "no stock"
    assert outcome.error.line is None


def test_a_reply_up_to_the_limit_is_sent(run):
    outcome = run("return ('x'):rep(1024 * 1024)")
    assert len(outcome.reply.body) == 1024 * 1024


@pytest.mark.parametrize(
    "source",
    ["return ('x'):rep(101)", "return {('x'):rep(97)}", "return Reply{body={('x'):rep(97)}}"],
)
def test_a_reply_over_the_limit_has_an_outcome_that_names_its_size(run, source):
    outcome = run(source, limits=Limits(reply_bytes=100))
    assert outcome.kind == "reply-too-large"
    assert outcome.reply is None
    assert outcome.error.message == "The reply has 101 bytes; the limit is 100 bytes"


@pytest.mark.parametrize(
    ("source", "size"),
    [
        ("return ('x'):rep(1024 * 1024 + 1)", "1,048,577 bytes"),
        ("return ('x'):rep(1024 * 1024 * 13 // 10)", "1.3 MiB"),
        ("return Reply{body=('x'):rep(1024 * 1024 * 2)}", "2 MiB"),
    ],
)
def test_the_size_of_a_reply_never_reads_like_the_limit(run, source, size):
    assert run(source).error.message == f"The reply has {size}; the limit is 1 MiB"


@pytest.mark.parametrize(
    "source",
    [
        "local t = {('x'):rep(100)} for i = 1, 20 do t = {t, t} end return t",
        "return {('x'):rep(1024 * 1024), print}",
    ],
)
def test_a_reply_that_cannot_be_measured_is_still_too_large(run, source):
    outcome = run(source)
    assert outcome.kind == "reply-too-large"
    assert outcome.error.message == "The reply is larger than the limit of 1 MiB"


def test_a_reply_is_measured_by_a_script_that_used_all_its_memory(run):
    source = """
        local big, held = {("x"):rep(600 * 1024), ("y"):rep(600 * 1024)}, {}
        pcall(function() while true do held[#held + 1] = ("z"):rep(20000) .. #held end end)
        return big
    """
    outcome = run(source, limits=Limits(lua_memory_bytes=8 * 1024 * 1024))
    assert outcome.kind == "reply-too-large"


def test_an_unsendable_result_says_where_in_it(fail):
    message = fail("return {orders = {{id = 1}, {id = print}}}")
    assert message == ("the result cannot be sent: a function has no JSON form (at orders[2].id)")
