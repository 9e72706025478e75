"""The page of the installation: who sees it, and that it says what is so."""

import platform
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import Organisation
from core.version import moonhook_version
from hooks.models import Hook
from tests import factories
from tests.admin.pages import text_of

INSTALLATION = reverse("admin:installation")


def past_runs(hook: Hook, count: int, status: str = "succeeded", hours: float = 0) -> None:
    at = timezone.now() - timedelta(hours=hours, minutes=1)
    for _ in range(count):
        factories.make_past_run(hook, at, status)


def page(client: Client) -> Any:
    response = client.get(INSTALLATION)
    assert response.status_code == 200
    return response.context


def test_only_superusers_see_it(as_bob: Client, as_erin: Client) -> None:
    answers = [client.get(INSTALLATION) for client in (as_bob, as_erin)]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert INSTALLATION not in text_of(as_bob.get(reverse("admin:index")))


def test_the_menu_of_root_lists_it(as_root: Client) -> None:
    assert INSTALLATION in text_of(as_root.get(reverse("admin:index")))


def test_the_node_is_described_as_by_its_readiness(as_root: Client) -> None:
    node = page(as_root)["node"]

    assert node.title == "Ready"
    assert {(each.name, each.text) for each in node.conditions} == {
        ("database", "ok"),
        ("sandbox", "ok"),
        ("queue", "ok"),
    }


def test_the_busiest_organisations_come_first(
    as_root: Client, acme_hook: Hook, globex: Organisation
) -> None:
    globex_hook = factories.make_hook(factories.make_script(globex)).hook
    past_runs(acme_hook, 2)
    past_runs(acme_hook, 5, hours=25)
    past_runs(globex_hook, 3)
    past_runs(globex_hook, 1, "failed")

    shown = page(as_root)["organisations"]

    assert [(each.name, each.runs, each.not_succeeded) for each in shown] == [
        ("Globex", 4, 1),
        ("Acme", 2, 0),
    ]
    assert [each.share_percent for each in shown] == [100, 50]
    assert str(globex.pk) in shown[0].runs_url
    assert as_root.get(shown[0].runs_url).status_code == 200


def test_organisations_without_recent_runs_are_left_out(as_root: Client, acme_hook: Hook) -> None:
    past_runs(acme_hook, 1, hours=25)

    assert "No runs in the last 24 hours." in text_of(as_root.get(INSTALLATION))


def test_queries_do_not_grow_with_organisations(as_root: Client, acme_hook: Hook) -> None:
    past_runs(acme_hook, 1)
    as_root.get(INSTALLATION)
    with CaptureQueriesContext(connection) as one:
        as_root.get(INSTALLATION)
    for number in range(3):
        of_other = factories.make_organisation(f"Other {number}")
        past_runs(factories.make_hook(factories.make_script(of_other)).hook, 1)
    with CaptureQueriesContext(connection) as four:
        as_root.get(INSTALLATION)

    assert len(four) == len(one)


def test_versions_and_the_size_of_the_database(as_root: Client) -> None:
    context = page(as_root)

    assert dict(context["versions"])["Moonhook"] == moonhook_version()
    assert dict(context["versions"])["Python"] == platform.python_version()
    assert dict(context["database"])["Size"].endswith("iB")


def test_a_database_that_does_not_tell_its_size(
    as_root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise DatabaseError("permission denied for database moonhook")

    monkeypatch.setattr("config.admin.installation.database_bytes", refuse)

    text = text_of(as_root.get(INSTALLATION))

    assert "unknown: the database does not say" in text
    assert "permission denied" not in text
