"""Try it: running an unsaved source with a custom or recent request."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Organisation, User
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.sandbox import SandboxBusy, SandboxPool
from tests import factories
from tests.admin import pages

pytestmark = pytest.mark.django_db

CALL = {
    "source": 'return params.get("method") .. params.get("body")',
    "method": "POST",
    "query": "",
    "headers": "",
    "body": "tea",
    "body_of": None,
}


def send(client: Client, page: str, data: Any, *args: object) -> Any:
    return client.post(
        reverse(f"admin:scripts_engine_script_{page}", args=args),
        json.dumps(data),
        content_type="application/json",
    )


def try_it(client: Client, script: Script, **changes: Any) -> Any:
    return send(client, "try", CALL | changes, script.pk)


def test_the_unsaved_source_runs(as_bob: Client, bob: User, acme_script: Script) -> None:
    reply = try_it(as_bob, acme_script)

    assert reply.status_code == 200
    assert "POSTtea" in reply.json()["html"]
    run = Run.objects.get()
    assert bytes(run.response_body) == b"POSTtea"
    assert (run.trigger, run.started_by) == (Trigger.ADMIN, bob)
    assert run.unsaved_source == CALL["source"]
    assert acme_script.versions.count() == 1


def test_the_script_sees_the_typed_call(as_bob: Client, acme_script: Script) -> None:
    source = 'return params.header("x-shop") .. params.query("page") .. params.get("remote_addr")'

    try_it(
        as_bob, acme_script, source=source, headers="X-Shop: tea\r\nAccept: */*", query="?page=2"
    )

    run = Run.objects.get()
    assert bytes(run.response_body) == b"tea2127.0.0.1"
    assert run.request_headers == [["X-Shop", "tea"], ["Accept", "*/*"]]


def test_the_body_arrives_as_typed(as_bob: Client, acme_script: Script) -> None:
    body = "  één\n\ttwo \r\n"

    try_it(as_bob, acme_script, source='return params.get("body")', body=body)

    assert bytes(Run.objects.get().request_body) == body.encode()


def test_an_error_says_its_line(as_bob: Client, acme_script: Script) -> None:
    answer = try_it(as_bob, acme_script, source="\n\nerror('out of tea')").json()

    assert answer["line"] == 3
    assert "out of tea" in answer["message"]
    assert "Line 3" in answer["html"]


def test_a_source_that_does_not_compile_says_its_line(as_bob: Client, acme_script: Script) -> None:
    answer = try_it(as_bob, acme_script, source="\nlocal = 2").json()

    assert answer["line"] == 2


def test_script_output_is_escaped_on_the_page(as_bob: Client, acme_script: Script) -> None:
    source = 'log.info("<img src=x>") error("<script>alert(1)</script>")'

    html = try_it(as_bob, acme_script, source=source).json()["html"]

    assert "&lt;img src=x&gt;" in html
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "<img" not in html


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("source", "return 1 --\0", "Null characters are not allowed."),
        ("source", "-" * 65_537, "at most 65536 bytes"),
        ("source", "\ud800", "characters"),
        ("method", "PATCH", "not one of the available choices"),
        ("query", "tea pot", "Write the query as in a URL"),
        ("headers", "no colon", "is not a valid header"),
        ("headers", "X Shop: tea", "is not a valid header"),
        ("headers", "X-Shop: \u20ac", "is not a valid header"),
        ("body", "\ud800", "invalid characters"),
        ("body", "x" * 1_048_577, "maximum payload is 1048576 bytes"),
        ("body_of", "018f0000-0000-7000-8000-000000000000", "no longer exists"),
        ("body_of", "nonsense", "Enter a valid UUID."),
    ],
)
def test_an_invalid_request_runs_nothing(
    as_bob: Client, acme_script: Script, field: str, value: str, told: str
) -> None:
    reply = try_it(as_bob, acme_script, **{field: value})

    assert reply.status_code == 400
    assert told in " ".join(reply.json()["errors"][field])
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b'{"method": "POST", "n": NaN}', b"[" * 200_000]
)
def test_a_body_that_is_not_an_object_runs_nothing(
    as_bob: Client, acme_script: Script, body: bytes
) -> None:
    address = reverse("admin:scripts_engine_script_try", args=[acme_script.pk])

    reply = as_bob.post(address, body, content_type="application/json")

    assert reply.status_code == 400
    assert "method" in reply.json()["errors"]
    assert not Run.objects.exists()


def test_a_binary_payload_is_sent_from_its_run(as_bob: Client, acme_script: Script) -> None:
    binary = bytes(range(256))
    earlier = pages.run_of(factories.make_hook(acme_script).hook, body=binary)

    try_it(as_bob, acme_script, source='return #params.get("body")', body_of=str(earlier.pk))

    again = Run.objects.exclude(pk=earlier.pk).get()
    assert bytes(again.request_body) == binary


def test_a_payload_of_another_script_is_not_sent(
    as_bob: Client, acme_script: Script, acme: Organisation
) -> None:
    other = factories.make_script(acme, name="other")
    foreign = pages.run_of(factories.make_hook(other).hook, body=b"hers")

    reply = try_it(as_bob, acme_script, body_of=str(foreign.pk))

    assert reply.status_code == 400
    assert Run.objects.count() == 1


def test_a_busy_sandbox_is_reported(
    as_bob: Client, acme_script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*arguments: object) -> None:
        raise SandboxBusy(retry_after=1)

    monkeypatch.setattr(SandboxPool, "run", busy)

    reply = try_it(as_bob, acme_script)

    assert reply.status_code == 503
    assert "No sandbox came free" in reply.json()["errors"]["__all__"][0]
    assert not Run.objects.exists()


def test_no_script_of_a_disabled_organisation_runs(
    as_bob: Client, acme: Organisation, acme_script: Script
) -> None:
    assert try_it(as_bob, acme_script).status_code == 200
    acme.is_active = False
    acme.save()

    reply = try_it(as_bob, acme_script)

    assert reply.status_code == 409
    assert "switched off" in reply.json()["errors"]["__all__"][0]
    assert Run.objects.count() == 1


def test_a_header_that_was_received_can_be_sent_again(as_bob: Client, acme_script: Script) -> None:
    city = "Århus".encode().decode("latin-1")
    call = pages.run_of(factories.make_hook(acme_script).hook, headers=(("X-City", city),))
    address = reverse("admin:scripts_engine_script_payloads", args=[acme_script.pk])
    payload = as_bob.get(address, {"run": str(call.pk)}).json()

    reply = try_it(as_bob, acme_script, headers=payload["headers"])

    assert reply.status_code == 200
    assert Run.objects.exclude(pk=call.pk).get().request_headers == [["X-City", city]]


def test_the_page_can_check_whether_the_login_is_valid(as_bob: Client) -> None:
    address = reverse("admin:scripts_engine_script_alive")

    assert as_bob.post(address).status_code == 200
    assert Client().post(address).status_code == 302


def test_trying_requires_post(as_bob: Client, acme_script: Script) -> None:
    address = reverse("admin:scripts_engine_script_try", args=[acme_script.pk])

    assert as_bob.get(address).status_code == 405
    assert not Run.objects.exists()


def test_trying_requires_the_csrf_token(bob: User, acme_script: Script) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)

    reply = try_it(strict, acme_script)

    assert reply.status_code == 403
    assert not Run.objects.exists()


def test_charlie_cannot_try_a_script_of_acme(charlie: User, acme_script: Script) -> None:
    reply = try_it(pages.logged_in(charlie), acme_script)

    assert reply.status_code == 404
    assert not Run.objects.exists()


def test_a_user_without_organisations_cannot_try(as_erin: Client, acme_script: Script) -> None:
    reply = try_it(as_erin, acme_script)

    assert reply.status_code in {403, 404}
    assert not Run.objects.exists()


def test_the_newest_requests_are_offered(as_bob: Client, acme_script: Script) -> None:
    hook = factories.make_hook(acme_script, "shop").hook
    call = pages.run_of(hook, body=b'{"a": 1}')
    try_it(as_bob, acme_script)
    address = reverse("admin:scripts_engine_script_payloads", args=[acme_script.pk])

    offered = as_bob.get(address).json()["requests"]

    assert [one["run"] for one in offered] == [str(call.pk)]
    assert "shop" in offered[0]["title"]


def test_a_recent_request_omits_redacted_headers(as_bob: Client, acme_script: Script) -> None:
    hook = factories.make_hook(acme_script).hook
    call = pages.run_of(hook, body=b'{"a": 1}')
    Run.objects.filter(pk=call.pk).update(
        request_headers=[["Authorization", "[redacted]"], ["X-Shop", "tea"]]
    )
    address = reverse("admin:scripts_engine_script_payloads", args=[acme_script.pk])

    payload = as_bob.get(address, {"run": str(call.pk)}).json()

    assert payload["headers"] == "X-Shop: tea"
    assert payload["body"] == '{"a": 1}'


@pytest.mark.parametrize("body", [b"\xff", b"a\r\nb", b"a\0b"])
def test_bytes_that_a_text_field_would_change_are_not_offered_as_text(
    as_bob: Client, acme_script: Script, body: bytes
) -> None:
    call = pages.run_of(factories.make_hook(acme_script).hook, body=body)
    address = reverse("admin:scripts_engine_script_payloads", args=[acme_script.pk])

    payload = as_bob.get(address, {"run": str(call.pk)}).json()

    assert payload["body"] is None
    assert payload["size"] == len(body)


@pytest.mark.parametrize("run", ["nonsense", "018f0000-0000-7000-8000-000000000000"])
def test_an_unknown_run_has_no_payload(as_bob: Client, acme_script: Script, run: str) -> None:
    address = reverse("admin:scripts_engine_script_payloads", args=[acme_script.pk])

    assert as_bob.get(address, {"run": run}).status_code == 404


def test_a_run_of_another_script_has_no_payload_here(
    as_bob: Client, acme_script: Script, globex_objects: dict[type, Any]
) -> None:
    address = reverse("admin:scripts_engine_script_payloads", args=[acme_script.pk])

    reply = as_bob.get(address, {"run": str(globex_objects[Run].pk)})

    assert reply.status_code == 404


def test_the_source_is_checked_while_typing(as_bob: Client, acme: Organisation) -> None:
    asked = {"organisation": str(acme.pk), "source": "local a = 1\r\nlocal = 2"}

    answer = send(as_bob, "check", asked).json()

    assert answer["line"] == 2
    assert "'='" in answer["message"]


def test_a_valid_source_has_no_error(as_bob: Client, acme: Organisation) -> None:
    answer = send(as_bob, "check", {"organisation": str(acme.pk), "source": "return 1"}).json()

    assert answer == {"line": None, "message": None, "warnings": []}


def test_a_check_warns_of_globals(as_bob: Client, acme: Organisation) -> None:
    source = "local total = 1\r\nsum = total\r\nreturn totla"

    answer = send(as_bob, "check", {"organisation": str(acme.pk), "source": source}).json()

    assert answer == {
        "line": None,
        "message": None,
        "warnings": [
            {"line": 2, "message": "Assigns a global `sum`; add local.", "isNote": True},
            {
                "line": 3,
                "message": "`totla` is not defined. Did you mean `total`?",
                "isNote": False,
            },
        ],
    }


def test_a_check_warns_of_a_local_out_of_scope(as_bob: Client, acme: Organisation) -> None:
    asked = {"organisation": str(acme.pk), "source": "do local sum = 1 end return sum"}

    (warning,) = send(as_bob, "check", asked).json()["warnings"]

    assert warning["message"] == "`sum` is not defined here: the local `sum` is out of scope."


def test_a_script_with_warnings_is_saved(as_bob: Client, acme_script: Script) -> None:
    page = reverse("admin:scripts_engine_script_change", args=[acme_script.pk])
    form = {"name": "orders", "timeout_seconds": "10", "is_enabled": "on", "source": "return totla"}

    reply = as_bob.post(page, form)

    assert reply.status_code == 302
    acme_script.refresh_from_db()
    assert acme_script.source == "return totla"


@pytest.mark.parametrize("organisation", ["", "nonsense"])
def test_checking_requires_an_organisation(as_bob: Client, organisation: str) -> None:
    asked = {"organisation": organisation, "source": "return 1"}

    assert send(as_bob, "check", asked).status_code == 404


def test_charlie_cannot_compile_as_acme(charlie: User, acme: Organisation) -> None:
    asked = {"organisation": str(acme.pk), "source": "return 1"}

    assert send(pages.logged_in(charlie), "check", asked).status_code == 404
