"""Pages of the admin on a database that answers and stores nothing."""

import time
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Organisation
from tests.unavailable import assert_logged_in_one_line, read_only_database

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_change_in_the_admin_finds_it_unavailable(
    as_bob: Client, acme: Organisation, caplog: pytest.LogCaptureFixture
) -> None:
    form = {"name": "new", "source": "return 1", "timeout_seconds": "5", "is_enabled": "on"}
    with read_only_database():
        refused = as_bob.post(reverse("admin:scripts_engine_script_add"), form)

    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert "Database unavailable" in refused.content.decode()
    assert not acme.scripts.exists()
    assert_logged_in_one_line(caplog, "unavailable")


def test_a_login_whose_use_cannot_be_noted_finds_it_unavailable(
    as_bob: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # It is noted once a minute, when the page is made already.
    as_bob.get(reverse("admin:index"))
    now = time.time()
    clock = SimpleNamespace(time=lambda: now + 120)
    monkeypatch.setattr("config.admin.middleware.time", clock)
    with read_only_database():
        refused = as_bob.get(reverse("admin:index"))

    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert "Database unavailable" in refused.content.decode()
    assert "default-src 'none'" in refused["Content-Security-Policy"]
    assert_logged_in_one_line(caplog, "unavailable")
    assert as_bob.get(reverse("admin:index")).status_code == 200
