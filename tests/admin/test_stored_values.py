"""Stored values in the admin: made, changed and deleted by the rules of store.set."""

import html
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from accounts.models import Organisation
from scripts_engine import stored_values
from scripts_engine.models import StoredValue
from tests.admin.pages import CONFIRMED, list_of, page_of, text_of
from tests.factories import reply_of, run_lua
from tests.written import nothing_written

pytestmark = pytest.mark.postgresql

NO_EXPIRY = {"expires_at_0": "", "expires_at_1": ""}


def lua(organisation: Organisation, source: str) -> str:
    return reply_of(run_lua(organisation, source))


def new_value(organisation: Organisation, **changes: str) -> dict[str, str]:
    return {
        "organisation": str(organisation.pk),
        "typed_key": "settings",
        "entered_as": "json",
        "typed_value": '{"limit": 5}',
        **NO_EXPIRY,
        **changes,
    }


def form_on(client: Client, stored: StoredValue, **changes: str) -> dict[str, str]:
    """The form as the page shows it, with changes."""
    form = client.get(page_of(stored)).context_data["adminform"].form
    shown = {name: form[name].value() for name in ("entered_as", "typed_value", "seen")}
    return {**shown, **NO_EXPIRY, **changes}


def seen_on(page: str) -> str:
    found = re.search(r'name="seen" value="(\w+)"', page)
    assert found
    return found[1]


@pytest.fixture
def stored(acme: Organisation) -> StoredValue:
    return StoredValue.objects.create(organisation=acme, key=b"count", value="41")


def test_bob_adds_a_value_that_scripts_read(as_bob: Client, acme: Organisation) -> None:
    response = as_bob.post(list_of(StoredValue, "add"), new_value(acme))

    assert response.status_code == 302
    assert lua(acme, 'return store.get("settings").limit') == "5"
    assert LogEntry.objects.get().object_id == str(StoredValue.objects.get().pk)


@pytest.mark.parametrize("text", ["tea", "", " a\tb ", 'say "hi"', "42", "ü 🌙", "a\nb"])
def test_text_is_stored_as_a_string(as_bob: Client, acme: Organisation, text: str) -> None:
    typed = {"entered_as": "text", "typed_value": text.replace("\n", "\r\n")}

    as_bob.post(list_of(StoredValue, "add"), new_value(acme, **typed))

    assert lua(acme, 'return store.get("settings")') == text


@pytest.mark.parametrize("text", ["tea", "a\nb", "42", ""])
def test_text_is_shown_as_text(as_bob: Client, stored: StoredValue, text: str) -> None:
    StoredValue.objects.update(value=json.dumps(text))

    shown = form_on(as_bob, stored)

    assert (shown["entered_as"], shown["typed_value"]) == ("text", text)


@pytest.mark.parametrize("value", ["41", '{"a": [1]}', "null", r'"a\u0000b"', r'"\r"', r'"\ud800"'])
def test_a_string_that_a_text_field_cannot_hold_is_shown_as_json(
    as_bob: Client, stored: StoredValue, value: str
) -> None:
    StoredValue.objects.update(value=value)

    shown = form_on(as_bob, stored)

    assert (shown["entered_as"], shown["typed_value"]) == ("json", value)
    assert as_bob.post(page_of(stored), shown).status_code == 302
    assert StoredValue.objects.get().value == value


@pytest.mark.parametrize(
    ("value", "type_name"),
    [("1.5", "Number"), ('"x"', "Text"), ("{}", "Object"), ("[]", "Array"), ("true", "Boolean"),
     ("null", "Null")],
)  # fmt: skip
def test_the_list_names_the_type(
    as_bob: Client, stored: StoredValue, value: str, type_name: str
) -> None:
    StoredValue.objects.update(value=value)

    assert type_name in text_of(as_bob.get(list_of(StoredValue)))


def test_bob_changes_a_value(as_bob: Client, acme: Organisation, stored: StoredValue) -> None:
    form = form_on(as_bob, stored, typed_value="42", typed_key="other")

    response = as_bob.post(page_of(stored), form)

    assert response.status_code == 302
    assert lua(acme, 'return store.get("count") + 0') == "42"
    assert StoredValue.objects.get().pk == stored.pk


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typed_value": "{"}, "The value is not valid JSON."),
        ({"typed_value": ""}, "The value is not valid JSON."),
        ({"typed_value": "NaN"}, "The value is not valid JSON."),
        ({"typed_value": "[1e999]"}, "A number in the value is out of range."),
        ({"typed_value": '{"a": 9223372036854775808}'}, "A number in the value is out of range."),
        ({"typed_value": "[" * 129 + "]" * 129}, "nested at most 128 levels"),
        ({"typed_value": "[" * 9000 + "]" * 9000}, "nested at most 128 levels"),
        ({"typed_value": "[" * 32_768 + "]" * 32_768}, "nested at most 128 levels"),
        ({"typed_value": '"' + "x" * 65_535 + '"'}, "64 KiB as JSON; this one has 65,537 bytes"),
        ({"typed_key": "ü" * 129}, "A key is a string of 1 to 256 bytes."),
        ({"typed_key": ""}, "This field is required."),
        ({"typed_key": "a\0b"}, "Null characters are not allowed."),
        ({"entered_as": "lua"}, "Select a valid choice"),
        ({"expires_at_0": "2020-01-01", "expires_at_1": "00:00:00"}, "must be in the future"),
        ({"expires_at_0": "9999-12-31", "expires_at_1": "00:00:00"}, "within ten years"),
        ({"expires_at_0": "soon", "expires_at_1": ""}, "Enter a valid date"),
    ],
)
def test_values_refused_by_store_set_are_refused_at_their_field(
    as_bob: Client, acme: Organisation, changes: dict[str, str], message: str
) -> None:
    response = as_bob.post(list_of(StoredValue, "add"), new_value(acme, **changes))

    assert response.status_code == 200
    assert message in html.unescape(text_of(response))
    assert not StoredValue.objects.exists()


def test_the_deepest_value_can_be_read_by_a_script(as_bob: Client, acme: Organisation) -> None:
    deepest = "[" * 128 + "]" * 128

    as_bob.post(list_of(StoredValue, "add"), new_value(acme, typed_value=deepest))

    assert lua(acme, 'return type(store.get("settings"))') == "table"


def test_the_limit_of_keys_holds(
    as_bob: Client, acme: Organisation, stored: StoredValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_values, "MAX_KEYS", 1)

    response = as_bob.post(list_of(StoredValue, "add"), new_value(acme))

    assert "The organisation has 1 keys already." in text_of(response)
    assert StoredValue.objects.get() == stored


def test_a_key_that_is_taken_is_not_overwritten(
    as_bob: Client, acme: Organisation, stored: StoredValue
) -> None:
    response = as_bob.post(list_of(StoredValue, "add"), new_value(acme, typed_key="count"))

    assert "There is a value under this key already." in text_of(response)
    assert StoredValue.objects.get().value == "41"


def test_the_key_of_an_expired_value_is_free(
    as_bob: Client, acme: Organisation, stored: StoredValue
) -> None:
    StoredValue.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    response = as_bob.post(list_of(StoredValue, "add"), new_value(acme, typed_key="count"))

    assert response.status_code == 302
    assert StoredValue.objects.get().value == '{"limit": 5}'


def test_a_write_of_a_script_is_not_overwritten_unseen(
    as_bob: Client, acme: Organisation, stored: StoredValue
) -> None:
    form = form_on(as_bob, stored, typed_value="100")
    lua(acme, 'store.increment("count")')

    asked = as_bob.post(page_of(stored), form)

    page = text_of(asked)
    assert asked.status_code == 200
    assert "A script has changed this value since you opened it. Nothing was saved." in page
    assert "It is now 42. Save again to replace it." in page
    assert "Please correct the error" not in page
    assert StoredValue.objects.get().value == "42"

    again = as_bob.post(page_of(stored), {**form, "seen": seen_on(page)})

    assert again.status_code == 302
    assert StoredValue.objects.get().value == "100"


def test_a_changed_expiry_is_noticed_too(
    as_bob: Client, acme: Organisation, stored: StoredValue
) -> None:
    form = form_on(as_bob, stored, typed_value="100")
    lua(acme, 'store.set("count", 41, 60)')

    assert "has changed this value" in text_of(as_bob.post(page_of(stored), form))
    assert StoredValue.objects.get().value == "41"


@pytest.mark.parametrize("seen", ["", "absent", "x" * 64])
def test_an_invented_fingerprint_overwrites_nothing(
    as_bob: Client, stored: StoredValue, seen: str
) -> None:
    form = form_on(as_bob, stored, typed_value="100", seen=seen)

    assert as_bob.post(page_of(stored), form).status_code == 200
    assert StoredValue.objects.get().value == "41"


def test_a_value_that_a_script_deleted_is_not_found(
    as_bob: Client, acme: Organisation, stored: StoredValue
) -> None:
    form = form_on(as_bob, stored, typed_value="100")
    lua(acme, 'store.delete("count")')

    assert as_bob.post(page_of(stored), form).status_code == 404
    assert not StoredValue.objects.exists()


def test_an_expiry_is_set_kept_and_removed(as_bob: Client, stored: StoredValue) -> None:
    until = timezone.now() + timedelta(days=1, microseconds=5)
    StoredValue.objects.update(expires_at=until)
    shown = {
        "expires_at_0": f"{until.astimezone(UTC):%Y-%m-%d}",
        "expires_at_1": f"{until.astimezone(UTC):%H:%M:%S}",
    }

    as_bob.post(page_of(stored), form_on(as_bob, stored, **shown, typed_value="1"))
    kept = StoredValue.objects.get().expires_at
    later = {"expires_at_0": "2027-01-02", "expires_at_1": "03:04:05"}
    as_bob.post(page_of(stored), form_on(as_bob, stored, **later))
    changed = StoredValue.objects.get().expires_at
    as_bob.post(page_of(stored), form_on(as_bob, stored))

    assert kept == until
    assert changed == datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert StoredValue.objects.get().expires_at is None


def test_a_key_of_any_bytes_is_kept(as_bob: Client, acme: Organisation) -> None:
    stored = StoredValue.objects.create(organisation=acme, key=b"\0\xff", value="1")

    as_bob.post(page_of(stored), form_on(as_bob, stored, typed_value="2"))

    row = StoredValue.objects.get()
    assert (bytes(row.key), row.value) == (b"\0\xff", "2")


def test_a_value_is_deleted_after_asking(as_bob: Client, stored: StoredValue) -> None:
    asked = as_bob.get(page_of(stored, "delete"))
    still_there = StoredValue.objects.exists()
    done = as_bob.post(page_of(stored, "delete"), CONFIRMED)

    assert (asked.status_code, still_there) == (200, True)
    assert done.status_code == 302
    assert not StoredValue.objects.exists()


def test_bob_adds_nothing_to_globex(as_bob: Client, globex: Organisation) -> None:
    response = as_bob.post(list_of(StoredValue, "add"), new_value(globex))

    assert response.status_code == 200
    assert "Select a valid choice" in text_of(response)
    assert not StoredValue.objects.exists()


def test_bob_changes_nothing_of_globex(
    as_bob: Client, as_root: Client, globex_objects: dict[type, Any]
) -> None:
    foreign = globex_objects[StoredValue]
    form = form_on(as_root, foreign, typed_value="1", entered_as="json")
    with nothing_written():
        assert as_bob.post(page_of(foreign), form).status_code == 404
        assert as_bob.get(page_of(foreign)).status_code == 404


def test_markup_in_a_value_is_escaped(as_bob: Client, stored: StoredValue) -> None:
    StoredValue.objects.update(value='"<b id=x>"')

    assert "<b id=x>" not in text_of(as_bob.get(page_of(stored)))
    assert "<b id=x>" not in text_of(as_bob.get(list_of(StoredValue)))
