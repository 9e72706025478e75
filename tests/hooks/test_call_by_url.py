"""GET and POST /hook/<org>/<script>/<token>."""

import json
import uuid
from typing import Any

import pytest

from accounts import credentials
from accounts.credentials import SecretKind
from accounts.models import Organisation
from hooks.edge.wsgi import _parsed, canonical_uuid
from hooks.flows.hooks import IssuedHook, delete_hook, rotate_call_token, update_hook
from hooks.models import Hook
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Run, RunStatus, Script, StoredValue, Trigger
from scripts_engine.runs.spec import NOBODY
from scripts_engine.secrets import set_secret
from tests.client import Client
from tests.factories import make_hook, make_script
from tests.hooks.calls import PROTECTION, path_of


def call(issued: IssuedHook, body: bytes = b"", content_type: str = "text/plain") -> Any:
    return Client().post(path_of(issued), body, content_type=content_type)


def reply_of(organisation: Organisation, source: str, body: bytes = b"") -> Any:
    return call(make_hook(make_script(organisation, source)), body)


def assert_not_found(response: Any) -> None:
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    problem.pop("requestId")
    assert problem == {
        "type": "urn:moonhook:problem:not-found",
        "title": "Not found",
        "status": 404,
        "detail": "No such path.",
        "code": "not-found",
    }
    assert response.headers.items() >= PROTECTION.items()
    assert Run.objects.count() == 0


@pytest.fixture
def echo(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme))


def test_a_call_runs_the_script_and_its_reply_is_the_answer(echo: IssuedHook) -> None:
    response = call(echo, b"hello")

    assert response.status_code == 200
    assert response.content == b"hello"
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers.items() >= PROTECTION.items()
    assert response["Moonhook-Run-Id"] == str(Run.objects.get().pk)


def test_a_get_runs_it_too_with_an_empty_body(acme: Organisation) -> None:
    source = (
        'return params.get("method") .. ":" .. params.get("query") .. ":" .. #params.get("body")'
    )
    response = Client().get(path_of(make_hook(make_script(acme, source))) + "?a=1&b=%20")

    assert response.content == b"GET:a=1&b=%20:0"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (bytes(range(256)) * 16, "application/octet-stream"),
        (b"a=1&b=2", "application/x-www-form-urlencoded"),
        (
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--',
            "multipart/form-data; boundary=x",
        ),
        (b"<a/>", "application/xml"),
        (b"\x00", "nonsense"),
        (b"", "application/json"),
    ],
)
def test_the_body_reaches_the_script_untouched(
    echo: IssuedHook, body: bytes, content_type: str
) -> None:
    assert call(echo, body, content_type).content == body
    assert bytes(Run.objects.get().request_body) == body
    assert bytes(Run.objects.get().response_body) == body


def test_the_script_sees_its_request(acme: Organisation) -> None:
    issued = make_hook(
        make_script(
            acme,
            """return {
                content_type = params.get("content_type"), remote_addr = params.get("remote_addr"),
                run_id = params.get("run_id"), hook_id = params.get("hook_id"),
                script_id = params.get("script_id"), org_id = params.get("org_id"),
                header = params.header("x-shop"), page = params.query("page"),
                nothing = params.get("nothing") == nil,
            }""",
        )
    )
    response = Client().post(
        path_of(issued) + "?page=a%20b", b"x", content_type="a/b", headers={"X-Shop": "tea"}
    )

    assert response.json() == {
        "content_type": "a/b",
        "remote_addr": "127.0.0.1",
        "run_id": response["Moonhook-Run-Id"],
        "hook_id": str(issued.hook.pk),
        "script_id": str(issued.hook.script_id),
        "org_id": str(acme.pk),
        "header": "tea",
        "page": "a b",
        "nothing": True,
    }


@pytest.mark.parametrize(
    ("source", "status", "content_type", "body"),
    [
        ("", 200, None, b""),
        ("return", 200, None, b""),
        ("return nil", 200, None, b""),
        ('return "a\\0b"', 200, "text/plain; charset=utf-8", b"a\0b"),
        ("return {}", 200, "application/json", b"[]"),
        ("return {a = 1}", 200, "application/json", b'{"a":1}'),
        ("return 5", 200, "application/json", b"5"),
        ("return false", 200, "application/json", b"false"),
        ("return null", 200, "application/json", b"null"),
        ("return Reply{status = 201}", 201, None, b""),
        ('return Reply{status = 404, body = "no"}', 404, "text/plain; charset=utf-8", b"no"),
        ("return Reply{body = {a = array{}}}", 200, "application/json", b'{"a":[]}'),
        (
            'return Reply{headers = {["Content-Type"] = "text/csv"}, body = "a,b"}',
            200,
            "text/csv",
            b"a,b",
        ),
        ("return Reply{status = 204}", 204, None, b""),
    ],
)
def test_the_reply_is_the_scripts_result(
    acme: Organisation, source: str, status: int, content_type: str | None, body: bytes
) -> None:
    response = reply_of(acme, source)

    assert response.status_code == status
    assert response.headers.get("Content-Type") == content_type
    assert response.content == body
    run = Run.objects.get()
    assert run.status == RunStatus.SUCCEEDED
    assert (run.response_status, bytes(run.response_body)) == (status, body)


def test_a_script_may_set_headers_but_not_ours(acme: Organisation) -> None:
    response = reply_of(
        acme,
        """return Reply{headers = {
            ["X-Mine"] = "1", ["Cache-Control"] = "max-age=60", ["Set-Cookie"] = "a=b",
            ["content-security-policy"] = "none", ["Connection"] = "close",
            ["X-Accel-Redirect"] = "/internal", ["X-Sendfile"] = "/etc/passwd",
            ["Content-Length"] = "99", ["Strict-Transport-Security"] = "max-age=1",
            Set_Cookie = "a=b", NEL = "{}", ["Report-To"] = "{}", ["WWW-Authenticate"] = "Basic",
        }}""",
    )

    assert response["X-Mine"] == "1"
    assert response["Cache-Control"] == "max-age=60"
    assert response["Content-Security-Policy"] == "sandbox"
    assert response.cookies == {}
    assert "Set-Cookie" not in response.headers
    assert "Strict-Transport-Security" not in response.headers
    assert "X-Accel-Redirect" not in response.headers
    assert "X-Sendfile" not in response.headers
    assert {"Set_Cookie", "NEL", "Report-To", "WWW-Authenticate"}.isdisjoint(response.headers)
    logged = " ".join(line["text"] for line in Run.objects.get().logs)
    assert "Set-Cookie" in logged
    assert "Set_Cookie" in logged


@pytest.mark.parametrize(
    "source",
    [
        'error("tenant secret")',
        'return nil, "tenant secret"',
        "return Reply{status = 99}",
        'return Reply{status = "tenant secret"}',
        'return Reply{headers = {["X-A"] = "tenant secret\\r\\nX-B: 1"}}',
        "return function() end",
        "local x = nil; return x.y",
        "not lua",
    ],
)
def test_a_failing_script_is_a_problem_without_its_text(acme: Organisation, source: str) -> None:
    script = make_script(acme)
    version = script.current_version
    assert version is not None
    version.source = source
    version.save()
    response = call(make_hook(script))

    assert response.status_code == 500
    problem = response.json()
    assert problem["code"] == "script-failed"
    assert problem["runId"] == response["Moonhook-Run-Id"] == str(Run.objects.get().pk)
    assert "tenant secret" not in response.content.decode()
    run = Run.objects.get()
    assert run.status == RunStatus.FAILED
    assert run.response_status == 500
    assert run.error_message


def test_the_run_names_the_line_of_the_error(acme: Organisation) -> None:
    reply_of(acme, 'local a = 1\nprint("before")\nerror("broken")')

    run = Run.objects.get()
    assert (run.error_line, run.logs[0]["text"]) == (3, "before")
    assert "broken" in run.error_message


@pytest.mark.parametrize("line", ["9999999999", "99999999999999999999999"])
def test_a_run_that_chooses_its_error_line_is_on_record(acme: Organisation, line: str) -> None:
    response = reply_of(acme, f'store.set("effect", 1)\nerror("echo:{line}: boom", 0)')

    assert response.status_code == 500
    assert response.json()["code"] == "script-failed"
    run = Run.objects.get()
    assert response["Moonhook-Run-Id"] == str(run.pk)
    assert run.error_message == f"echo:{line}: boom"
    assert run.error_line in {None, 2}
    assert StoredValue.objects.count() == 1


def test_nul_in_a_call_is_kept_as_a_symbol(echo: IssuedHook) -> None:
    response = Client().post(
        path_of(echo), b"a\0b", content_type="x/y", QUERY_STRING="a=\0", HTTP_X_ODD="a\0b"
    )

    assert (response.status_code, response.content) == (200, b"a\0b")
    run = Run.objects.get()
    assert (run.request_query, bytes(run.request_body)) == ("a=␀", b"a\0b")
    assert ["X-Odd", "a␀b"] in run.request_headers


def test_a_script_that_takes_too_long_is_stopped(acme: Organisation) -> None:
    script = make_script(acme, "while true do end")
    Script.objects.update(timeout_seconds=0.3)
    response = call(make_hook(script))

    assert response.status_code == 504
    assert response.json()["code"] == "script-timed-out"
    assert Run.objects.get().status == RunStatus.TIMED_OUT


def test_a_script_that_takes_too_much_memory_is_stopped(acme: Organisation) -> None:
    response = reply_of(acme, 'local t = {} while true do t[#t + 1] = ("x"):rep(1e6) .. #t end')

    assert response.status_code == 500
    assert response.json()["code"] == "script-out-of-memory"
    assert Run.objects.get().status == RunStatus.OUT_OF_MEMORY


def test_a_reply_that_is_too_large_is_a_problem(acme: Organisation) -> None:
    response = reply_of(acme, 'return ("x"):rep(1024 * 1024 + 1)')

    assert response.status_code == 500
    assert response.json()["code"] == "reply-too-large"
    assert Run.objects.get().status == RunStatus.FAILED


def test_a_payload_that_is_too_large_runs_nothing(echo: IssuedHook) -> None:
    response = call(echo, b"x" * (1024 * 1024 + 1))

    assert response.status_code == 413
    assert response.json()["code"] == "body-too-large"
    assert Run.objects.count() == 0
    assert call(echo, b"x" * (1024 * 1024)).status_code == 200


def test_the_run_is_recorded_in_full(acme: Organisation) -> None:
    issued = make_hook(
        make_script(acme, 'log.warn("careful") return Reply{status = 202, body = "ok"}')
    )
    response = Client().post(
        path_of(issued) + "?a=b",
        b"payload",
        content_type="text/x",
        headers={"X-Shop": "tea", "Authorization": "Bearer foreign"},
    )

    run = Run.objects.get()
    assert str(run.pk) == response["Moonhook-Run-Id"]
    assert (run.organisation, run.script, run.hook_id) == (
        acme,
        issued.hook.script,
        issued.hook.pk,
    )
    assert run.script_version == issued.hook.script.current_version
    assert run.trigger == Trigger.HOOK
    assert (run.request_method, run.request_query) == ("POST", "a=b")
    assert ["X-Shop", "tea"] in run.request_headers
    assert ["Authorization", "[redacted]"] in run.request_headers
    assert (run.response_status, bytes(run.response_body)) == (202, b"ok")
    assert [(line["level"], line["text"]) for line in run.logs] == [("warn", "careful")]
    assert run.duration_ms > 0
    assert run.queued_ms >= 0
    assert run.error_message == ""


def test_a_script_does_not_see_the_session_of_a_visitor(acme: Organisation) -> None:
    issued = make_hook(
        make_script(acme, 'return {params.header("cookie") == nil, params.header("authorization")}')
    )
    session = credentials.generate_secret(SecretKind.SESSION)
    client = Client()
    client.cookies["moonhook_session"] = session
    hidden = client.get(path_of(issued), headers={"Authorization": f"Bearer {session}"})
    shown = client.get(path_of(issued), headers={"Authorization": "Bearer of-the-sender"})

    assert hidden.json() == [True]
    assert shown.json() == [True, "Bearer of-the-sender"]
    assert session not in str(list(Run.objects.values()))


def test_a_run_sees_nothing_of_the_run_before(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, "seen = (seen or 0) + 1; return seen"))

    assert [call(issued).content for _ in range(3)] == [b"1", b"1", b"1"]


def test_nul_and_other_bytes_in_logs_and_errors_are_shown_as_symbols(acme: Organisation) -> None:
    reply_of(acme, 'print("a\\0b\\255") error("c\\0d")')

    run = Run.objects.get()
    assert run.logs[0]["text"] == "a␀b�"
    assert "c␀d" in run.error_message


@pytest.mark.parametrize(
    "change",
    [
        {"organisation": uuid.uuid4()},
        {"organisation": "not-a-uuid"},
        {"script": uuid.uuid4()},
        {"script": "not-a-uuid"},
        {"token": credentials.generate_secret(SecretKind.CALL_TOKEN)},
        {"token": "wrong"},
        {"token": "a/b"},
    ],
)
def test_every_wrong_address_gets_the_same_response(
    echo: IssuedHook, change: dict[str, object]
) -> None:
    assert_not_found(Client().post(path_of(echo, **change), b"", content_type="text/plain"))
    assert call(echo).status_code == 200


@pytest.mark.parametrize("end", ["/", "/items/"])
@pytest.mark.parametrize("is_known", [True, False])
def test_trailing_slash_is_named_for_right_and_wrong_tokens(
    echo: IssuedHook, end: str, *, is_known: bool
) -> None:
    token = {} if is_known else {"token": credentials.generate_secret(SecretKind.CALL_TOKEN)}

    response = Client().post(path_of(echo, **token) + end, b"", content_type="text/plain")

    assert response.status_code == 404
    assert response.json()["detail"] == "No such path. Paths have no trailing slash."
    assert Run.objects.count() == 0


def test_a_token_opens_only_its_own_script(acme: Organisation, echo: IssuedHook) -> None:
    other = make_script(acme, name="other")

    assert_not_found(Client().get(path_of(echo, script=other.pk)))


def test_a_disabled_hook_is_not_found(echo: IssuedHook) -> None:
    update_hook(echo.hook, is_enabled=False)

    assert_not_found(call(echo))


def test_a_hook_of_a_disabled_script_is_not_found(echo: IssuedHook) -> None:
    Script.objects.update(is_enabled=False)

    assert_not_found(call(echo))


def test_a_hook_of_an_inactive_organisation_is_not_found(
    acme: Organisation, echo: IssuedHook
) -> None:
    acme.is_active = False
    acme.save()

    assert_not_found(call(echo))


def test_a_deleted_hook_is_not_found(echo: IssuedHook) -> None:
    delete_hook(echo.hook)

    assert_not_found(call(echo))


def test_a_hook_of_a_deleted_script_is_not_found(echo: IssuedHook) -> None:
    delete_script(echo.hook.script)

    assert_not_found(call(echo))


def test_a_rotated_token_is_refused_and_the_new_one_accepted(echo: IssuedHook) -> None:
    rotated = rotate_call_token(Hook.objects.get())

    assert_not_found(call(echo))
    assert call(rotated).status_code == 200


def test_a_head_with_the_right_token_runs_nothing(echo: IssuedHook) -> None:
    response = Client().head(path_of(echo))

    assert response.status_code == 200
    assert Run.objects.count() == 0
    assert Client().head(path_of(echo, token="wrong")).status_code == 404


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_other_methods_are_answered_before_anything_else(db: None, method: str) -> None:
    response = getattr(Client(), method)("/hook/a/b/c")

    assert response.status_code == 405
    assert response.json()["code"] == "method-not-allowed"
    assert response["Allow"] == "GET, HEAD, POST"
    assert response.headers.items() >= PROTECTION.items()


@pytest.mark.django_db(transaction=True)
def test_a_call_takes_one_select_and_one_insert(
    echo: IssuedHook, django_assert_num_queries: Any
) -> None:
    # The source is read by the first call of a version.
    call(echo, b"{}")
    with django_assert_num_queries(2) as captured:
        call(echo, json.dumps({"a": 1}).encode())

    statements = [query["sql"].split()[0] for query in captured.captured_queries]
    assert statements == ["SELECT", "INSERT"]


def test_a_new_version_runs_at_once(echo: IssuedHook) -> None:
    script = echo.hook.script
    call(echo, b"{}")
    update_script(script, source="return 'new'", author=NOBODY)

    assert call(echo, b"{}").content == b"new"


def test_the_call_token_is_not_in_the_run(echo: IssuedHook) -> None:
    call(echo)

    assert echo.call_token not in str(Run.objects.values().get())
    assert echo.call_token not in str(Hook.objects.values().get())


def test_a_secret_that_the_caller_proved_is_not_kept_with_the_request(acme: Organisation) -> None:
    set_secret(acme, name="SHOP_TOKEN", value="sh0p-geheim")
    source = """local token = secrets.get("SHOP_TOKEN")
        return params.header("X-Shop-Token") == token and params.query("t") == token"""
    hook = make_hook(make_script(acme, source))
    headers = {"X-Shop-Token": "sh0p-geheim", "X-Other": "v1=sh0p-geheim", "X-Shop": "tea"}

    reply = Client().post(path_of(hook) + "?t=sh0p-geheim&n=1", headers=headers)

    assert reply.content == b"true"
    run = Run.objects.get()
    assert "sh0p-geheim" not in f"{run.request_headers}{run.request_query}"
    assert run.request_query == "t=[redacted]&n=1"
    assert ["X-Shop-Token", "[redacted]"] in run.request_headers
    assert ["X-Other", "[redacted]"] in run.request_headers
    assert ["X-Shop", "tea"] in run.request_headers


def test_only_ids_of_the_right_length_are_kept() -> None:
    known = uuid.uuid4()
    _parsed.cache_clear()
    others = ["", "a" * 35, "a" * 8_000, f"{{{known}}}", f"urn:uuid:{known}", known.hex]

    assert [canonical_uuid(text) for text in others] == [None] * 6
    assert _parsed.cache_info().currsize == 0
    # 36 characters that uuid.UUID takes for the same id.
    assert canonical_uuid(f"----{known.hex}") is None
    assert canonical_uuid(str(known)) == canonical_uuid(str(known).upper()) == known
