"""Forms that save through flows: validation writes nothing, and a refusal undoes everything."""

from typing import Any

import pytest
from django.contrib import messages
from django.contrib.admin import site
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from accounts.models import ApiKey, Organisation, User
from hooks.admin.hooks import page
from hooks.admin.hooks.limits import LimitsForm
from hooks.admin.hooks.sender import SenderForm, SigningSecretForm
from hooks.models import Hook
from hooks.senders import PRESETS
from jobs.models import Schedule
from jobs.schedules.schedules import create_schedule
from scripts_engine.models import Script, Secret, StoredValue
from scripts_engine.secrets import set_secret
from tests.admin.pages import everything, list_of, page_of, text_of
from tests.written import nothing_written

pytestmark = pytest.mark.postgresql

SCRIPT = {"name": "orders", "source": "return 1", "timeout_seconds": "3", "is_enabled": "on"}
SECRET = {"name": "SHOP_KEY", "value": "hush"}
VALUE = {
    "typed_key": "settings",
    "entered_as": "json",
    "typed_value": '{"limit": 5}',
    "expires_at_0": "",
    "expires_at_1": "",
}
SCHEDULE = {
    "name": "nightly report",
    "cron": "0 6 * * mon-fri",
    "time_zone": "Europe/Berlin",
    "is_enabled": "on",
    "body": "order",
    "overlap": "skip",
    "catch_up": "latest",
    "catch_up_window_seconds": "3600",
}
API_KEY = {
    "name": "warehouse",
    "expires_at_0": "",
    "expires_at_1": "",
    "allowed_networks": "",
    "preset": "everything",
}
FORMS: list[tuple[type[Any], dict[str, str]]] = [
    (Script, SCRIPT),
    (Schedule, SCHEDULE),
    (Secret, SECRET),
    (StoredValue, VALUE),
    (Hook, {"name": "shop"}),
    (ApiKey, API_KEY),
]
IDS = [model.__name__ for model, _ in FORMS]


@pytest.fixture
def owners(acme: Organisation, acme_script: Script) -> dict[str, str]:
    return {"organisation": str(acme.pk), "script": str(acme_script.pk)}


@pytest.fixture
def rows(acme: Organisation, acme_script: Script, acme_hook: Hook) -> dict[type[Any], Any]:
    return {
        Script: acme_script,
        Schedule: create_schedule(acme_script, cron="0 * * * *"),
        Secret: set_secret(acme, name="SHOP_KEY", value="old"),
        StoredValue: StoredValue.objects.create(organisation=acme, key=b"count", value="41"),
        Hook: acme_hook,
    }


def form_of(user: User, row: Any, change: bool, data: dict[str, str]) -> Any:
    """The form that the page validates."""
    request = RequestFactory().post("/")
    request.user = user
    model_admin: Any = site.get_model_admin(type(row))
    shown = row if change else None
    fields = flatten_fieldsets(model_admin.get_fieldsets(request, shown))
    form = model_admin.get_form(request, shown, change=change, fields=fields)
    return form(data, instance=row)


def written_by_validation(form: Any) -> list[str]:
    """The statements of a successful validation that are not queries."""
    with CaptureQueriesContext(connection) as statements:
        assert form.is_valid(), form.errors
    return [each["sql"] for each in statements if not each["sql"].startswith("SELECT ")]


@pytest.mark.parametrize(("model", "data"), FORMS, ids=IDS)
def test_validating_a_new_row_writes_nothing(
    bob: User, owners: dict[str, str], model: type[Any], data: dict[str, str]
) -> None:
    with nothing_written():
        form = form_of(bob, model(), False, {**owners, **data})

        assert written_by_validation(form) == []


@pytest.mark.parametrize(("model", "data"), FORMS[:-1], ids=IDS[:-1])
def test_validating_a_change_writes_nothing(
    bob: User, rows: dict[type[Any], Any], model: type[Any], data: dict[str, str]
) -> None:
    with nothing_written():
        form = form_of(bob, rows[model], True, data)

        assert form.has_changed()
        assert written_by_validation(form) == []


@pytest.mark.parametrize("name", ["limits", "sender", "secret"])
def test_validating_a_hooks_own_forms_writes_nothing(acme_hook: Hook, name: str) -> None:
    with nothing_written():
        data: Any = {"burst": "3", "value": "hush", "overlap_seconds": "0"}
        form = {
            "limits": LimitsForm(acme_hook, data),
            "sender": SenderForm(PRESETS["github"], acme_hook.revision, data, has_secret=False),
            "secret": SigningSecretForm(data),
        }[name]

        assert written_by_validation(form) == []


@pytest.mark.parametrize(
    ("model", "data", "why", "kept"),
    [
        (Script, {**SCRIPT, "source": "return ("}, "Line 1: ", ["orders", "return ("]),
        (Schedule, {**SCHEDULE, "cron": "0 0 30 2 *"}, "never comes", ["0 0 30 2 *", "order"]),
        (Schedule, {**SCHEDULE, "body": "ö" * 40_000}, "Enter at most", ["nightly report"]),
        (Secret, {**SECRET, "value": "x" * 20_000}, "A secret is text of", ["SHOP_KEY"]),
        (StoredValue, {**VALUE, "typed_value": "{kept"}, "JSON", ["settings", "{kept"]),
    ],
    ids=["script", "cron", "payload", "secret", "value"],
)
def test_a_refusal_of_the_flow_keeps_what_was_typed_and_nothing_else(
    as_bob: Client,
    owners: dict[str, str],
    model: type[Any],
    data: dict[str, str],
    why: str,
    kept: list[str],
) -> None:
    with nothing_written():
        response: Any = as_bob.post(list_of(model, "add"), {**owners, **data})

    assert response.status_code == 200
    assert why in text_of(response)
    assert [text for text in kept if text not in text_of(response)] == []
    assert list(messages.get_messages(response.wsgi_request)) == []


def test_what_a_flow_did_before_it_refused_is_undone(
    as_bob: Client, acme_hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half_done(hook: Hook, **changes: object) -> None:
        Hook.objects.filter(pk=hook.pk).update(name="half")
        # The form has the one field, and not the other.
        raise ValidationError({"name": "Not that name.", "burst": "Not that burst."})

    monkeypatch.setattr(page, "update_hook", half_done)
    before = everything()

    response: Any = as_bob.post(page_of(acme_hook), {"name": "typed", "is_enabled": "on"})

    form = response.context_data["adminform"].form
    assert response.status_code == 200
    assert form.errors == {"name": ["Not that name."], "__all__": ["Not that burst."]}
    assert 'value="typed"' in text_of(response)
    assert everything() == before
