"""What one page of the admin may take from the others: rows counted, time, places, lines."""

import json
import logging
import time
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import Model, QuerySet
from django.db.models.expressions import RawSQL
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import ApiKey, AuthEvent, Organisation, Role, User
from config.admin import requests
from core.http.bulkhead import Bulkhead
from core.logs.setup import RefusalsWithoutTraceback
from hooks.models import Hook
from scripts_engine.admin import differences
from scripts_engine.admin.runs import page
from scripts_engine.admin.scripts import try_it
from scripts_engine.admin.scripts.page import ScriptAdmin
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run, Script, StoredValue
from scripts_engine.runs.spec import NOBODY
from sessions_api.models import Session
from tests import factories
from tests.admin.addresses import REGISTERED
from tests.admin.pages import action_on, list_of, logged_in, page_of, run_of, text_of

every_model = pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)

ENDLESS = """SELECT 1 FROM (WITH RECURSIVE n(i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e12) SELECT max(i) AS last FROM n) t"""
AUTOCOMPLETE = "/admin/autocomplete/?app_label=hooks&model_name=hook&field_name=script&term=a"


@pytest.fixture
def seventy_values(acme: Organisation) -> None:
    StoredValue.objects.bulk_create(
        StoredValue(organisation=acme, key=f"key {number:02}".encode(), value="1")
        for number in range(70)
    )


@pytest.fixture
def counted_to_60(settings: Any) -> None:
    settings.ADMIN_MAX_COUNTED = 60


@pytest.fixture
def endless_scripts(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Every look at scripts takes longer than anybody waits."""
    real = ScriptAdmin.get_queryset

    def endless(self: Any, request: Any) -> QuerySet[Any]:
        return real(self, request).annotate(last=RawSQL(ENDLESS, [])).filter(last=0)

    monkeypatch.setattr(ScriptAdmin, "get_queryset", endless)
    settings.ADMIN_DEADLINE_SECONDS = 0.1


# --- Counting -----------------------------------------------------------------------------------


def test_a_list_says_that_there_are_more_than_it_counts(
    as_bob: Client, seventy_values: None, counted_to_60: None
) -> None:
    text = " ".join(text_of(as_bob.get(list_of(StoredValue))).split())

    assert "60+ stored values: only the first 60 are listed." in text


def test_a_list_that_is_counted_says_how_many(as_bob: Client, seventy_values: None) -> None:
    text = " ".join(text_of(as_bob.get(list_of(StoredValue))).split())

    assert "70 stored values" in text
    assert "only the first" not in text


def test_the_last_counted_page_is_shown_and_no_later_one(
    as_bob: Client, seventy_values: None, counted_to_60: None
) -> None:
    last = as_bob.get(list_of(StoredValue), {"p": "2"})
    later = as_bob.get(list_of(StoredValue), {"p": "3"})

    assert "key 59" in text_of(last)
    assert "key 60" not in text_of(last)
    assert later.status_code == 302
    assert later["Location"].endswith("?e=1")


@every_model
def test_no_list_counts_all_its_rows(as_root: Client, model: type[Model]) -> None:
    with CaptureQueriesContext(connection) as captured:
        as_root.get(list_of(model))

    counts = [q["sql"] for q in captured if q["sql"].startswith("SELECT COUNT(*)")]
    assert counts
    assert [sql for sql in counts if "LIMIT 10001" not in sql] == []


def test_an_action_takes_no_more_rows_than_it_may(
    as_bob: Client, acme: Organisation, settings: Any
) -> None:
    settings.ADMIN_MAX_ACTED_ON = 2
    keys = [factories.make_api_key(acme, f"key {number}").api_key for number in range(3)]
    body = action_on(keys[0], "revoke_selected") | {"select_across": "1"}

    response = as_bob.post(list_of(ApiKey), body, follow=True)

    assert "Nothing was changed: select at most 2" in text_of(response)
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()


# --- Order and parameters -----------------------------------------------------------------------


@pytest.mark.parametrize("model", [Run, AuthEvent, Session, StoredValue])
@pytest.mark.parametrize("order", ["1", "-1", "2.1"])
def test_a_long_list_is_ordered_by_no_column(
    as_bob: Client, model: type[Model], order: str
) -> None:
    response = as_bob.get(list_of(model), {"o": order})

    assert response.status_code == 400
    assert "asks for something that this page does not support" in text_of(response)


def test_users_are_ordered_by_what_has_an_index(as_bob: Client) -> None:
    answers = {o: as_bob.get(list_of(User), {"o": o}).status_code for o in ("", "0", "-0")}
    refused = {
        o: as_bob.get(list_of(User), {"o": o}).status_code for o in ("1", "0.1", "99", "--0", "a")
    }

    assert set(answers.values()) == {200}
    assert set(refused.values()) == {400}


@pytest.mark.parametrize(
    "twice", ["q=a&q=b", "p=1&p=1", "o=1&o=2", "status__exact=&status__exact="]
)
def test_a_parameter_is_given_once(as_bob: Client, twice: str) -> None:
    assert as_bob.get(f"{list_of(Run)}?{twice}").status_code == 400


def test_a_refused_parameter_leaves_one_line_without_a_traceback(
    as_bob: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(RefusalsWithoutTraceback())

    as_bob.get(list_of(Run), {"nothing": "1"})

    refusals = [record for record in caplog.records if record.name.startswith("django.security")]
    assert [(record.getMessage(), record.exc_info) for record in refusals] == [
        ("A parameter belongs to no filter of the list.", None)
    ]


def test_the_log_is_without_tracebacks_of_refusals() -> None:
    handler = logging.getLogger().handlers[0]

    assert any(isinstance(each, RefusalsWithoutTraceback) for each in handler.filters)


# --- Time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "/admin/",
        "/admin/scripts_engine/script/",
        "/admin/scripts_engine/script/?q=a",
        AUTOCOMPLETE,
    ],
)
def test_a_page_that_takes_too_long_is_stopped(
    as_bob: Client, acme_hook: Hook, endless_scripts: None, address: str
) -> None:
    response = as_bob.get(address)

    assert response.status_code == 503
    assert "Go back and narrow it" in text_of(response)
    assert int(response["Retry-After"]) > 0


def test_the_page_of_a_row_that_takes_too_long_is_stopped(
    as_bob: Client, acme_script: Script, endless_scripts: None
) -> None:
    assert as_bob.get(page_of(acme_script)).status_code == 503


def test_an_action_that_takes_too_long_changes_nothing(
    as_bob: Client, acme_script: Script, endless_scripts: None
) -> None:
    address = page_of(acme_script)

    response = as_bob.post(address, {"name": "changed", "source": "return 2"})

    assert response.status_code == 503
    acme_script.refresh_from_db()
    assert acme_script.name != "changed"
    assert acme_script.versions.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_request_after_a_stopped_page_has_a_new_deadline(
    as_bob: Client, endless_scripts: None
) -> None:
    assert as_bob.get(list_of(Script)).status_code == 503
    time.sleep(0.1)

    with connection.cursor() as cursor:
        cursor.execute(ENDLESS.replace("1e12", "3e5"))
        assert cursor.fetchone() == (1,)


def test_a_run_that_outlasts_the_deadline_is_kept(
    as_bob: Client, acme_hook: Hook, settings: Any
) -> None:
    update_script(acme_hook.script, author=NOBODY, source=BUSY_FOR_A_WHILE)
    run = run_of(acme_hook)
    settings.ADMIN_DEADLINE_SECONDS = 0.05

    response = as_bob.post(page_of(run, "again"))

    again = Run.objects.first()
    assert again is not None
    assert again.pk != run.pk
    assert again.duration_ms > 50
    assert response["Location"] == page_of(again)


BUSY_FOR_A_WHILE = """
local began = os.clock()
while os.clock() - began < 0.1 do end
return 1
"""


@pytest.mark.django_db(transaction=True)
def test_a_deadline_ends_where_writing_begins() -> None:
    Organisation.objects.create(name="Acme")

    with connection.statements_end_by(time.monotonic() + 1, spares_writes=True) as is_over:
        with transaction.atomic():
            Organisation.objects.update(name="Globex")
            time.sleep(1.1)
            with connection.cursor() as cursor:
                cursor.execute(ENDLESS.replace("1e12", "1e5"))
            Organisation.objects.update(name="Initech")
        assert not is_over()

    assert Organisation.objects.get().name == "Initech"


@pytest.mark.django_db(transaction=True)
def test_a_deadline_ends_at_a_write_after_a_line_break() -> None:
    Organisation.objects.create(name="Acme")

    with connection.statements_end_by(time.monotonic() + 1, spares_writes=True) as is_over:
        with connection.cursor() as cursor:
            cursor.execute("\n  UPDATE accounts_organisation SET name = 'Globex'")
        time.sleep(1.1)
        assert not is_over()

    assert Organisation.objects.get().name == "Globex"


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_has_not_written_yet_is_undone_at_the_deadline() -> None:
    Organisation.objects.create(name="Acme")

    with (
        connection.statements_end_by(time.monotonic() + 0.05, spares_writes=True) as is_over,
        pytest.raises(OperationalError),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(ENDLESS)

    assert is_over()
    assert Organisation.objects.update(name="Globex") == 1


# --- Places -------------------------------------------------------------------------------------


@pytest.fixture
def two_places(monkeypatch: pytest.MonkeyPatch) -> Bulkhead:
    """Two at once, and one for each organisation."""
    bulkhead = Bulkhead("admin", limit=2, limit_per_key=1)
    monkeypatch.setattr(requests, "bulkhead", bulkhead)
    return bulkhead


def test_an_organisation_beyond_its_share_of_pages_gets_503(
    as_bob: Client, acme: Organisation, charlie: User, two_places: Bulkhead
) -> None:
    as_charlie = logged_in(charlie)

    with two_places.place(str(acme.pk)):
        refused, other = as_bob.get("/admin/"), as_charlie.get("/admin/")

    assert refused.status_code == 503
    assert refused["Retry-After"] == "1"
    assert "too many requests of this kind" in text_of(refused)
    assert other.status_code == 200
    assert as_bob.get("/admin/").status_code == 200


def test_a_refused_page_does_nothing(
    as_bob: Client, acme: Organisation, acme_script: Script, two_places: Bulkhead
) -> None:
    with two_places.place(str(acme.pk)):
        response = as_bob.post(page_of(acme_script), {"name": "changed", "source": "return 2"})

    assert response.status_code == 503
    acme_script.refresh_from_db()
    assert acme_script.name != "changed"


@pytest.mark.parametrize("way", ["again", "try"])
def test_a_script_that_runs_for_a_page_leaves_its_place_to_others(
    as_bob: Client,
    acme_hook: Hook,
    two_places: Bulkhead,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    run = run_of(acme_hook)
    held = []

    def look(actual: Any) -> Any:
        def run_and_look(*arguments: Any, **named: Any) -> Any:
            held.append(two_places.held)
            return actual(*arguments, **named)

        return run_and_look

    monkeypatch.setattr(page, "run_again", look(page.run_again))
    monkeypatch.setattr(try_it, "try_script", look(try_it.try_script))

    if way == "again":
        as_bob.post(page_of(run, "again"))
    else:
        call = {"source": "return 1", "method": "GET", "headers": "", "query": "", "body": ""}
        address = reverse("admin:scripts_engine_script_try", args=[acme_hook.script.pk])
        as_bob.post(address, json.dumps(call), content_type="application/json")

    assert Run.objects.count() == 2
    assert held == [0]
    assert two_places.held == 0


def test_an_administrator_of_several_counts_for_the_oldest_of_them(
    acme: Organisation, globex: Organisation, bob: User, two_places: Bulkhead
) -> None:
    bob.memberships.create(organisation=globex, role=Role.ADMINISTRATOR)
    as_bob = logged_in(bob)
    # Made within the same millisecond, either may have the earlier id.
    oldest, other = sorted([acme.pk, globex.pk])

    with two_places.place(str(other)):
        beside_other = as_bob.get("/admin/")
    with two_places.place(str(oldest)):
        beside_oldest = as_bob.get("/admin/")

    assert beside_other.status_code == 200
    assert beside_oldest.status_code == 503


def test_superusers_have_a_share_of_their_own(
    as_root: Client, acme: Organisation, two_places: Bulkhead
) -> None:
    with two_places.place(str(acme.pk)):
        assert as_root.get("/admin/").status_code == 200
    with two_places.place("superusers"):
        assert as_root.get("/admin/").status_code == 503


def test_the_login_page_and_the_scripts_of_pages_need_no_place(
    as_bob: Client, acme: Organisation, client: Client, two_places: Bulkhead
) -> None:
    with two_places.place(str(acme.pk)), two_places.place("another"):
        assert client.get("/admin/login/").status_code == 200
        assert as_bob.get("/admin/jsi18n/").status_code == 200
        assert client.get("/admin/").status_code == 302


@pytest.mark.parametrize(
    "address", ["/admin/accounts/user/not-there/change/", list_of(Run) + "?nothing=1", "/admin/"]
)
def test_a_page_gives_its_place_back(as_bob: Client, two_places: Bulkhead, address: str) -> None:
    as_bob.get(address)

    assert two_places.held == 0


# --- Lines --------------------------------------------------------------------------------------


def test_the_page_of_a_version_shows_the_first_lines_of_a_long_change(
    as_bob: Client, acme_script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differences, "MAX_LINES", 3)
    update_script(acme_script, author=NOBODY, source="-- one\n-- two\n-- three\n-- four")
    newest = acme_script.versions.first()

    text = text_of(as_bob.get(page_of(newest)))

    assert "+-- two" not in text.partition("Source</h2>")[0]
    assert "Only the first 3 lines of the diff are shown; 3 more are hidden." in text
