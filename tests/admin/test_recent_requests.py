"""The recent requests that Try it offers: each entry can be told from the others."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from scripts_engine.admin.scripts.try_form import MAX_OFFERED_REQUESTS
from scripts_engine.models import Run, RunStatus, Script
from tests import factories
from tests.admin.pages import logged_in, run_of

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]


def offered(client: Client, script: Script, **query: str) -> list[Any]:
    address = reverse("admin:scripts_engine_script_payloads", args=[script.pk])
    requests: list[Any] = client.get(address, query).json()["requests"]
    return requests


def title_of(client: Client, script: Script, body: bytes) -> str:
    run_of(factories.make_hook(script, "shop").hook, body=body)
    title: str = offered(client, script)[0]["title"]
    return title


def test_an_entry_has_time_outcome_method_body_and_hook(
    as_bob: Client, acme_script: Script
) -> None:
    title = title_of(as_bob, acme_script, b'{"id": 7}')

    started = Run.objects.get().started_at
    assert title == f'{started:%b %d, %H:%M:%S} UTC · Succeeded · POST · {{"id": 7}} · shop'


@pytest.mark.parametrize(
    ("body", "preview"),
    [
        (b"", "empty body"),
        (b"\xff\xfe\x00tea", "binary"),
        (b"\xff\xfe\xfd", "binary"),
        (b'{\n  "id": 7\r\n}', '{ "id": 7 }'),
        (b"tea \x1b[31m\xe2\x80\xaered", "tea [31mred"),
        (b"x" * 41, "x" * 40 + "…"),
        ("é".encode() * 100, "é" * 40 + "…"),
    ],
)
def test_a_body_is_previewed_in_one_line(
    as_bob: Client, acme_script: Script, body: bytes, preview: str
) -> None:
    assert f" · {preview} · " in title_of(as_bob, acme_script, body)


def test_failed_requests_are_offered_alone(as_bob: Client, acme_script: Script) -> None:
    hook = factories.make_hook(acme_script).hook
    good, bad = run_of(hook, body=b"good"), run_of(hook, body=b"bad")
    Run.objects.filter(pk=bad.pk).update(status=RunStatus.TIMED_OUT)

    assert [one["run"] for one in offered(as_bob, acme_script)] == [str(bad.pk), str(good.pk)]
    (failed,) = offered(as_bob, acme_script, failed="1")
    assert failed["run"] == str(bad.pk)
    assert " · Timed out · POST · bad · " in failed["title"]


def test_requests_of_another_script_are_not_offered(as_bob: Client, acme_script: Script) -> None:
    other = factories.make_script(acme_script.organisation, name="other")
    run_of(factories.make_hook(other).hook, body=b"other")

    assert offered(as_bob, acme_script) == []


def test_charlie_is_not_offered_requests_of_acme(charlie: User, acme_script: Script) -> None:
    run_of(factories.make_hook(acme_script).hook, body=b"hers")
    address = reverse("admin:scripts_engine_script_payloads", args=[acme_script.pk])

    reply = logged_in(charlie).get(address, {"failed": "1"})

    assert reply.status_code == 404
    assert "hers" not in reply.content.decode()


def test_the_list_of_requests_takes_few_queries(
    as_bob: Client, acme_script: Script, django_assert_max_num_queries: Any
) -> None:
    run = run_of(factories.make_hook(acme_script).hook, body=b"tea")
    spec = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}
    del spec["id"]
    Run.objects.bulk_create([Run(**spec) for _ in range(MAX_OFFERED_REQUESTS + 5)])

    with django_assert_max_num_queries(12):
        requests = offered(as_bob, acme_script)

    assert len(requests) == MAX_OFFERED_REQUESTS
